package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// apiFacts is what the API server answers.
type apiFacts struct {
	why     string // why it was not asked; "" where it was
	address string
	status  int
	err     error
	took    time.Duration
	server  *x509.Certificate // that it showed; nil for none
	dated   bool
	ahead   time.Duration // its clock
	here    bool          // it runs on this device
}

// askAPI asks the server of a kubeconfig whether it is there.
func askAPI(ctx context.Context, k kubeconfig) (f apiFacts) {
	if k.why != "" {
		return apiFacts{why: k.why}
	}
	u, err := url.Parse(k.Server)
	if err != nil || k.TLS == nil {
		return apiFacts{why: "the kubeconfig leads to no server"}
	}
	f.address = u.Host
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		f.here = true
	}
	start := time.Now()
	a := ask(ctx, &http.Client{Transport: k.transport(&f)}, k.Server+"/version", "")
	f.took, f.status, f.err = time.Since(start), a.status, a.err
	if f.err == nil && !a.date.IsZero() {
		f.dated, f.ahead = true, a.ahead()
	}
	return f
}

// transport trusts as the kubeconfig says and notes the certificate that the
// server shows, also one that is not trusted.
func (k kubeconfig) transport(f *apiFacts) http.RoundTripper {
	cfg := k.TLS.Clone()
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 {
			f.server = s.PeerCertificates[0]
		}
		return nil
	}
	return &authorized{token: k.Token, facts: f, next: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
}

// authorized adds a token.
type authorized struct {
	token string
	facts *apiFacts
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.next.RoundTrip(req)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) && len(bad.UnverifiedCertificates) > 0 {
		a.facts.server = bad.UnverifiedCertificates[0]
	}
	return resp, err
}
