package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

// clockStep is how much a clock has to change against ours to be news: what is
// measured is right to a second or two, and the row is to be quiet.
const clockStep = 10 * time.Second

// credentials writes the one row of the table of types.Credentials. It asks the
// server for nothing: what it knows comes with a handshake, in the head of any
// answer, or with the answer to a probe.
type credentials struct {
	log   logrus.FieldLogger
	table Writer[types.Credentials]
	shook chan struct{} // rings after a handshake: the server may be another

	mu  sync.Mutex
	row types.Credentials
}

func newCredentials(log logrus.FieldLogger, table Writer[types.Credentials]) *credentials {
	return &credentials{log: log, table: table, shook: make(chan struct{}, 1)}
}

// configured begins anew with what a kubeconfig holds. Which of several
// authorities the server's is shows with the first handshake.
func (c *credentials) configured(cfg *rest.Config) {
	var row types.Credentials
	if own := certificates(cfg.CertData); len(own) > 0 {
		row.Client = certificateOf(own[0])
	}
	if authorities := certificates(cfg.CAData); len(authorities) == 1 {
		row.CA = certificateOf(authorities[0])
	}
	c.change(func(r *types.Credentials) { *r = row })
}

// handshake notes whom the server has proved to be.
func (c *credentials) handshake(s tls.ConnectionState) {
	if len(s.PeerCertificates) == 0 {
		return
	}
	c.change(func(r *types.Credentials) {
		r.Server = certificateOf(s.PeerCertificates[0])
		if len(s.VerifiedChains) > 0 {
			chain := s.VerifiedChains[0]
			r.CA = certificateOf(chain[len(chain)-1])
		}
	})
	select {
	case c.shook <- struct{}{}:
	default:
	}
}

// failed notes a handshake that ended because of the server's certificate.
func (c *credentials) failed(err error) {
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) || len(bad.UnverifiedCertificates) == 0 {
		return
	}
	shown := certificateOf(bad.UnverifiedCertificates[0])
	shown.Unusable = whyUnusable(bad.Err)
	c.change(func(r *types.Credentials) { r.Server = shown })
}

// whyUnusable is why a certificate proves nothing, "" where its dates tell. The
// error's own text differs from try to try.
func whyUnusable(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ""
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "it is signed by an authority that the kubeconfig does not name"
	case errors.As(err, new(x509.HostnameError)):
		return "it is not for the address that the kubeconfig names"
	}
	return "it does not prove who the server is"
}

// dated notes the server's clock, as the head of an answer tells it to the
// second, of a request that was sent at start.
func (c *credentials) dated(head http.Header, start time.Time) {
	date, err := http.ParseTime(head.Get("Date"))
	took := time.Since(start)
	if err != nil || took > clockStep/2 {
		return
	}
	ahead := date.Add(time.Second / 2).Sub(start.Add(took / 2).Round(0)).Round(time.Second)
	c.change(func(r *types.Credentials) {
		if !r.ClockKnown || (ahead-r.ClockAhead).Abs() >= clockStep {
			r.ClockAhead, r.ClockKnown = ahead, true
		}
	})
}

// probed notes the answer to a probe: EVE makes that namespace when it installs
// the cluster.
func (c *credentials) probed(ns corev1.Namespace) {
	if ns.Name == Namespace && !ns.CreationTimestamp.IsZero() {
		c.change(func(r *types.Credentials) { r.InstalledAt = ns.CreationTimestamp.UTC() })
	}
}

func (c *credentials) answers(version string) {
	c.change(func(r *types.Credentials) { r.Version = version })
}

// change publishes what differs. It is called with every answer: a nil c, of a
// connection that nobody keeps tables of, takes nothing.
func (c *credentials) change(change func(*types.Credentials)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.row
	if change(&c.row); c.row == was {
		return
	}
	if err := c.table.Publish(types.Global, c.row); err != nil {
		c.log.WithError(err).Error("publish credentials")
	}
}

// server is the certificate that the server showed last.
func (c *credentials) server() types.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.row.Server
}

// certificates are those of a file in PEM. What is none is left out: TLS refuses
// a file that has none.
func certificates(data []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, cert)
		}
	}
	return list
}

func certificateOf(c *x509.Certificate) types.Certificate {
	return types.Certificate{Subject: c.Subject.CommonName, NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC()}
}

// told is a transport that tells what it sees of the server.
type told struct {
	transport
	to *credentials
}

// RoundTrip implements http.RoundTripper.
func (t *told) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		t.to.failed(err)
		return nil, err
	}
	t.to.dated(resp.Header, start)
	return resp, nil
}

func (t *told) forLogs() http.RoundTripper {
	if s, ok := t.transport.(interface{ forLogs() http.RoundTripper }); ok {
		return s.forLogs()
	}
	return t.transport
}

// shake shows the certificate that the server has now, on a connection of its
// own: one that lasts tells of the one it had when that began.
func (d *dialed) shake(ctx context.Context, address string) error {
	conn, err := d.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	cfg := d.TLSClientConfig.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = hostOf(address)
	}
	return tls.Client(conn, cfg).HandshakeContext(ctx)
}
