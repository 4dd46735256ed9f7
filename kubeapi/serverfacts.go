package kubeapi

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// versionAgain is how soon the server's version may be asked for again: a
	// handshake may mean that it was restarted as another one.
	versionAgain = time.Minute
	// A certificate that ends within shakeBefore is looked at anew every
	// shakeEvery: the server may have another one by now. That is a day longer
	// than anybody is warned of its end.
	shakeBefore = 15 * 24 * time.Hour
	shakeEvery  = time.Hour
)

// serverFacts keeps what handshakes tell true until the connection is retired:
// the version is asked for once after each of them. Where all is well it asks for
// nothing more.
func (conn *connection) serverFacts(c *credentials, shake func(ctx context.Context) error) {
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
		case <-conn.ctx.Done():
			return
		case <-c.shook:
			due = true
		case <-again:
			again = nil
		case <-look.C:
			if ends := c.server().NotAfter; !ends.IsZero() && time.Until(ends) < shakeBefore {
				conn.shakeAnew(c, shake)
			}
		}
	}
}

// shakeAnew tells of its success by itself.
func (conn *connection) shakeAnew(c *credentials, shake func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(conn.ctx, answerWithin)
	defer cancel()
	if err := shake(ctx); err != nil {
		c.failed(err)
	}
}

// askVersion reports whether there is nothing more to ask: a server that refuses
// is not asked again before the next handshake.
func (conn *connection) askVersion(c *credentials) bool {
	if _, dead := conn.silence.dead(); dead {
		return false
	}
	result := conn.kube.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(conn.ctx)
	var code int
	text, err := result.StatusCode(&code).Raw()
	var said struct {
		GitVersion string `json:"gitVersion"`
	}
	switch {
	case err != nil:
		return code != 0
	case json.Unmarshal(text, &said) == nil && said.GitVersion != "" && len(said.GitVersion) <= versionLength:
		c.answers(said.GitVersion)
	}
	return true
}

// versionLength is how long a version may be, in bytes.
const versionLength = 100

// shakes is what shows the server's certificate anew; base may be any transport.
func shakes(base transport, cfg *rest.Config) func(ctx context.Context) error {
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

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
