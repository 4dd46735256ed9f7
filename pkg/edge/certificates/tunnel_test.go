package certificates

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// signedFor is a certificate that cloudcore has signed.
func (s *site) signedFor(subject pkix.Name, until time.Time, usage x509.ExtKeyUsage) *tls.Certificate {
	s.Helper()
	key := newKey(s.T)
	return &tls.Certificate{PrivateKey: key, Certificate: [][]byte{s.signed(&x509.Certificate{
		SerialNumber: big.NewInt(4), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, s.ca, &key.PublicKey)}}
}

// opens opens a tunnel as edgecore does, and returns the connection if there is one.
func (s *site) opens(at, path, name, address string, own *tls.Certificate) (c *tls.Conn, read *bufio.Reader, code int, said string) {
	s.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if own != nil {
		config.Certificates = []tls.Certificate{*own}
	}
	c, err := tls.Dial("tcp", at, config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.Fatal(err)
	}
	// Of a request that is passed on the headers go that Connection names.
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: cloud\r\nConnection: Upgrade, %[2]s, %[4]s\r\nUpgrade: websocket\r\n%[2]s: %[3]s\r\n%[4]s: %[5]s\r\n%[2]s: other\r\n\r\n",
		path, tunnelName, name, tunnelAddress, address)
	read = bufio.NewReader(c)
	answer, err := http.ReadResponse(read, nil)
	if err != nil {
		s.Fatal(err)
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return c, read, answer.StatusCode, ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return c, read, answer.StatusCode, string(body)
}

// session does as KubeEdge's cloudcore: it believes what the request says of itself. Then it says that, and each line again.
func session(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.WriteHeader(http.StatusSwitchingProtocols)
	c, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "%s %q at %q by %s\n", r.URL, r.Header.Values(tunnelName), r.Header.Values(tunnelAddress), r.TLS.PeerCertificates[0].Subject.CommonName)
	for {
		line, err := both.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprint(c, "you said ", line)
	}
}

func TestAnEdgeNodeOpensATunnelForItsOwnNameAndAddressAlone(t *testing.T) {
	s := newSite(t)
	var passed atomic.Int64
	at := s.serve(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		session(w, r)
	}, tls.RequireAndVerifyClientCert, Server.ServeTunnels)
	later, client := time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth
	own := func(name string) *tls.Certificate { return s.signedFor(node(name), later, client) }
	foreign := newSite(t).signedFor(node("edge-1"), later, client)
	for what, c := range map[string]struct {
		path, name string
		own        *tls.Certificate
		code       int
		says       string
	}{
		"no certificate":                     {tunnelPath, "edge-1", nil, 401, "no certificate"},
		"another authority's":                {tunnelPath, "edge-1", foreign, 401, "unknown authority"},
		"one that has expired":               {tunnelPath, "edge-1", s.signedFor(node("edge-1"), time.Now().Add(-time.Minute), client), 401, "expired"},
		"one of a server":                    {tunnelPath, "edge-1", s.signedFor(node("edge-1"), later, x509.ExtKeyUsageServerAuth), 401, "usage"},
		"another node's name":                {tunnelPath, "edge-2", own("edge-1"), 401, `"system:node:edge-1", not of the node edge-2`},
		"another node's address as the name": {tunnelPath, "100.127.254.2", own("edge-1"), 401, "not of the node 100.127.254.2"},
		"no name":                            {tunnelPath, "", own(""), 403, "nobody asked"},
		"one that is of no node":             {tunnelPath, "edge-1", s.signedFor(pkix.Name{CommonName: "edge-1"}, later, client), 401, "not of the node"},
		"a name that is not in the record":   {tunnelPath, "edge-9", own("edge-9"), 403, "nobody asked edge-9 to join"},
		"another path":                       {"/", "edge-1", own("edge-1"), 404, ""},
		"a path below":                       {tunnelPath + "/x", "edge-1", own("edge-1"), 404, ""},
	} {
		if _, _, code, said := s.opens(at, c.path, c.name, "", c.own); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d %q, want %d", what, code, said, c.code)
		}
	}
	if n := passed.Load(); n != 0 {
		t.Errorf("cloudcore has %d tunnels that were refused", n)
	}
	for name, address := range map[string]string{"edge-1": "100.127.254.1", "edge-3": "edge-3"} {
		c, read, code, said := s.opens(at, tunnelPath, name, "100.127.254.2", own(name))
		if code != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %d %s", name, code, said)
		}
		if line, err := read.ReadString('\n'); err != nil || line != fmt.Sprintf("%s [%q] at [%q] by zedkube-edge-tunnel\n", tunnelPath, name, address) {
			t.Errorf("cloudcore takes it for %q, %v", line, err)
		}
		for _, line := range []string{"a\n", strings.Repeat("b", 1<<20) + "\n"} {
			go func() { _, _ = io.WriteString(c, line) }()
			if got, err := read.ReadString('\n'); err != nil || got != "you said "+line {
				t.Errorf("%d bytes come back, %v", len(got), err)
			}
		}
	}
}

