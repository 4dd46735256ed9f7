// Package certificates stands before the ports of cloudcore at which devices get their certificates, and open their
// tunnels with them. cloudcore signs whatever name is wanted to everyone who has a token, or a certificate, and takes a
// tunnel for any name; this has it take a device's own name alone, and only one that was asked to join (docs/edge.md,
// "Which names may be nodes").
//
//	reads:  cloudcore's authority and serving certificate, the record of names
//	serves: ports 10002 and 10004 of cloudcore's pod, each by a process of its own, and passes on to 127.0.0.1
package certificates

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
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/edge/join"
)

const (
	// ReadyPath says whether cloudcore signs, which nobody outside of the pod can ask itself; of tunnels, that this is served.
	ReadyPath = "/readyz"

	connections = 200 // at once; each asks for one certificate, or has no tunnel yet
	within      = 20 * time.Second
	headerBytes = 16 << 10
	bodyBytes   = 64 << 10 // of a request for a certificate, which has less than one
	answerBytes = 1 << 20
	passWithin  = 10 * time.Second
	passFor     = time.Minute // how long the token is good that cloudcore gets instead of the device's
)

// What KubeEdge calls its headers, and how it names a node (common/types/http.go, edge/pkg/edgehub/certificate).
const (
	nameHeader  = "NodeName"
	nodePrefix  = "system:node:"
	nodesGroup  = "system:nodes"
	bearer      = "Bearer "
	contentType = "Content-Type"
)

// Authority is what cloudcore signs with, and what it serves by.
type Authority struct {
	CA      []byte // of cloudcore, DER
	Key     []byte // of the CA, with which tokens are signed
	Serving tls.Certificate
}

// Kube knows what the cluster has of cloudcore.
type Kube interface {
	// Authority returns an error while cloudcore has none yet.
	Authority() (Authority, error)
	// Asked reports whether a name was asked to join, and has not left, and the address that it was given; "" for none.
	Asked(name string) (address string, asked bool)
}

// Server serves one pod of cloudcore. Every field is required.
type Server struct {
	Log    logrus.FieldLogger
	Kube   Kube
	Behind string // where cloudcore listens, as in 127.0.0.1:10012
}

// Serve serves certificates until ctx is done.
func (s Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, "certificates", s.handler())
}

func (s Server) serve(ctx context.Context, l net.Listener, what string, h http.Handler) error {
	web := boundedhttp.Serve(s.Log, what, &boundedhttp.Newest{Listener: l, Most: connections}, &http.Server{
		Handler: h, ReadTimeout: within, ReadHeaderTimeout: within, WriteTimeout: 2 * within, IdleTimeout: within, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ClientAuth: tls.RequestClientCert,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				a, err := s.Kube.Authority()
				return &a.Serving, err
			},
		},
	})
	if err := web.Until(ctx); err != nil {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}

