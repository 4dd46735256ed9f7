package types

// CipherContext names the certificates and schemes a cipher block was made with.
type CipherContext struct {
	ContextID          string
	HashScheme         int32
	KeyExchangeScheme  int32
	EncryptionScheme   int32
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
