//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/pkg/edge/certificates"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// certificatesAreForOwnNames has what stands before a played cloudcore asked for certificates. It has the rights of
// cloudcore's ServiceAccount.
func (s *site) certificatesAreForOwnNames(ctx context.Context) {
	secret, err := s.kube.CoreV1().Secrets(namespace).Get(ctx, "cloudcoresecret", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	data := object.Map{}
	for name, value := range secret.Data {
		data[name] = base64.StdEncoding.EncodeToString(value)
	}
	certificate, err := cloud.Serving(object.Object{"data": data})
	if err != nil {
		s.Fatal(err)
	}
	cloudcore := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whose, err := join.Whose(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), []byte("key"), time.Now())
		fmt.Fprintf(w, "signed for %s %v", whose, err)
	}))
	cloudcore.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	cloudcore.StartTLS()
	defer cloudcore.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	own := filepath.Join(s.TempDir(), "cloudcore.yaml")
	s.kubeconfig("cloudcore", own)
	log := logrus.New()
	log.SetOutput(s.Output())
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- beforeAt(serving, log, own, l, cloudcore.Listener.Addr().String(), certificates.Server.Serve)
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			s.Errorf("the certificates ended with %v", err)
		}
	}()
	at := "https://" + l.Addr().String()
	const name = "edge-c"
	s.must("join", name, "--yes")
	defer func() { s.must("leave", name, "--lost", "--yes") }()
	s.until("a device that was asked to join gets a certificate", func() error {
		if got := s.wants(at, name, name); got != "200 signed for "+name+" <nil>" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	if got := s.asks(at+"/ca.crt", ""); got != "200 CA" {
		s.Errorf("the authority is %q", got)
	}
	for _, row := range []struct{ what, token, name, want string }{
		{"with the token of another one", name, "edge-z", "401 the token is not for the node"},
		{"a name that nobody asked", "edge-z", "edge-z", "403 nobody asked edge-z to join"},
		{"a member", "node-1", "node-1", "403 nobody asked node-1 to join"},
	} {
		if got := s.wants(at, row.token, row.name); !strings.HasPrefix(got, row.want) {
			s.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}

// wants asks for a certificate for a name, with a token for whose.
func (s *site) wants(at, whose, name string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, at+"/edge.crt", bytes.NewReader(request))
	if err != nil {
		s.Fatal(err)
	}
	_, token, _ := strings.Cut(join.Token([]byte("CA"), []byte("key"), whose, time.Now().Add(time.Hour)), ".")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("NodeName", name)
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, bytes.TrimSpace(body))
}
