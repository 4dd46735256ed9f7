package stream

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
)

// authority signs certificates.
type authority struct {
	is  *x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{}
	a.is, a.key = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "ca"}})
	return a
}

func (a authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent, by := a.is, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

func (a authority) client(t *testing.T, name string, groups ...string) tls.Certificate {
	t.Helper()
	c, key := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.is)
	return pool
}

// rights is an API server that knows tokens, permissions and three edge nodes.
type rights struct {
	mu     sync.Mutex
	asked  []Access
	broken error
	off    time.Time
	gone   bool // there are no edge nodes any more
}

func (r *rights) Who(_ context.Context, token string) (User, bool, error) {
	return User{Name: "system:serviceaccount:kube-system:metrics-server"}, token == "good", r.broken
}

func (r *rights) May(_ context.Context, who User, what Access) (bool, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, what)
	may := slices.Contains(who.Groups, "system:masters") || strings.HasSuffix(who.Name, ":metrics-server") && what.Subresource == "metrics" && what.Verb == "get"
	return may, "", r.broken
}

func (r *rights) Node(nameOrAddress string) (Node, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return Node{}, false
	}
	switch nameOrAddress {
	case "100.127.254.1", "edge-1":
		return Node{"edge-1", "100.127.254.1", r.off}, true
	case "100.127.254.2", "edge-2":
		return Node{"edge-2", "100.127.254.2", r.off}, true
	case "edge-3":
		return Node{"edge-3", "", r.off}, true
	}
	return Node{}, false
}

func (r *rights) NodeOf(_ context.Context, namespace, pod string) (string, error) {
	return map[string]string{"default/a": "edge-1", "default/other": "edge-2", "default/bare": "edge-3", "default/member": "node-1"}[namespace+"/"+pod], r.broken
}

// stage is a server before a cloudcore, and who may ask it.
type stage struct {
	kube    *rights
	ca      authority
	address string
	got     chan *http.Request // what came to cloudcore
	hangs   atomic.Bool        // cloudcore itself
}

func newStage(t *testing.T, cloudcore http.HandlerFunc) *stage {
	t.Helper()
	servers := newAuthority(t)
	leaf, key := servers.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "system:node:zedkube-cloudstream"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), netip.MustParseAddr("100.127.254.1").AsSlice()},
	})
	certificate := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
	s := &stage{kube: &rights{}, ca: newAuthority(t), got: make(chan *http.Request, 16)}
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.got <- r.Clone(context.WithoutCancel(r.Context()))
		cloudcore(w, r)
	}))
	behind.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if s.hangs.Load() {
			<-t.Context().Done()
		}
		return nil, nil
	}}
	behind.StartTLS()
	t.Cleanup(behind.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := test.NewNullLogger()
	server := Server{Log: log, Kube: s.kube, Certificate: certificate, Clients: s.ca.pool(), Behind: at.Host}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// client dials the stage, whatever the URL says, as somebody with these certificates.
func (s *stage) client(certificates ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		},
		// The client's side is not what is tested.
		TLSClientConfig: &tls.Config{Certificates: certificates, InsecureSkipVerify: true},
	}}
}

func says(t *testing.T, client *http.Client, method, at, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, err.Error()
	}
	return answer.StatusCode, strings.TrimSpace(string(body))
}

