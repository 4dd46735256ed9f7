//go:build linux

package devcluster

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

// identity is what the API server of a node proves itself with, whom it knows,
// and what the kubeconfig of the node holds to match.
type identity struct {
	ca     *authority
	server tls.Certificate
	admin  pair
}

// pair is a certificate and its key in PEM.
type pair struct{ cert, key []byte }

// newIdentity is that of a node whose authority is ca. Admin is signed by it.
func newIdentity(ca *authority, ip string, admin pair) (identity, error) {
	id := identity{ca: ca, admin: admin}
	return id, id.serve(ip, 0)
}

// serve makes a new server certificate: with skew 0 a good one, above 0 one
// that is valid only in so much time, below 0 one that has been invalid for so
// much.
func (id *identity) serve(ip string, skew time.Duration) error {
	template := serverTemplate([]net.IP{net.ParseIP(ip)})
	switch now := time.Now(); {
	case skew > 0:
		template.NotBefore = now.Add(skew)
		template.NotAfter = template.NotBefore.AddDate(1, 0, 0)
	case skew < 0:
		template.NotAfter = now.Add(skew)
		template.NotBefore = template.NotAfter.AddDate(-1, 0, 0)
	}
	made, err := id.ca.issue(template)
	if err != nil {
		return err
	}
	id.server, err = tls.X509KeyPair(made.cert, made.key)
	return err
}

// knows says whether a client has a certificate of this authority, or none: a
// token is for the API server to judge.
func (id *identity) knows(state *tls.ConnectionState) bool {
	if len(state.PeerCertificates) == 0 {
		return true
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: id.ca.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// serverTLS lets every client in, as an API server does, which answers those
// it does not know.
func (p *proxy) serverTLS() *tls.Config {
	return &tls.Config{
		ClientAuth:             tls.RequestClientCert,
		SessionTicketsDisabled: true, // a resumed session would not see a new certificate
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			cert := p.identity.server
			return &cert, nil
		},
	}
}

// RotateCA gives the API server of node i a new authority, as a new cluster on
// the same address has it, and resets the node's connections. From then on
// NodeKubeconfig(i) holds the new authority and a new client certificate.
// Clients of the old ones trust nobody there; who trusts anybody gets a 401.
func (c *Cluster) RotateCA(i int) error {
	if c.hosts != nil {
		return errNoProxy
	}
	ca, err := newAuthority("ca")
	if err != nil {
		return err
	}
	admin, err := ca.issue(clientTemplate("system:admin", "system:masters"))
	if err != nil {
		return err
	}
	id, err := newIdentity(ca, c.Nodes[i].IP, admin)
	if err != nil {
		return fmt.Errorf("make a new identity for %s: %w", c.Nodes[i].Name, err)
	}
	c.proxies[i].become(id)
	return nil
}

// SetCertSkew makes the certificate that node i meets look as if its clock were
// wrong, and resets the node's connections: above 0 the certificate becomes
// valid in so much time, below 0 it ended so long ago, 0 is good.
func (c *Cluster) SetCertSkew(i int, skew time.Duration) error {
	if c.hosts != nil {
		return errNoProxy
	}
	p := c.proxies[i]
	p.mu.Lock()
	id := p.identity
	p.mu.Unlock()
	if err := id.serve(c.Nodes[i].IP, skew); err != nil {
		return fmt.Errorf("make a skewed certificate for %s: %w", c.Nodes[i].Name, err)
	}
	p.become(id)
	return nil
}

func (p *proxy) become(id identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identity = id
	p.resetAll()
}

func serverTemplate(ips []net.IP) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func clientTemplate(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}
