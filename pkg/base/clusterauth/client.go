package clusterauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

var (
	// ErrOtherToken is of a server whose certificate is of another token.
	ErrOtherToken = errors.New("its certificate is of another cluster token, or of another cluster")
	// ErrOtherServer is of a server that presents a certificate of something else.
	ErrOtherServer = errors.New("its certificate is not that of a status server")
	// ErrOtherBearer is of a server that has our certificate and refuses our bearer.
	ErrOtherBearer = errors.New("its certificate is ours, and it refuses our bearer: it has another cluster token by now")
	// ErrNotTLS is of a server that answered the hello of TLS by plain HTTP, or
	// closed the connection without an answer.
	ErrNotTLS = errors.New("it does not speak TLS")
	// ErrDowngrade is of a server that is not asked by plain HTTP, since it is known to
	// speak TLS.
	ErrDowngrade = errors.New("it does not speak TLS now, and it does by its stamp or did since its boot")
)

// Client asks status servers, each by TLS or by plain HTTP as Peer and Memory have
// it, and sends the bearer by TLS only. It is an http.RoundTripper for URLs that
// begin with http:// and name the port; each request has a connection of its own.
type Client struct {
	Keys    *Keyring
	Memory  *Memory
	Peer    func(netip.Addr) Peer // nil where nothing is known of anyone; without zone, zero for a host that is asked by name
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Headers int64      // how many bytes those of an answer may have, as of boundedhttp.NewClient
	Again   func(Peer) // called before a peer is tested, or asked by plain HTTP, that was seen with TLS before; nil for nothing
}

// HTTP is a client for net/http.
func (c *Client) HTTP() *http.Client { return &http.Client{Transport: c} }

// RoundTrip implements http.RoundTripper.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, by, err := c.connect(r.Context(), r.URL.Host)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme = "http" // of what is said inside of the connection
	r.Header.Del("Authorization")
	if by != nil {
		r.Header.Set("Authorization", "Bearer "+by.bearer)
	}
	opened := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	answer, err := boundedhttp.NewClient(opened, nil, c.Headers).Transport.RoundTrip(r)
	if err != nil {
		_ = conn.Close() // also where it was not used
		return nil, err
	}
	if by != nil && answer.StatusCode == http.StatusUnauthorized && strings.Contains(answer.Header.Get("WWW-Authenticate"), `realm="`+Realm+`"`) {
		_ = answer.Body.Close()
		return nil, ErrOtherBearer
	}
	if secure, is := conn.(*tls.Conn); is {
		state := secure.ConnectionState()
		answer.TLS = &state
	}
	return answer, nil
}

// connect opens a connection to address. The credentials are those whose
// certificate the server presented, nil for a connection without TLS.
func (c *Client) connect(ctx context.Context, address string) (net.Conn, *Credentials, error) {
	p := c.peer(address)
	if p.Stamp != StampTLS && c.Memory.tests(p) && c.Again != nil {
		c.Again(p)
	}
	if p.Stamp != StampPlain {
		conn, by, err := c.hello(ctx, address)
		switch {
		case err == nil:
			c.Memory.Saw(p, time.Now())
			return conn, by, nil
		case !errors.Is(err, ErrNotTLS):
			return nil, nil, err
		case p.Stamp == StampTLS || c.Memory.sees(p):
			return nil, nil, ErrDowngrade
		}
	}
	conn, err := c.Dial(ctx, "tcp", address)
	return conn, nil, err
}

func (c *Client) peer(address string) (p Peer) {
	at, err := netip.ParseAddrPort(address)
	ip := at.Addr().Unmap().WithZone("")
	if c.Peer != nil {
		p = c.Peer(ip)
	}
	switch {
	case p.Name != "":
	case err != nil:
		p.Name = address
	default:
		p.Name = ip.String()
	}
	return p
}

// hello begins TLS. The certificate is one of ours byte by byte or it is not: no
// chain and no clock has a say in that.
func (c *Client) hello(ctx context.Context, address string) (net.Conn, *Credentials, error) {
	raw, err := c.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	ours := c.Keys.valid(time.Now())
	var by *Credentials
	heard := &heardConn{Conn: raw}
	conn := tls.Client(heard, &tls.Config{
		ServerName:         ServerName,
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does
		VerifyConnection: func(s tls.ConnectionState) (err error) {
			by, err = pinned(s.PeerCertificates[0], ours)
			return err
		},
	})
	if err = conn.HandshakeContext(ctx); err == nil {
		return conn, by, nil
	}
	_ = conn.Close()
	var header tls.RecordHeaderError
	if errors.As(err, &header) && string(header.RecordHeader[:]) == "HTTP/" ||
		!heard.any && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		return nil, nil, ErrNotTLS
	}
	return nil, nil, fmt.Errorf("TLS: %w", err)
}

// pinned is which of our credentials a server's certificate is of.
func pinned(is *x509.Certificate, ours []*Credentials) (*Credentials, error) {
	for _, c := range ours {
		if bytes.Equal(is.Raw, c.DER()) {
			return c, nil
		}
	}
	switch {
	case !slices.Contains(is.DNSNames, ServerName):
		return nil, ErrOtherServer
	case len(ours) == 0:
		return nil, fmt.Errorf("check its certificate: %w", ErrNoToken)
	}
	return nil, ErrOtherToken
}

// heardConn knows whether anything was ever read from it: one that is reset within
// the first record was not closed without an answer.
type heardConn struct {
	net.Conn
	any bool
}

// Read implements net.Conn.
func (h *heardConn) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.any = h.any || n > 0
	return n, err
}
