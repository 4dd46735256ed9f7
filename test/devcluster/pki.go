//go:build linux

package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs certificates and writes them, with their keys, as
// <name>.crt and <name>.key into dir.
type authority struct {
	dir    string
	name   string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// writePKI makes everything a control plane needs to trust itself. The API
// server answers under each of ips. The order of the names is: authorities,
// the servers, then the clients.
func writePKI(dir string, ips []net.IP) error {
	ca, err := newAuthority(dir, "ca")
	if err != nil {
		return err
	}
	front, err := newAuthority(dir, "front-ca")
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if err := ca.sign("apiserver", server); err != nil {
		return err
	}
	for _, c := range []struct {
		by           *authority
		file, cn, in string
	}{
		{ca, "kubelet-client", "kube-apiserver-kubelet-client", "system:masters"},
		{front, "front-proxy-client", "front-proxy-client", ""},
		{ca, "admin", "system:admin", "system:masters"},
		{ca, "kcm", "system:kube-controller-manager", ""},
		{ca, "scheduler", "system:kube-scheduler", ""},
	} {
		client := &x509.Certificate{
			Subject:     pkix.Name{CommonName: c.cn},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if c.in != "" {
			client.Subject.Organization = []string{c.in}
		}
		if err := c.by.sign(c.file, client); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the service account key: %w", err)
	}
	return writeKey(filepath.Join(dir, "sa.key"), key)
}

func newAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, name: name}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-" + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	return a, a.sign(name, template)
}

// sign completes template, signs it and writes it with a new key. The first
// certificate an authority signs is its own.
func (a *authority) sign(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of %s: %w", name, err)
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	if template.IsCA {
		template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
		a.cert, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(a.dir, name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(filepath.Join(a.dir, name+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write a certificate or key: %w", err)
	}
	return nil
}
