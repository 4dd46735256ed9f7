package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/edge/join"
)

// site is a cluster with an authority, and a played cloudcore that signs what it is asked to.
type site struct {
	*testing.T
	authority Authority
	none      atomic.Pointer[error] // in place of the authority
	key       *ecdsa.PrivateKey
	ca        *x509.Certificate
	passed    atomic.Int64 // requests that cloudcore was asked
	code      atomic.Int64 // what it answers with, 0 for a certificate
	address   string
}

func (s *site) Authority() (Authority, error) {
	if none := s.none.Load(); none != nil {
		return Authority{}, *none
	}
	return s.authority, nil
}

func (s *site) Asked(name string) (string, bool) {
	address, asked := map[string]string{"edge-1": "100.127.254.1", "edge-2": "100.127.254.2", "edge-3": ""}[name]
	return address, asked
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "KubeEdge"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	s.authority.CA = s.signed(template, template, &s.key.PublicKey)
	var err error
	if s.ca, err = x509.ParseCertificate(s.authority.CA); err != nil {
		t.Fatal(err)
	}
	if s.authority.Key, err = x509.MarshalECPrivateKey(s.key); err != nil {
		t.Fatal(err)
	}
	serving := newKey(t)
	s.authority.Serving = tls.Certificate{PrivateKey: serving, Certificate: [][]byte{s.signed(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)},
	}, s.ca, &serving.PublicKey)}}
	s.address = s.serve(s.cloudcore, tls.NoClientCert, Server.Serve)
	return s
}

// serve has something serve before a cloudcore, and returns where.
func (s *site) serve(cloudcore http.HandlerFunc, clients tls.ClientAuthType, serve func(Server, context.Context, net.Listener) error) string {
	s.Helper()
	behind := httptest.NewUnstartedServer(cloudcore)
	roots := x509.NewCertPool()
	roots.AddCert(s.ca)
	behind.TLS = &tls.Config{
		Certificates: []tls.Certificate{s.authority.Serving}, ClientAuth: clients, ClientCAs: roots,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}
	behind.StartTLS()
	s.Cleanup(behind.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	log, _ := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- serve(Server{Log: log, Kube: s, Behind: behind.Listener.Addr().String()}, ctx, l) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return l.Addr().String()
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *site) signed(template, parent *x509.Certificate, key *ecdsa.PublicKey) []byte {
	s.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, s.key)
	if err != nil {
		s.Fatal(err)
	}
	return der
}

// cloudcore does as KubeEdge's: who has a valid token gets what he wants.
func (s *site) cloudcore(w http.ResponseWriter, r *http.Request) {
	s.passed.Add(1)
	if code := int(s.code.Load()); code != 0 {
		http.Error(w, "no", code)
		return
	}
	whose, err := join.Whose(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), s.authority.Key, time.Now())
	if r.URL.Path == "/ca.crt" {
		return
	}
	if err != nil || whose != r.Header.Get("NodeName") || r.URL.Path != "/edge.crt" {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	der, err1 := io.ReadAll(r.Body)
	request, err2 := x509.ParseCertificateRequest(der)
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(s.signed(&x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: request.Subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, s.ca, request.PublicKey.(*ecdsa.PublicKey)))
}

func (s *site) token(name string, until time.Duration) string {
	_, token, _ := strings.Cut(join.Token(s.authority.CA, s.authority.Key, name, time.Now().Add(until)), ".")
	return token
}

// device is somebody who wants a certificate.
type device struct {
	name    string // what he says that he is
	subject pkix.Name
	token   string
	own     *tls.Certificate // what he has already
	dns     []string
	key     *ecdsa.PrivateKey
}

func node(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

// ask asks as edgecore does.
func (s *site) ask(d device) (code int, body []byte) {
	s.Helper()
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: d.subject, DNSNames: d.dns}, d.key)
	if err != nil {
		s.Fatal(err)
	}
	return s.send(d, "/edge.crt", request)
}

func (s *site) send(d device, path string, request []byte) (code int, body []byte) {
	s.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.ca)
	config := &tls.Config{RootCAs: roots, ServerName: "192.0.2.1"}
	if d.own != nil {
		config.Certificates = []tls.Certificate{*d.own}
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://"+s.address+path, bytes.NewReader(request))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("NodeName", d.name)
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, body
}

// joined is a device that has its first certificate.
func (s *site) joined(name string) device {
	s.Helper()
	d := device{name: name, subject: node(name), token: s.token(name, time.Hour), key: newKey(s.T)}
	code, der := s.ask(d)
	if code != http.StatusOK {
		s.Fatalf("%s: %d %s", name, code, der)
	}
	d.own, d.token = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: d.key}, ""
	return d
}

