package types

import "encoding/hex"

// HashAlgorithm says how the hash that names a certificate was made.
type HashAlgorithm int32

// The hashes EVE knows: the first 16 bytes of a SHA-256, and all of it.
const (
	HashAlgorithmInvalid HashAlgorithm = iota
	HashAlgorithmSHA256First16
	HashAlgorithmSHA256
)

// String returns the name of the value.
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

// String returns the name of the value.
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
