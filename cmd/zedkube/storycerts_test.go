package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const k3sDir = "persist/vault/kube/rancher/k3s"

// certificate NODE DAYS: k3s of the node has an authority and a certificate that expires in so
// many days.
func certificate(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return writeCertificates(filepath.Join(m.Root, k3sDir), days)
}

func writeCertificates(dir string, days int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k3s-server-ca"}, NotBefore: now.AddDate(0, -1, 0), NotAfter: now.AddDate(9, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "system:admin"}, NotBefore: now.AddDate(0, -1, 0), NotAfter: now.AddDate(0, 0, days).Add(time.Hour)}
	for name, template := range map[string]*x509.Certificate{"server-ca": ca, "client-admin": leaf} {
		raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), key)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "server/tls", name+".crt")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// supervisor NODE: kube-init, which starts k3s again where it is asked to. k3s then renews its
// certificates.
func supervisor(s *story, ts *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", filepath.Join(m.Root, "run/k3s-supervisor.sock"))
	if err != nil {
		return err
	}
	ts.Defer(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if line, _ := bufio.NewReader(conn).ReadString('\n'); line == "restart\n" {
				answer := "OK\n"
				if err := writeCertificates(filepath.Join(m.Root, k3sDir), 365); err != nil {
					answer = fmt.Sprintf("ERR %v\n", err)
				}
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return nil
}
