package types

import (
	"encoding/hex"
	"time"

	"github.com/google/uuid"
)

// KeyExchangeScheme says how the two sides of a cipher block got their key.
type KeyExchangeScheme int32

// The key exchange of docs/wire.md, "Token decryption".
const (
	KeyExchangeNone KeyExchangeScheme = iota
	KeyExchangeECDH
)

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
	ErrorDescription   // its five keys stand in this object
}

// CipherBlockStatus is an encrypted part of a configuration. CipherData is
// large-tagged: on a socket it travels by file (docs/wire.md, "Large fields").
type CipherBlockStatus struct {
	CipherBlockID    string
	CipherContextID  string
	InitialValue     []byte
	CipherData       []byte `json:"pubsub-large-CipherData"`
	ClearTextHash    []byte
	IsCipher         bool
	CipherContext    *CipherContext
	ErrorDescription // its five keys stand in this object
}

// CipherMetrics counts decryptions, under key "global". TypeCounters has eight
// entries (docs/wire.md, "Cipher topics").
type CipherMetrics struct {
	AgentName    string
	FailureCount uint64
	SuccessCount uint64
	LastFailure  time.Time
	LastSuccess  time.Time
	TypeCounters []uint64
}

// HashAlgorithm says how the hash that names a certificate was made.
type HashAlgorithm int32

// The hashes EVE knows: the first 16 bytes of a SHA-256, and all of it.
const (
	HashAlgorithmInvalid HashAlgorithm = iota
	HashAlgorithmSHA256First16
	HashAlgorithmSHA256
)

func (h HashAlgorithm) String() string {
	return enumName("HashAlgorithm", []string{"INVALID", "SHA256_16BYTES", "SHA256_32BYTES"}, h)
}

// ControllerCertType says what a certificate of the controller is for.
type ControllerCertType int32

// The controller's certificates of docs/wire.md, "Certificates".
const (
	ControllerCertUnset ControllerCertType = iota
	ControllerCertSigning
	ControllerCertIntermediate
	ControllerCertECDH
)

func (t ControllerCertType) String() string {
	return enumName("ControllerCertType", []string{"Unset", "Signing", "Intermediate", "ECDH"}, t)
}

// ControllerCert is one certificate of the controller, from zedagent, keyed by
// Key.
type ControllerCert struct {
	HashAlgo HashAlgorithm
	Type     ControllerCertType
	Cert     []byte // PEM
	CertHash []byte // of Cert by HashAlgo; a cipher context names it
}

// Key is the certificate's key: its hash in lower-case hex.
func (c ControllerCert) Key() string { return hex.EncodeToString(c.CertHash) }

// EdgeNodeCertType says what a certificate of this device is for.
type EdgeNodeCertType uint8

// The device's certificates of docs/wire.md, "Certificates".
const (
	EdgeNodeCertNone EdgeNodeCertType = iota
	EdgeNodeCertOnboarding
	EdgeNodeCertRestrictSigning
	EdgeNodeCertEk
	EdgeNodeCertEcdhXchange
)

func (t EdgeNodeCertType) String() string {
	return enumName("EdgeNodeCertType", []string{"None", "Onboarding", "RestrictSigning", "Ek", "EcdhXchange"}, t)
}

// CertMetaData is what goes with a certificate. Type 1 is a TPM2 public area.
type CertMetaData struct {
	Type uint8
	Data []byte
}

// EdgeNodeCert is one certificate of this device, from tpmmgr, keyed by Key in
// a persistent topic.
type EdgeNodeCert struct {
	HashAlgo      HashAlgorithm
	CertID        []byte // hash of Cert by HashAlgo; a cipher context names it
	CertType      EdgeNodeCertType
	Cert          []byte // PEM
	IsTpm         bool   // the private key is in the TPM
	MetaDataItems []CertMetaData
}

// Key is the certificate's key: its hash in lower-case hex.
func (c EdgeNodeCert) Key() string { return hex.EncodeToString(c.CertID) }

// Credentials is what the present connection to the API server rests on, and
// what the server tells of itself, under key "global". Without a value there has
// been no usable kubeconfig.
type Credentials struct {
	Client Certificate // of the kubeconfig; zero where it has none
	CA     Certificate // of those in the kubeconfig, the one that proves the server; zero where it has none
	Server Certificate // as the server showed it last; zero before the first handshake

	Version     string        // of the API server; "" for not known yet
	InstalledAt time.Time     // when Namespace was made, zero for not known yet
	ClockAhead  time.Duration // the API server's clock against ours, to some seconds
	ClockKnown  bool          // ClockAhead is known
	Refused     string        // what it does not permit, as "list pods, patch leases.coordination.k8s.io in eve-kube-app"; "" for nothing
}

// Certificate is the part of a certificate that is reasoned about.
type Certificate struct {
	Subject   string // common name
	NotBefore time.Time
	NotAfter  time.Time
	Unusable  string // why it cannot be used, a sentence; "" for no such reason
}

// Known reports whether there is such a certificate.
func (c Certificate) Known() bool { return !c.NotAfter.IsZero() || c.Unusable != "" }

// NodeClock is how far another node's clock is from ours, under the node's name.
type NodeClock struct {
	Node  string
	Ahead time.Duration // to some seconds; negative where it is behind
}

// ClusterToken is what came of the encrypted parts of the cluster
// configuration, under key "global" of a table in memory: it is in no topic of
// its own, and only EdgeNodeClusterStatus carries it on (docs/wire.md, "Token
// decryption").
type ClusterToken struct {
	ClusterID uuid.UUID        // whose token it is
	Token     string           // clear text; "" while none of this cluster has ever been had
	Error     ErrorDescription // why the present block gives none; zero where Token is of the present block
}

// String hides the token: a secret must not reach a log by a verb that prints
// everything.
func (t ClusterToken) String() string {
	if t.Token == "" {
		return "no token of cluster " + t.ClusterID.String()
	}
	return "token of cluster " + t.ClusterID.String()
}

// GoString hides the token as String does.
func (t ClusterToken) GoString() string { return t.String() }
