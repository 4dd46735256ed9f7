package types

// KeyExchangeScheme says how the two sides of a cipher block got their key.
type KeyExchangeScheme int32

// The key exchange of docs/wire.md, "Token decryption".
const (
	KeyExchangeNone KeyExchangeScheme = iota
	KeyExchangeECDH
)

// String returns the name of the value.
func (s KeyExchangeScheme) String() string {
	return enumName("KeyExchangeScheme", []string{"None", "ECDH"}, s)
}

// EncryptionScheme says what a cipher block is encrypted with.
type EncryptionScheme int32

// The cipher of docs/wire.md, "Token decryption".
const (
	EncryptionNone EncryptionScheme = iota
	EncryptionAES256CFB
)

// String returns the name of the value.
func (s EncryptionScheme) String() string {
	return enumName("EncryptionScheme", []string{"None", "AES256CFB"}, s)
}

// CipherContext names the certificates and schemes a cipher block was made with.
type CipherContext struct {
	ContextID          string
	HashScheme         HashAlgorithm
	KeyExchangeScheme  KeyExchangeScheme
	EncryptionScheme   EncryptionScheme
	ControllerCertHash []byte
	DeviceCertHash     []byte
	ErrorAndTime
}

// CipherBlockStatus is an encrypted part of a configuration. CipherData is
// large-tagged: on a socket it travels by file (docs/wire.md, "Large fields").
type CipherBlockStatus struct {
	CipherBlockID   string
	CipherContextID string
	InitialValue    []byte
	CipherData      []byte `json:"pubsub-large-CipherData"`
	ClearTextHash   []byte
	IsCipher        bool
	CipherContext   *CipherContext
	ErrorAndTime
}
