package types

import "encoding/hex"

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

// String returns the name of the value.
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
