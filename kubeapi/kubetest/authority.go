package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority signs the certificates of a test.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pem  []byte
}

func NewAuthority(t *testing.T) *Authority {
	a := &Authority{}
	a.Cert, a.key, a.Pem, _ = a.Sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *Authority) Sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, signer := a.Cert, a.key
	if by == nil {
		by, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}