func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestOnlyWhoMayIsPassedOn(t *testing.T) {
	s := newStage(t, answers("a line"))
	apiServer := s.client(s.ca.client(t, "system:apiserver", "system:masters"))
	for _, c := range []struct {
		what      string
		client    *http.Client
		method    string
		at, token string
		code      int
		text      string
	}{
		{"the API server reads a log", apiServer, "GET", "100.127.254.1:10351/containerLogs/default/a/b", "", 200, "a line"},
		{"metrics-server reads metrics with its token", s.client(), "GET", "100.127.254.1:10351/metrics/resource", "good", 200, "a line"},
		{"its token does not suffice to execute", s.client(), "POST", "100.127.254.1:10351/exec/default/a/b?command=sh", "good", 403, "may not create nodes/proxy of edge-1"},
		{"nor to read statistics", s.client(), "GET", "100.127.254.1:10351/stats/summary", "good", 403, "may not get nodes/stats of edge-1"},
		{"a stranger without anything", s.client(), "POST", "100.127.254.1:10351/exec/default/a/b", "", 401, "neither a client certificate"},
		{"a stranger with a token that he made up", s.client(), "GET", "100.127.254.1:10351/metrics/resource", "bad", 401, "neither a client certificate"},
		{"a stranger with a certificate of his own", s.client(newAuthority(t).client(t, "system:apiserver", "system:masters")), "GET", "100.127.254.1:10351/pods", "", 0, "certificate"},
		{"the certificate of an edge node", s.client(s.ca.client(t, "system:node:edge-2", "system:nodes")), "GET", "100.127.254.1:10351/containerLogs/default/a/b", "", 403, "may not get nodes/proxy of edge-1"},
		{"an address of no edge node", apiServer, "GET", "10.77.0.11:10351/stats/summary", "", 404, "no edge node has that: /stats/summary"},
		{"an address without a port", apiServer, "GET", "100.127.254.1/stats/summary", "", 200, "a line"},
		{"a pod that does not exist", apiServer, "GET", "100.127.254.1:10351/containerLogs/default/none/b", "", 404, "no edge node has that"},
		{"nobody learns which pods exist", s.client(), "GET", "100.127.254.1:10351/containerLogs/default/none/b", "good", 403, "may not get nodes/proxy of all nodes"},
		{"a pod of a member", apiServer, "GET", "100.127.254.1:10351/containerLogs/default/member/b", "", 404, "no edge node has that"},
		{"an exec with the UID of the pod", apiServer, "POST", "10.77.0.11:6443/exec/default/a/uid/b", "", 200, "a line"},
		{"what KubeEdge does not serve", apiServer, "GET", "100.127.254.1:10351/pods", "", 404, "no edge node has that"},
		{"a path with dots", apiServer, "GET", "100.127.254.1:10351/containerLogs/default/x/../a/b", "", 404, "no edge node has that"},
		{"a path with a hidden slash", apiServer, "GET", "100.127.254.1:10351/containerLogs/default%2Fa/b/c/d", "", 404, "no edge node has that"},
		{"no path at all", apiServer, "GET", "100.127.254.1", "", 404, "no edge node has that"},
	} {
		code, text := says(t, c.client, c.method, c.at, c.token)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %q", c.what, code, text)
		}
		select {
		case r := <-s.got:
			if code != http.StatusOK {
				t.Errorf("%s: cloudcore got it", c.what)
			}
			if r.Header.Get("Authorization") != "" {
				t.Errorf("%s: cloudcore got the token", c.what)
			}
			if r.Host != "100.127.254.1:10003" {
				t.Errorf("%s: cloudcore is asked for %q", c.what, r.Host)
			}
		default:
			if code == http.StatusOK {
				t.Errorf("%s: cloudcore did not get it", c.what)
			}
		}
	}
}

// Of a request for a pod cloudcore asks the node that has the pod, whatever the request's address, and of one for
// measurements the node that X-Forwarded-Uri names, if there is one.
func TestPermissionIsAskedForTheNodeThatCloudcoreWillAsk(t *testing.T) {
	s := newStage(t, answers("a line"))
	client := s.client(s.ca.client(t, "a", "system:masters"))
	for _, c := range []struct{ at, forwarded, node, host string }{
		{"100.127.254.1:10351/exec/default/other/b", "", "edge-2", "100.127.254.2:10003"},
		{"100.127.254.1:10351/exec/default/bare/b", "", "edge-3", "edge-3:10003"}, // it has no address, and its tunnel the name instead
		{"100.127.254.1:10351/stats/summary", "/api/v1/nodes/edge-2/proxy/stats/summary", "edge-1", "100.127.254.1:10003"},
		{"10.77.0.11:6443/stats/summary", "/api/v1/nodes/edge-2/proxy/stats/summary", "edge-2", "100.127.254.2:10003"},
		{"10.77.0.11:6443/metrics/cadvisor", "/api/v1/nodes/https:edge-2:10351/proxy/metrics/cadvisor", "edge-2", "100.127.254.2:10003"},
	} {
		s.kube.asked = nil
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-Uri", c.forwarded)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", c.at, answer.Status)
			continue
		}
		got := <-s.got
		if got.Host != c.host || got.Header.Get("X-Forwarded-Uri") != "" || len(s.kube.asked) != 1 || s.kube.asked[0].Node != c.node {
			t.Errorf("%s: cloudcore is asked for %q, %q, with the permission %+v", c.at, got.Host, got.Header.Get("X-Forwarded-Uri"), s.kube.asked)
		}
	}
	for _, forwarded := range []string{"/api/v1/nodes/edge-2", "/api/v1/nodes//proxy/stats", "edge-2", "/api/v1/pods/edge-2/proxy/stats/summary", "/api/v1/nodes/edge-9/proxy/stats/summary"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://10.77.0.11:6443/stats/summary", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-Uri", forwarded)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %s", forwarded, answer.Status)
		}
	}
}

