//go:build linux

package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// authority signs certificates.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	made   pair // its own
	serial atomic.Int64
}

// writePKI makes everything a control plane needs to trust itself, as
// <name>.crt and <name>.key in dir, and returns the cluster's authority. The API
// server answers under each of ips. The order of the names is: authorities, the
// servers, then the clients.
func writePKI(dir string, ips []net.IP) (*authority, error) {
	ca, err := newAuthority("ca")
	if err != nil {
		return nil, err
	}
	front, err := newAuthority("front-ca")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(ca.made.write(dir, "ca"), front.made.write(dir, "front-ca")); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		by       *authority
		file     string
		template *x509.Certificate
	}{
		{ca, "apiserver", serverTemplate(ips)},
		{ca, "kubelet-client", clientTemplate("kube-apiserver-kubelet-client", "system:masters")},
		{front, "front-proxy-client", clientTemplate("front-proxy-client")},
		{ca, "admin", clientTemplate("system:admin", "system:masters")},
		{ca, "kcm", clientTemplate("system:kube-controller-manager")},
		{ca, "scheduler", clientTemplate("system:kube-scheduler")},
	} {
		made, err := c.by.issue(c.template)
		if err != nil {
			return nil, err
		}
		if err := made.write(dir, c.file); err != nil {
			return nil, err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return ca, writePEM(filepath.Join(dir, "sa.key"), encoded)
}

func newAuthority(name string) (*authority, error) {
	a := &authority{}
	var err error
	a.made, err = a.issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-" + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
	})
	return a, err
}

// pool trusts this authority alone.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.made.cert)
	return pool
}

// issue completes template, with a validity unless it has one (nine years for an authority, else one), and
// signs it with a new key. The first certificate an authority signs is its own.
func (a *authority) issue(template *x509.Certificate) (pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template.SerialNumber = big.NewInt(a.serial.Add(1))
	if template.NotAfter.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
		template.NotAfter = time.Now().AddDate(map[bool]int{true: 9, false: 1}[template.IsCA], 0, 0)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	if template.IsCA {
		template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
		a.cert, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	encoded, err := encodeKey(key)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), encoded}, err
}

func (p pair) write(dir, name string) error {
	return errors.Join(writePEM(filepath.Join(dir, name+".crt"), p.cert), writePEM(filepath.Join(dir, name+".key"), p.key))
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writePEM(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write a certificate or key: %w", err)
	}
	return nil
}