func TestADeviceGetsACertificateForItsOwnNameAlone(t *testing.T) {
	s := newSite(t)
	edge := s.joined("edge-1")
	if code, said := s.ask(edge); code != http.StatusOK {
		t.Fatalf("with its certificate it gets no newer one: %d %s", code, said)
	}
	if code, ca := s.send(device{}, "/ca.crt", nil); code != http.StatusOK || !bytes.Equal(ca, s.authority.CA) {
		t.Errorf("the authority is %d, %d bytes", code, len(ca))
	}
	if code, said := s.send(device{}, ReadyPath, nil); code != http.StatusOK {
		t.Errorf("it is not ready: %d %s", code, said)
	}
	before := s.passed.Load()
	foreign := newSite(t).joined("edge-1")
	for what, c := range map[string]struct {
		change func(*device)
		code   int
	}{
		"without anything":                   {func(d *device) { d.own = nil }, 401},
		"a token for another name":           {func(d *device) { d.own, d.token = nil, s.token("edge-2", time.Hour) }, 401},
		"a token for no name":                {func(d *device) { d.own, d.token = nil, s.token("", time.Hour) }, 401},
		"a token for no name, and none said": {func(d *device) { d.own, d.token, d.name, d.subject = nil, s.token("", time.Hour), "", node("") }, 401},
		"a token that has expired":           {func(d *device) { d.own, d.token = nil, s.token("edge-1", -time.Second) }, 401},
		"a token of another cluster": {func(d *device) {
			d.own, d.token = nil, join.Token(nil, []byte("x"), "edge-1", time.Now().Add(time.Hour))
		}, 401},
		"a certificate of another cluster":     {func(d *device) { d.own = foreign.own }, 401},
		"its certificate, as another node":     {func(d *device) { d.name, d.subject = "edge-2", node("edge-2") }, 401},
		"its certificate, another name wanted": {func(d *device) { d.subject = node("edge-2") }, 403},
		"its certificate, a member's name":     {func(d *device) { d.subject = node("node-1") }, 403},
		"its token, a member's name":           {func(d *device) { d.own, d.token, d.subject = nil, s.token("edge-1", time.Hour), node("node-1") }, 403},
		"its token, an administrator's name": {func(d *device) {
			d.own, d.token, d.subject.Organization = nil, s.token("edge-1", time.Hour), []string{"system:masters"}
		}, 403},
		"its certificate, a second group":        {func(d *device) { d.subject.Organization = []string{"system:nodes", "system:masters"} }, 403},
		"its certificate, a name of cloudcore's": {func(d *device) { d.dns = []string{"cloudcore"} }, 403},
		"a name that nobody asked": {func(d *device) {
			d.own, d.token, d.name, d.subject = nil, s.token("node-1", time.Hour), "node-1", node("node-1")
		}, 403},
	} {
		d := edge
		c.change(&d)
		if code, said := s.ask(d); code != c.code {
			t.Errorf("%s: %d %s, want %d", what, code, said, c.code)
		}
	}
	if code, said := s.send(edge, "/edge.crt", []byte("x")); code != http.StatusBadRequest {
		t.Errorf("no request: %d %s", code, said)
	}
	if code, _ := s.send(edge, "/edge.crt", make([]byte, bodyBytes+1)); code != http.StatusBadRequest {
		t.Errorf("a huge request: %d", code)
	}
	for _, path := range []string{"/node/node-1", "/nodeupgrade", "/task/a/name/b/node/c/status", "/"} {
		if code, _ := s.send(edge, path, nil); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if asked := s.passed.Load() - before; asked != 0 {
		t.Errorf("cloudcore was asked %d times", asked)
	}
}

func TestADeviceIsToldWhyThereIsNoCertificate(t *testing.T) {
	s := newSite(t)
	d := device{name: "edge-1", subject: node("edge-1"), token: s.token("edge-1", time.Hour), key: newKey(t)}
	s.code.Store(http.StatusTeapot)
	if code, said := s.ask(d); code != http.StatusTeapot || string(said) != "no\n" {
		t.Errorf("cloudcore refuses: %d %s", code, said)
	}
	if code, said := s.send(device{}, ReadyPath, nil); code != http.StatusServiceUnavailable {
		t.Errorf("it is ready although cloudcore is not: %d %s", code, said)
	}
	none := errors.New("cloudcore has no authority yet")
	s.none.Store(&none)
	if code, said := s.ask(d); code != 0 || s.passed.Load() != 2 {
		t.Errorf("without an authority: %d %s", code, said)
	}
}

func TestWhoHoldsConnectionsOpenKeepsNobodyWaiting(t *testing.T) {
	s := newSite(t)
	for range 2 * connections {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	begun := time.Now()
	if code, said := s.send(device{}, ReadyPath, nil); code != http.StatusOK {
		t.Errorf("it is not ready: %d %s", code, said)
	}
	if s.joined("edge-1"); time.Since(begun) > within/2 {
		t.Errorf("it took %s", time.Since(begun))
	}
}