func TestEachPathTakesThePermissionThatAKubeletWantsForIt(t *testing.T) {
	for path, want := range map[string]string{
		"/stats/summary": "stats", "/metrics": "metrics", "/metrics/cadvisor": "metrics", "/logs/syslog": "log", "/checkpoint/a/b/c": "checkpoint",
		"/pods": "pods proxy", "/runningPods/": "pods proxy", "/healthz/ping": "healthz proxy", "/configz": "configz proxy",
		"/exec/a/b/c": "proxy", "/containerLogs/a/b/c": "proxy", "/metricsother": "proxy", "/": "proxy", "": "proxy",
	} {
		var got []string
		for _, a := range wanted(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}, "n") {
			got = append(got, a.Subresource)
			if a.Verb != "get" || a.Node != "n" {
				t.Errorf("%s: %+v", path, a)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s takes %v, want %s", path, got, want)
		}
	}
}

func TestARequestEndsWhenItsNodeLeaves(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client := s.client(s.ca.client(t, "system:apiserver", "system:masters"))
	go func() {
		<-s.got // it is under way
		s.kube.mu.Lock()
		s.kube.gone = true
		s.kube.mu.Unlock()
	}()
	if code, text := says(t, client, "GET", "100.127.254.1:10351/containerLogs/default/a/b?follow=true", ""); code != http.StatusBadGateway || text != "edge node edge-1 is no longer in the cluster" {
		t.Errorf("%d %q", code, text)
	}
}

func TestAnEdgeNodeIsNotBlamedForCloudcore(t *testing.T) {
	s := newStage(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	client := s.client(s.ca.client(t, "system:apiserver", "system:masters"))
	if code, text := says(t, client, "GET", "100.127.254.1:10351/containerLogs/default/a/b?follow=true", ""); code != http.StatusBadGateway || text != "the connection to cloudcore has ended" {
		t.Errorf("%d %q", code, text)
	}
}

// KubeEdge sends no header of a log before its first line.
func TestALogThatIsFollowedMayBeSilentWhileItsNodeIsReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/talks") {
			_, _ = io.WriteString(w, "a line\n")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	client := s.client(s.ca.client(t, "system:apiserver", "system:masters"))
	type answer struct {
		code int
		text string
	}
	begins := func(path string) chan answer {
		got := make(chan answer, 1)
		go func() {
			code, text := says(t, client, "GET", "100.127.254.1:10351"+path, "")
			got <- answer{code, text}
		}()
		return got
	}
	silent, talks := begins("/containerLogs/default/a/silent?follow=true"), begins("/containerLogs/default/a/talks?follow=true")
	if whole := <-begins("/containerLogs/default/a/silent?follow=false"); whole.code != http.StatusBadGateway || !strings.Contains(whole.text, "has not answered within 10s") {
		t.Errorf("a log that is not followed: %+v", whole)
	}
	select {
	case got := <-silent:
		t.Fatalf("a silent log: %+v", got)
	case got := <-talks:
		t.Fatalf("a log that has begun: %+v", got)
	case <-time.After(time.Second):
	}
	s.kube.mu.Lock()
	s.kube.off = time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)
	s.kube.mu.Unlock()
	if got := <-silent; got.code != http.StatusBadGateway || !strings.Contains(got.text, "edge-1 is offline since 2026-11-01T02:03:04Z") {
		t.Errorf("a silent log of a node that is lost: %+v", got)
	}
	if got := <-talks; got.code != http.StatusOK || !strings.Contains(got.text, "EOF") {
		t.Errorf("a log that has begun, of a node that is lost: %+v", got)
	}
}

func TestNoAnswerIsBelievedOnceItsRequestHasEnded(t *testing.T) {
	for name, cause := range map[string]error{
		"the node is lost":                        offlineError{Node{Name: "edge-1"}},
		"who asked has gone, or this server ends": context.Canceled,
		"the container has ended":                 nil,
	} {
		ctx, end := context.WithCancelCause(t.Context())
		r := (&http.Request{}).WithContext(ctx)
		begun := http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader("a line"))}
		if err := believe(&begun); err != nil {
			t.Errorf("%s later: %v", name, err)
		}
		if cause != nil {
			end(cause)
		}
		if text, err := io.ReadAll(begun.Body); string(text) != "a line" || !errors.Is(err, cause) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err := believe(&http.Response{StatusCode: http.StatusOK, Request: r, Body: http.NoBody}); !errors.Is(err, cause) {
			t.Errorf("%s before it answers: %v", name, err)
		}
		end(nil)
	}
}

