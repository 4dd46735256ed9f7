//go:build linux

package devcluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openProxies puts a proxy on each node's address, on the API server's port.
func (c *Cluster) openProxies() error {
	front, err := tls.LoadX509KeyPair(c.pki("front-proxy-client.crt"), c.pki("front-proxy-client.key"))
	if err != nil {
		return err
	}
	seed := cmp.Or(c.seed, rand.Uint64())
	at := c.block.seat()
	target := &url.URL{Scheme: "https", Host: at.address(at.ports.api)}
	for i, n := range c.Nodes {
		id, err := newIdentity(c.ca, n.IP, pair{c.read("admin.crt"), c.read("admin.key")})
		if err != nil {
			return err
		}
		p := &proxy{
			address: addr(net.ParseIP(n.IP), apiPort), identity: id, fault: None,
			rand:  rand.New(rand.NewPCG(seed, uint64(i))),
			conns: map[*gate]bool{}, watches: map[*watchBody]bool{}, passing: closedChannel(), changed: make(chan struct{}),
		}
		p.forwardTo(target, n.IP, &tls.Config{RootCAs: c.ca.pool(), Certificates: []tls.Certificate{front}})
		quiet := log.New(io.Discard, "", 0) // clients that give up are what this is for
		p.forward.ErrorLog = quiet
		p.server = &http.Server{
			Handler: p, ErrorLog: quiet, TLSConfig: p.serverTLS(),
			ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, conn.(*tls.Conn).NetConn())
			},
		}
		if err := p.listen(); err != nil {
			return err
		}
		c.proxies = append(c.proxies, p)
	}
	return nil
}

// connKey finds the connection of a request in its context.
type connKey struct{}

// forwardTo makes the way to the API server: from the node's own address, and
// with a certificate that may say who really asks.
func (p *proxy) forwardTo(target *url.URL, from string, config *tls.Config) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	streams := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
	}
	// What becomes another protocol, as exec does, cannot do so in HTTP/2.
	upgrades := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config.Clone(), DisableCompression: true}
	p.idle = func() { streams.CloseIdleConnections(); upgrades.CloseIdleConnections() }
	p.forward = &httputil.ReverseProxy{
		FlushInterval:  -1,
		ModifyResponse: p.keepWatch,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			identify(r)
		},
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Upgrade") != "" {
				return upgrades.RoundTrip(r)
			}
			if err := hold(r); err != nil {
				return nil, err
			}
			return streams.RoundTrip(r)
		}),
	}
}

// hold reads the body of a request before it is passed on. An API server may refuse one whose body it has
// not read: then the end of its answer waits for the rest of the body, and who sends that, for the answer.
func hold(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// identify replaces the client's certificate, which ends here, by the headers
// that stand for it. A request without one is whatever its token says.
func identify(r *httputil.ProxyRequest) {
	for name := range r.Out.Header {
		if strings.HasPrefix(name, "X-Remote-") {
			r.Out.Header.Del(name)
		}
	}
	if certs := r.In.TLS.PeerCertificates; len(certs) > 0 {
		r.Out.Header.Set("X-Remote-User", certs[0].Subject.CommonName)
		r.Out.Header["X-Remote-Group"] = certs[0].Subject.Organization
	}
}

// ServeHTTP answers a request of the node, or gives it a fault.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	p.mu.Lock()
	plan, id := p.plan, p.identity
	p.mu.Unlock()
	if !plan.meets(r) {
		plan.slow, plan.code, plan.expired, plan.reset = 0, 0, false, false
	}
	if plan.slow > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(plan.slow):
		}
	}
	switch {
	case !id.knows(r.TLS):
		p.faulted.Add(1)
		refuse(w, http.StatusUnauthorized)
	case plan.code != 0 && p.chance() < plan.part:
		p.faulted.Add(1)
		refuse(w, plan.code)
	case plan.expired && isWatch(r) && resumes(r):
		p.faulted.Add(1)
		sayExpired(w)
	case plan.reset:
		p.forward.ServeHTTP(&cutter{ResponseWriter: w, left: plan.after, cut: func() {
			p.faulted.Add(1)
			<-time.After(20 * time.Millisecond) // what was written gets out, which the reset would take back
			r.Context().Value(connKey{}).(*gate).reset()
		}}, r)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// chance is a random number of at least 0 and less than 1.
func (p *proxy) chance() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.Float64()
}

// resumes says whether a watch goes on where another, or a list, ended.
func resumes(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	return version != "" && version != "0"
}

// refuse answers as an API server that has trouble does: overloaded, in plain
// text and with a time to wait, otherwise with a Status.
func refuse(w http.ResponseWriter, code int) {
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", code)
		return
	}
	answer(w, code, status(code))
}

// sayExpired answers a watch with the one event that says it came too late.
func sayExpired(w http.ResponseWriter) {
	gone := status(http.StatusGone)
	gone.Message = "too old resource version: 1 (2)"
	answer(w, http.StatusOK, map[string]any{"type": "ERROR", "object": gone})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails when the client is gone
}

// reasons are those of the statuses an API server answers with in trouble.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

func status(code int) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: http.StatusText(code), Reason: reasons[code], Code: int32(code),
	}
}
