// Package k3stls plays the certificates of k3s: the files below its directory, the servers that present
// them, and what becomes of both when k3s starts. Real certificates of any life, for tests
// whose clock may be that of testing/synctest.
package k3stls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Window is how long before its expiry k3s renews a certificate when it starts.
const Window = 120 * 24 * time.Hour

// The files, below the directory of k3s.
const (
	CA    = "server/tls/server-ca.crt"
	Admin = "server/tls/client-admin.crt" // what clients have
)

// servers are the files that the servers present, by port. Those of etcd want a certificate of the client.
func servers() map[string]string {
	return map[string]string{
		"6443": "server/tls/serving-kube-apiserver.crt", "10250": "agent/serving-kubelet.crt",
		"2379": "server/tls/etcd/server-client.crt", "2380": "server/tls/etcd/peer-server-client.crt",
	}
}

// Leaves are the files of all certificates that k3s renews.
func Leaves() []string {
	all := []string{Admin, "server/tls/client-controller.crt", "server/tls/etcd/client.crt", "server/tls/kube-scheduler/kube-scheduler.crt"}
	for _, file := range servers() {
		all = append(all, file)
	}
	return all
}

// K3s is the k3s of a server.
type K3s struct {
	Life time.Duration // of the certificates that it makes

	dir string
	key *ecdsa.PrivateKey // of all
	ca  *x509.Certificate

	mu     sync.Mutex
	served map[string]tls.Certificate // by port; nil while it is down
	admin  tls.Certificate            // of clients, whose kubeconfig k3s writes when it starts
	serial int64
}

// New is a k3s that has started for the first time and makes certificates of that life. Its authority
// expires in the time named authority.
func New(dir string, life, authority time.Duration) (*K3s, error) {
	k := &K3s{Life: life, dir: dir}
	var err error
	if k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	now := time.Now()
	k.ca = &x509.Certificate{
		Subject: pkix.Name{CommonName: "k3s-server-ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authority),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if k.ca, err = k.write(CA, k.ca); err != nil {
		return nil, err
	}
	return k, k.Start()
}

// Make makes a certificate that expires in left.
func (k *K3s) Make(file string, left time.Duration) error {
	_, err := k.write(file, &x509.Certificate{
		Subject: pkix.Name{CommonName: filepath.Base(file)}, NotBefore: k.ca.NotBefore, NotAfter: time.Now().Add(left), // as k3s, which takes the first from the authority
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	return err
}

func (k *K3s) write(file string, c *x509.Certificate) (*x509.Certificate, error) {
	k.serial++
	c.SerialNumber = big.NewInt(k.serial)
	parent := k.ca
	if c.IsCA {
		parent = c
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, k.key.Public(), k.key)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(k.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// Read is the certificate in a file.
func (k *K3s) Read(file string) (*x509.Certificate, error) {
	raw, err := os.ReadFile(filepath.Join(k.dir, file))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return x509.ParseCertificate(block.Bytes)
}

// Start renews what expires within the Window and what an agent has, makes what is missing, and serves. With an authority that
// has expired it does neither.
func (k *K3s) Start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !time.Now().Before(k.ca.NotAfter) {
		return errors.New("the authority has expired")
	}
	for _, file := range Leaves() {
		if c, err := k.Read(file); err != nil || time.Until(c.NotAfter) <= Window || strings.HasPrefix(file, "agent/") {
			if err := k.Make(file, k.Life); err != nil {
				return err
			}
		}
	}
	served := map[string]tls.Certificate{}
	for port, file := range servers() {
		c, err := k.Read(file)
		if err != nil {
			return err
		}
		served[port] = tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: k.key}
	}
	admin, err := k.Read(Admin)
	if err != nil {
		return err
	}
	k.served, k.admin = served, tls.Certificate{Certificate: [][]byte{admin.Raw}, PrivateKey: k.key}
	return nil
}

// Stop ends the servers; the files stay.
func (k *K3s) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served = nil
}

// Serve answers one connection to a port with a word, after the handshake. It fails while k3s is down.
func (k *K3s) Serve(conn net.Conn, port string) error {
	defer conn.Close()
	k.mu.Lock()
	cert, ok := k.served[port]
	k.mu.Unlock()
	if !ok {
		return errors.New("k3s is down")
	}
	wants := tls.VerifyClientCertIfGiven
	if port == "2379" || port == "2380" {
		wants = tls.RequireAndVerifyClientCert
	}
	_, err := io.WriteString(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: wants, ClientCAs: k.roots(), MinVersion: tls.VersionTLS12}), "ok")
	return err
}

// Dial connects with a port without a network. It is refused while k3s is down.
func (k *K3s) Dial(port string) (net.Conn, error) {
	k.mu.Lock()
	up := k.served != nil
	k.mu.Unlock()
	if !up {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	go func() { _ = k.Serve(there, port) }()
	return here, nil
}

// Ask is a client with the kubeconfig of k3s: it fails where the certificate of one of the two has expired.
func (k *K3s) Ask(conn net.Conn) error {
	defer conn.Close()
	k.mu.Lock()
	admin := k.admin
	k.mu.Unlock()
	client := tls.Client(conn, &tls.Config{
		Certificates: []tls.Certificate{admin}, RootCAs: k.roots(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12,
	})
	_, err := io.ReadFull(client, make([]byte, 2))
	return err
}

func (k *K3s) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(k.ca)
	return roots
}