func TestNobodyIsPassedOnWhileTheAPIServerCannotBeAsked(t *testing.T) {
	s := newStage(t, answers("a line"))
	s.kube.broken = errors.New("connection refused")
	for _, client := range []*http.Client{s.client(), s.client(s.ca.client(t, "system:apiserver", "system:masters"))} {
		if code, text := says(t, client, "GET", "100.127.254.1:10351/pods", "good"); code != 503 || !strings.Contains(text, "it cannot be asked") {
			t.Errorf("%d %q", code, text)
		}
	}
	if len(s.got) > 0 {
		t.Error("cloudcore got it")
	}
}

func TestAnEdgeNodeThatIsOfflineIsNotAsked(t *testing.T) {
	s := newStage(t, answers("a line"))
	s.kube.off = time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)
	code, text := says(t, s.client(s.ca.client(t, "a", "system:masters")), "GET", "100.127.254.1:10351/containerLogs/default/a/c", "")
	if code != 502 || !strings.Contains(text, "edge-1 is offline since 2026-11-01T02:03:04Z") {
		t.Errorf("%d %q", code, text)
	}
	if code, text := says(t, s.client(), "GET", "100.127.254.1:10351/containerLogs/default/a/c", ""); code != 401 {
		t.Errorf("a stranger is told %d %q", code, text)
	}
}

func TestAnEdgeNodeThatDoesNotAnswerHangsNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	began := time.Now()
	code, text := says(t, s.client(s.ca.client(t, "a", "system:masters")), "GET", "100.127.254.1:10351/containerLogs/default/a/c", "")
	if code != 502 || !strings.Contains(text, "has not answered within 10s") {
		t.Errorf("%d %q", code, text)
	}
	if took := time.Since(began); took < answerWithin {
		t.Errorf("it was given up after %s", took)
	}
}

func TestACloudcoreThatHangsHangsNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, answers("a line"))
	s.hangs.Store(true)
	began := time.Now()
	if code, text := says(t, s.client(s.ca.client(t, "a", "system:masters")), "GET", "100.127.254.1:10351/containerLogs/default/a/c", ""); code != 502 {
		t.Errorf("%d %q", code, text)
	}
	if took := time.Since(began); took > answerWithin {
		t.Errorf("it was given up after %s", took)
	}
}

func TestALogThatIsFollowedComesAsItIsWrittenAndLastsLongerThanAnAnswerMayTake(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			_, _ = io.WriteString(w, "line\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://100.127.254.1:10351/containerLogs/default/a/c?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.client(s.ca.client(t, "a", "system:masters")).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		if i == 1 {
			<-time.After(answerWithin + time.Second)
		}
		next <- struct{}{}
	}
}

func TestWhoHoldsConnectionsOpenKeepsNobodyWaiting(t *testing.T) {
	next := make(chan struct{})
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "line\n")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("follow") == "true" {
			<-next
			_, _ = io.WriteString(w, "line\n")
		}
	})
	client := s.client(s.ca.client(t, "a", "system:masters"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://100.127.254.1:10351/containerLogs/default/a/c?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for range connections + 10 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	begun := time.Now()
	if code, text := says(t, client, "GET", "100.127.254.1:10351/containerLogs/default/a/c", ""); code != http.StatusOK || text != "line" {
		t.Errorf("another log is %d %q", code, text)
	}
	if took := time.Since(begun); took > headerWithin/2 {
		t.Errorf("it took %s", took)
	}
	close(next)
	if all, err := io.ReadAll(answer.Body); err != nil || string(all) != "line\nline\n" {
		t.Errorf("the log that is followed is %q, %v", all, err)
	}
}

func TestAnUpgradedConnectionCarriesBothWays(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "SPDY/3.1" {
			t.Errorf("cloudcore sees %v", r.Header)
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "SPDY/3.1")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		line, err := both.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(c, "you said %s", line)
	})
	c, err := tls.Dial("tcp", s.address, &tls.Config{Certificates: []tls.Certificate{s.ca.client(t, "a", "system:masters")}, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /exec/default/a/c HTTP/1.1\r\nHost: 100.127.254.1:10351\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	read := bufio.NewReader(c)
	answer, err := http.ReadResponse(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer.Status)
	}
	fmt.Fprint(c, "ls\n")
	if line, err := read.ReadString('\n'); err != nil || line != "you said ls\n" {
		t.Errorf("%q, %v", line, err)
	}
}
