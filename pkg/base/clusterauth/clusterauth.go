// Package clusterauth is how the status servers of a cluster and those who ask
// them authenticate each other by TLS: the server's certificate and the client's
// bearer are both derived from the cluster token (docs/wire.md, "TLS and bearer").
package clusterauth

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	// ServerName is the name in the certificate, and what a client asks for.
	ServerName = "cluster-status.zedkube.eve"
	// Realm is what a server asks a bearer for.
	Realm = "zedkube"

	bearerInfo = "eve-zedkube-cluster-status-token-v1" //nolint:gosec // a label of HKDF
	keyInfo    = "eve-zedkube-cluster-status-tls-key-v1"
	serialInfo = "eve-zedkube-cluster-status-tls-serial-v1"
	serialSize = 16
)

// ErrNoToken is the error where there is no cluster token to derive anything from.
var ErrNoToken = errors.New("no cluster token yet")

// Credentials are what a cluster token gives: the same on every node.
type Credentials struct {
	bearer      string
	certificate tls.Certificate
}

// Derive makes the credentials of a cluster token.
func Derive(token string) (*Credentials, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return nil, ErrNoToken
	}
	var derived [3][]byte
	for i, of := range []struct {
		info string
		size int
	}{{bearerInfo, sha256.Size}, {keyInfo, ed25519.SeedSize}, {serialInfo, serialSize}} {
		var err error
		if derived[i], err = hkdf.Key(sha256.New, []byte(token), nil, of.info, of.size); err != nil {
			return nil, fmt.Errorf("derive credentials of the cluster: %w", err)
		}
	}
	key := ed25519.NewKeyFromSeed(derived[1])
	der, err := certificate(key, new(big.Int).SetBytes(derived[2]))
	if err != nil {
		return nil, fmt.Errorf("make certificate of the cluster: %w", err)
	}
	return &Credentials{hex.EncodeToString(derived[0]), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// certificate signs with Ed25519, which is deterministic.
func certificate(key ed25519.PrivateKey, serial *big.Int) ([]byte, error) {
	// The seed and the public key make up the private one. Which hash of the key is
	// its identifier differs between releases of Go: every node must make the same
	// bytes.
	id := sha256.Sum256(key[ed25519.SeedSize:])
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName},
		NotBefore: ValidFrom(), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, SubjectKeyId: id[:20],
	}
	return x509.CreateCertificate(nil, template, template, key.Public(), key)
}

// ValidFrom is when the certificate begins to be valid, at which EVE's clients look.
func ValidFrom() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Bearer is what a client sends.
func (c *Credentials) Bearer() string { return c.bearer }

// DER is the certificate that a server presents.
func (c *Credentials) DER() []byte { return c.certificate.Certificate[0] }

// String keeps them out of logs.
func (c *Credentials) String() string { return "(redacted)" }