// goesOn reports that what an edge node says comes back through its tunnel.
func goesOn(c *tls.Conn, read *bufio.Reader) error {
	if _, err := io.WriteString(c, "a\n"); err != nil {
		return err
	}
	line, err := read.ReadString('\n')
	if err == nil && line != "you said a\n" {
		err = fmt.Errorf("it is %q", line)
	}
	return err
}

func TestAnEdgeNodeTakesNobodyTheTunnel(t *testing.T) {
	s := newSite(t)
	var open atomic.Int64
	at := s.serve(func(w http.ResponseWriter, r *http.Request) {
		defer open.Add(-1)
		open.Add(1)
		session(w, r)
	}, tls.RequireAndVerifyClientCert, Server.ServeTunnels)
	opens := func(name string) (*tls.Conn, *bufio.Reader) {
		c, read, code, said := s.opens(at, tunnelPath, name, "", s.signedFor(node(name), time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth))
		if _, err := read.ReadString('\n'); code != http.StatusSwitchingProtocols || err != nil {
			t.Fatalf("%s: %d %s, %v", name, code, said, err)
		}
		return c, read
	}
	other, its := opens("edge-2")
	last, read := opens("edge-1")
	for range 3 { // the next one ends the former
		former := read
		if last, read = opens("edge-1"); former.Buffered() > 0 {
			t.Fatal("it has not read all")
		}
		if line, err := former.ReadString('\n'); err == nil {
			t.Errorf("the former tunnel has %q", line)
		}
	}
	// Nor do connections of somebody who has no certificate.
	for range 5 * connections {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	begun := time.Now()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+ReadyPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Do(r); err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("it is not ready: %v, %v", answer, err)
	}
	third, thirds := opens("edge-3")
	if took := time.Since(begun); took > within/2 {
		t.Errorf("it took %s", took)
	}
	if err := errors.Join(goesOn(last, read), goesOn(other, its), goesOn(third, thirds)); err != nil {
		t.Error(err)
	}
	if n := open.Load(); n != 3 {
		t.Errorf("cloudcore has %d tunnels of three edge nodes", n)
	}
}

func TestATunnelEndsWithWhatServesIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var read *bufio.Reader
	t.Run("serving", func(t *testing.T) {
		serving := &site{T: t, authority: s.authority, key: s.key, ca: s.ca}
		at := serving.serve(session, tls.RequireAndVerifyClientCert, Server.ServeTunnels)
		var code int
		_, read, code, _ = s.opens(at, tunnelPath, "edge-1", "", s.signedFor(node("edge-1"), time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth))
		if _, err := read.ReadString('\n'); err != nil || code != http.StatusSwitchingProtocols {
			t.Fatal(code, err)
		}
	})
	if _, err := read.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
}

func TestATunnelWithoutCloudcoreIsRefused(t *testing.T) {
	s := newSite(t)
	own := s.signedFor(node("edge-1"), time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth)
	at := s.serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, tls.RequireAndVerifyClientCert, Server.ServeTunnels)
	if _, _, code, said := s.opens(at, tunnelPath, "edge-1", "", own); code != http.StatusBadGateway || said != "cloudcore does not answer" {
		t.Errorf("%d %q", code, said)
	}
}
