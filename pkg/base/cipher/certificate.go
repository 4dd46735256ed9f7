package cipher

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"github.com/zedkube/zedkube/types"
)

// maxCert bounds what is parsed: a chain of certificates takes a few KiB.
const maxCert = 64 << 10

// find finds the certificate with a hash: the controller's or the device's.
func find[C any](whose string, hash []byte, certs map[string]C) (C, error) {
	c, ok := certs[hex.EncodeToString(hash)]
	switch {
	case len(hash) == 0:
		return c, failure(Invalid, "it names no %s certificate", whose)
	case !ok:
		return c, failure(NotReady, "%s certificate %s not found", whose, short(hash))
	}
	return c, nil
}

// publicKey returns the key of the first certificate in text; controllers send
// the rest of the chain behind it.
func publicKey(whose string, hash, text []byte) (*ecdh.PublicKey, error) {
	unusable := func(why string) error {
		return failure(Invalid, "%s certificate %s %s", whose, short(hash), why)
	}
	if len(text) > maxCert {
		return nil, unusable(fmt.Sprintf("has %d bytes, more than %d", len(text), maxCert))
	}
	cert := first(text)
	if cert == nil {
		return nil, unusable("does not parse")
	}
	signing, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, unusable("has no elliptic curve key")
	}
	key, err := signing.ECDH()
	if err != nil || key.Curve() != ecdh.P256() {
		return nil, unusable("has no P-256 key")
	}
	return key, nil
}

func first(text []byte) *x509.Certificate {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert
		}
	}
	return nil
}

// certificateProblem says which certificate does not have the hash it is named by. That is
// only told where decryption fails: EVE does not look, so controllers may have
// named certificates otherwise for ever, and what proves the right ones is the
// hash of the clear text.
func certificateProblem(c types.ControllerCert, d types.EdgeNodeCert) string {
	switch {
	case !named(c.Cert, c.CertHash, c.HashAlgo):
		return fmt.Sprintf("controller certificate %s does not match its hash", short(c.CertHash))
	case !named(d.Cert, d.CertID, d.HashAlgo):
		return fmt.Sprintf("device certificate %s does not match its hash", short(d.CertID))
	}
	return ""
}

func named(text, hash []byte, algo types.HashAlgorithm) bool {
	sum := sha256.Sum256(text)
	want := sum[:]
	if algo == types.HashAlgorithmSHA256First16 {
		want = sum[:16]
	}
	return bytes.Equal(want, hash)
}

// short is enough of a hash to find the certificate by.
func short(hash []byte) string { return hex.EncodeToString(hash[:min(len(hash), 8)]) }
