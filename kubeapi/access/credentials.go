package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

// ClockStep is how much a clock has to change against ours to be news: what is
// measured is right to a second or two, and the row is to be quiet.
const ClockStep = 10 * time.Second

// Credentials writes the one row of the table of types.Credentials. It asks the
// server for nothing: what it knows comes with a handshake, in the head of any
// answer, or with the answer to a probe.
type Credentials struct {
	log   logrus.FieldLogger
	table Writer[types.Credentials]
	shook chan struct{} // rings after a handshake: the server may be another

	mu      sync.Mutex
	row     types.Credentials
	refused map[string]time.Time // when the server last refused what is named so
}

// NewCredentials returns a record of the certificates that are used, which keeps the table up to date.
func NewCredentials(log logrus.FieldLogger, table Writer[types.Credentials]) *Credentials {
	return &Credentials{log: log, table: table, shook: make(chan struct{}, 1)}
}

// Configured begins again with what a kubeconfig holds. Which of several
// authorities the server's is shows with the first handshake.
func (c *Credentials) Configured(cfg *rest.Config) {
	var row types.Credentials
	if own := certificates(cfg.CertData); len(own) > 0 {
		row.Client = CertificateOf(own[0])
	}
	if authorities := certificates(cfg.CAData); len(authorities) == 1 {
		row.CA = CertificateOf(authorities[0])
	}
	c.Change(func(r *types.Credentials) { *r, c.refused = row, nil })
}

// Handshake notes whom the server has proved to be.
func (c *Credentials) Handshake(s tls.ConnectionState) {
	if len(s.PeerCertificates) == 0 {
		return
	}
	c.Change(func(r *types.Credentials) {
		r.Server = CertificateOf(s.PeerCertificates[0])
		if len(s.VerifiedChains) > 0 {
			chain := s.VerifiedChains[0]
			r.CA = CertificateOf(chain[len(chain)-1])
		}
	})
	select {
	case c.shook <- struct{}{}:
	default:
	}
}

// Failed notes a handshake that ended because of the server's certificate.
func (c *Credentials) Failed(err error) {
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) || len(bad.UnverifiedCertificates) == 0 {
		return
	}
	shown := CertificateOf(bad.UnverifiedCertificates[0])
	shown.Unusable = whyUnusable(bad.Err)
	c.Change(func(r *types.Credentials) { r.Server = shown })
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

// Dated notes the server's clock, as the head of an answer tells it to the
// second, of a request that was sent at start.
func (c *Credentials) Dated(head http.Header, start time.Time) {
	date, err := http.ParseTime(head.Get("Date"))
	took := time.Since(start)
	if err != nil || took > ClockStep/2 {
		return
	}
	ahead := date.Add(time.Second / 2).Sub(start.Add(took / 2).Round(0)).Round(time.Second)
	c.Change(func(r *types.Credentials) {
		if !r.ClockKnown || (ahead-r.ClockAhead).Abs() >= ClockStep {
			r.ClockAhead, r.ClockKnown = ahead, true
		}
	})
}

// probed notes the answer to a probe: EVE makes that namespace when it installs
// the cluster.
func (c *Credentials) probed(ns corev1.Namespace) {
	if ns.Name == Namespace && !ns.CreationTimestamp.IsZero() {
		c.Change(func(r *types.Credentials) { r.InstalledAt = ns.CreationTimestamp.UTC() })
	}
}

// Change publishes what differs. It is called with every answer: a nil c, of a
// connection that nobody keeps tables of, takes nothing.
func (c *Credentials) Change(change func(*types.Credentials)) {
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

// Server is the certificate that the server showed last.
func (c *Credentials) Server() types.Certificate {
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

// CertificateOf is what is reported of a certificate.
func CertificateOf(c *x509.Certificate) types.Certificate {
	return types.Certificate{Subject: c.Subject.CommonName, NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC()}
}

// CredentialsRecorder is a transport that tells what it sees of the server.
type CredentialsRecorder struct {
	RoundTripper
	To *Credentials
}

// RoundTrip implements http.RoundTripper.
func (t *CredentialsRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		t.To.Failed(err)
		return nil, err
	}
	t.To.Dated(resp.Header, start)
	t.To.judged(req, resp)
	return resp, nil
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
		cfg.ServerName, _, _ = net.SplitHostPort(address)
	}
	return tls.Client(conn, cfg).HandshakeContext(ctx)
}

const (
	// versionAgain is how soon the server's version may be asked for again: a
	// handshake may mean that it was restarted as another one.
	versionAgain = time.Minute
	// A certificate that expires within shakeBefore is looked at again every
	// shakeEvery: the server may have another one by now. That is a day longer
	// than anybody is warned of its expiry.
	shakeBefore = 15 * 24 * time.Hour
	shakeEvery  = time.Hour
)

// ServerFacts keeps what handshakes tell true until the connection is retired:
// the version is asked for once after each of them. Where all is well it asks for
// nothing more.
func (conn *Connection) ServerFacts(c *Credentials, shake func(ctx context.Context) error) {
	look := time.NewTicker(shakeEvery)
	defer look.Stop()
	var again <-chan time.Time // when the version may be asked for
	var next time.Time
	due := false
	for {
		if due && again == nil {
			if wait := time.Until(next); wait > 0 {
				again = time.After(wait)
			} else {
				next = time.Now().Add(versionAgain)
				due = !conn.askVersion(c)
				continue
			}
		}
		select {
		case <-conn.Ctx.Done():
			return
		case <-c.shook:
			due = true
		case <-again:
			again = nil
		case <-look.C:
			if ends := c.Server().NotAfter; !ends.IsZero() && time.Until(ends) < shakeBefore {
				conn.shakeAgain(c, shake)
			}
		}
	}
}

// shakeAgain reports its success by itself.
func (conn *Connection) shakeAgain(c *Credentials, shake func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(conn.Ctx, AnswerWithin)
	defer cancel()
	if err := shake(ctx); err != nil {
		c.Failed(err)
	}
}

// askVersion reports whether there is nothing more to ask: a server that refuses
// is not asked again before the next handshake.
func (conn *Connection) askVersion(c *Credentials) bool {
	if _, dead := conn.Liveness.Dead(); dead {
		return false
	}
	result := conn.Kube.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(conn.Ctx)
	var code int
	text, err := result.StatusCode(&code).Raw()
	var said struct {
		GitVersion string `json:"gitVersion"`
	}
	switch {
	case err != nil:
		return code != 0
	case json.Unmarshal(text, &said) == nil && said.GitVersion != "" && len(said.GitVersion) <= VersionLength:
		c.Change(func(r *types.Credentials) { r.Version = said.GitVersion })
	}
	return true
}

// VersionLength is how long a version may be, in bytes.
const VersionLength = 100

// Handshaker is what shows the server's certificate again; base may be any transport.
func Handshaker(base RoundTripper, cfg *rest.Config) func(ctx context.Context) error {
	d, ok := base.(*dialed)
	address := addressOf(cfg.Host)
	if !ok || address == "" || d.TLSClientConfig == nil {
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error { return d.shake(ctx, address) }
}

// addressOf is host:port of a server's URL, "" where it is none of TLS.
func addressOf(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
