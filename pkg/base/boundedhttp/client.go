// Package boundedhttp asks and answers by HTTP without believing the other end: a
// request has a deadline and a size, is not redirected and goes past any proxy; a
// server keeps few connections, each for a bounded time.
package boundedhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

// Answer is what a server answered.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte        // at most one byte more than was wanted
	Sent   time.Time     // when the question was sent
	Took   time.Duration // until the head of the answer
	TLS    bool          // it came by TLS
}

// NewClient makes a client that asks no proxy and opens a connection for each
// question by dial, which may be nil. Headers of an answer may have that many
// bytes, or for 0 as many as net/http allows.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error), secure *tls.Config, headers int64) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        secure,
		DisableKeepAlives:      true,
		DisableCompression:     true, // a small answer stays small
		MaxResponseHeaderBytes: headers,
	}}
}

// Pinned is for a client of a server that has this very certificate, wherever it is
// asked.
func Pinned(certificate tls.Certificate) (*tls.Config, error) {
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	own := x509.NewCertPool()
	own.AddCert(leaf)
	config := &tls.Config{RootCAs: own, MinVersion: tls.VersionTLS12}
	if len(leaf.IPAddresses) > 0 {
		config.ServerName = leaf.IPAddresses[0].String()
	}
	return config, nil
}

// NewSocketClient asks the server on the unix socket at path, whatever host a URL
// names: http://zedkube/api/overview. Its caller closes the idle connections at
// the end.
func NewSocketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return peer.Dial(ctx, path) },
		DisableCompression: true,
	}}
}

// Get asks for one page, for no longer than within, and reads at most one byte
// more than most of it; nothing for 0. What is to be accepted may be "".
func Get(ctx context.Context, client *http.Client, url, accept string, most int64, within time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return Do(client, r, most)
}

// Do sends a request, which is not redirected, and reads at most one byte more
// than most of the answer; nothing for 0. The deadline is the request's.
func Do(client *http.Client, r *http.Request, most int64) (Answer, error) {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := Answer{Sent: time.Now()}
	response, err := c.Do(r) //nolint:gosec // whom to ask is what its caller decides
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	a.Took, a.Code, a.Header, a.TLS = time.Since(a.Sent), response.StatusCode, response.Header, response.TLS != nil
	if most > 0 {
		a.Body, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	}
	if err == nil { // by TLS a server hears of the end of the time, and may end its answer then: that is cut
		err = r.Context().Err()
	}
	return a, err
}

// Whole is Get for a page of no more than most bytes: any answer but 200 is an
// error, and so is a longer one.
func Whole(ctx context.Context, client *http.Client, url string, most int64, within time.Duration) ([]byte, error) {
	a, err := Get(ctx, client, url, "", most, within)
	switch {
	case err != nil:
		return nil, err
	case a.Code != http.StatusOK:
		return nil, fmt.Errorf("it answers %d %s", a.Code, http.StatusText(a.Code))
	case int64(len(a.Body)) > most:
		return nil, fmt.Errorf("it answers with more than %d bytes", most)
	}
	return a.Body, nil
}