// handler serves what a device needs. cloudcore has more at this port, for upgrades by KubeEdge, which are switched off.
func (s Server) handler() http.Handler {
	refusals := &rate.Sometimes{Interval: time.Second} // a stranger does not fill the log
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ca.crt", func(w http.ResponseWriter, _ *http.Request) {
		a, err := s.Kube.Authority()
		if err != nil {
			boundedhttp.Refuse(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(contentType, "application/octet-stream")
		_, _ = w.Write(a.CA) // who went away needs no answer
	})
	mux.HandleFunc("GET "+ReadyPath, func(w http.ResponseWriter, r *http.Request) {
		if err := s.ready(r.Context()); err != nil {
			boundedhttp.Refuse(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /edge.crt", func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
		if err != nil {
			boundedhttp.Refuse(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		a, err := s.Kube.Authority()
		if err != nil {
			boundedhttp.Refuse(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		name := r.Header.Get(nameHeader)
		code, err := s.admit(r, a, name, request)
		if err != nil {
			refusals.Do(func() { s.Log.WithError(err).Warnf("refused a certificate for %q to %s", name, r.RemoteAddr) })
			boundedhttp.Refuse(w, err.Error(), code)
			return
		}
		s.pass(r.Context(), w, a, name, request)
	})
	return mux
}

// ready returns nil while cloudcore answers: it waits for up to 10 s before it serves, this port among the last.
func (s Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	a, err := s.Kube.Authority()
	if err != nil {
		return err
	}
	_, code, err := s.ask(ctx, a, "/ca.crt", http.NoBody, nil)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("cloudcore answers with %d", code)
	}
	return err
}

// admit says why the certificate that is wanted is not signed.
func (s Server) admit(r *http.Request, a Authority, name string, der []byte) (int, error) {
	if err := named(r, a, name); err != nil {
		return http.StatusUnauthorized, err
	}
	request, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("read the request for a certificate: %w", err)
	}
	if subject := request.Subject; subject.CommonName != nodePrefix+name || !slices.Equal(subject.Organization, []string{nodesGroup}) {
		return http.StatusForbidden, fmt.Errorf("the request is for %q of %q, not for the node %s", subject.CommonName, subject.Organization, name)
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.URIs)+len(request.EmailAddresses) > 0 {
		return http.StatusForbidden, errors.New("the request is for more names than that of a node")
	}
	if _, asked := s.Kube.Asked(name); !asked {
		return http.StatusForbidden, notAsked(name)
	}
	return http.StatusOK, nil
}

// named returns nil if the one who asks is the device of that name: by the certificate that it has, or else by a token for
// that name.
func named(r *http.Request, a Authority, name string) error {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return certified(r.TLS.PeerCertificates[0], a, name)
	}
	token, has := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	if !has {
		return errors.New("there is neither a certificate nor a token")
	}
	whose, err := join.Whose(token, a.Key, time.Now())
	if err != nil {
		return err
	}
	if name == "" || whose != name {
		return fmt.Errorf("the token is not for the node %q", name)
	}
	return nil
}

// certified returns nil if cloudcore has signed the certificate, for the node of that name.
func certified(leaf *x509.Certificate, a Authority, name string) error {
	ca, err := x509.ParseCertificate(a.CA)
	if err != nil {
		return fmt.Errorf("read cloudcore's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return fmt.Errorf("verify the certificate of the device: %w", err)
	}
	if leaf.Subject.CommonName != nodePrefix+name {
		return fmt.Errorf("the device has the certificate of %q, not of the node %s", leaf.Subject.CommonName, name)
	}
	return nil
}

func notAsked(name string) error {
	return fmt.Errorf("nobody asked %s to join: zedkube-edge join", name)
}

// pass has cloudcore sign, with a token of this server's: what the device has shown is known to be good, and a
// certificate cannot be passed on.
func (s Server) pass(ctx context.Context, w http.ResponseWriter, a Authority, name string, request []byte) {
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	signed, code, err := s.sign(ctx, a, name, request)
	switch {
	case err != nil:
		s.Log.WithError(err).Warnf("no certificate for edge node %s", name)
		boundedhttp.Refuse(w, "cloudcore does not answer", http.StatusBadGateway)
	case code != http.StatusOK:
		s.Log.Warnf("no certificate for edge node %s: cloudcore answers with %d", name, code)
		boundedhttp.Refuse(w, string(signed), code)
	default:
		s.Log.Infof("edge node %s has a certificate", name)
		w.Header().Set(contentType, "application/octet-stream")
		_, _ = w.Write(signed) // who went away asks again
	}
}

func (s Server) sign(ctx context.Context, a Authority, name string, request []byte) (signed []byte, code int, err error) {
	_, token, _ := strings.Cut(join.Token(a.CA, a.Key, name, time.Now().Add(passFor)), ".")
	return s.ask(ctx, a, "/edge.crt", bytes.NewReader(request), http.Header{"Authorization": {bearer + token}, nameHeader: {name}})
}

// ask asks cloudcore itself.
func (s Server) ask(ctx context.Context, a Authority, path string, body io.Reader, header http.Header) (said []byte, code int, err error) {
	config, err := boundedhttp.Pinned(a.Serving) // it does not name 127.0.0.1
	if err != nil {
		return nil, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.Behind+path, body)
	if err != nil {
		return nil, 0, fmt.Errorf("ask cloudcore: %w", err)
	}
	request.Header = header
	answer, err := boundedhttp.Do(boundedhttp.NewClient(nil, config, 0), request, answerBytes)
	if err != nil {
		return nil, 0, fmt.Errorf("ask cloudcore: %w", err)
	}
	return answer.Body, answer.Code, nil
}
