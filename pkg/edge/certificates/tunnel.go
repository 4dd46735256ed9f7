package certificates

import (
	"cmp"
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
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

// Where edgecore opens its tunnel, and what it says there of itself (edge/pkg/edgestream).
const (
	tunnelPath    = "/v1/kubeedge/connect"
	tunnelName    = "SessionHostNameOverride"
	tunnelAddress = "SessionInternalIP"
)

// ServeTunnels serves tunnels until ctx is done. One that is open has no limit of time: the connection of an upgraded
// request is free of those of its server.
func (s Server) ServeTunnels(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, "tunnels", s.tunnels())
}

// found is the edge node that a tunnel is for, and the key of it.
type found struct{ name, address string }

// latest are the tunnels that there are, one for each edge node: cloudcore uses no other than the last.
type latest struct {
	mu  sync.Mutex
	end map[string]*context.CancelFunc
}

// begins ends the tunnel that the edge node had, and returns what says that this one has ended.
func (l *latest) begins(name string, end context.CancelFunc) (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if former := l.end[name]; former != nil {
		(*former)()
	}
	l.end[name] = &end
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.end[name] == &end {
			delete(l.end, name)
		}
	}
}

// open opens the tunnel of an edge node, until that or its next tunnel ends it.
func (l *latest) open(pass http.Handler, w http.ResponseWriter, r *http.Request, to found) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), found{}, to))
	defer cancel()
	end, release := boundedhttp.Keep(r)
	defer release()
	defer context.AfterFunc(ctx, end)() // what nobody reads is not ended by its context alone
	defer l.begins(to.name, cancel)()
	pass.ServeHTTP(w, r.WithContext(ctx))
}

func (s Server) tunnels() http.Handler {
	behind := &url.URL{Scheme: "https", Host: s.Behind}
	rarely := &rate.Sometimes{Interval: time.Second} // neither a stranger nor edgecore, which tries every 2 s, fills the log
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.URL.Path, r.Out.URL.RawPath, r.Out.URL.RawQuery = tunnelPath, "", ""
			// cloudcore finds the tunnel by this name and this address, which it gives to the one who said them last. They are set
			// here: what the request names in Connection has been taken out.
			to, _ := r.In.Context().Value(found{}).(found)
			r.Out.Header.Set(tunnelName, to.name)
			r.Out.Header.Set(tunnelAddress, cmp.Or(to.address, to.name)) // without any it would take 127.0.0.1
		},
		Transport: &http.Transport{DialTLSContext: s.dial, ResponseHeaderTimeout: passWithin, DisableKeepAlives: true},
		ErrorLog:  stdlog.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			rarely.Do(func() { s.Log.WithError(err).Warnf("no tunnel for edge node %s", r.Header.Get(tunnelName)) })
			boundedhttp.Refuse(w, "cloudcore does not answer", http.StatusBadGateway)
		},
	}
	open := &latest{end: map[string]*context.CancelFunc{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ReadyPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+tunnelPath, func(w http.ResponseWriter, r *http.Request) {
		name := r.Header.Get(tunnelName)
		address, code, err := s.admitTunnel(r, name)
		if err != nil {
			rarely.Do(func() {
				s.Log.WithError(err).Warnf("refused a tunnel for %q to %s", name, r.RemoteAddr)
			})
			boundedhttp.Refuse(w, err.Error(), code)
			return
		}
		open.open(pass, w, r, found{name, address})
	})
	return mux
}

// admitTunnel returns the address of the edge node that asks for a tunnel under a name, or says why there is none.
func (s Server) admitTunnel(r *http.Request, name string) (address string, code int, err error) {
	a, err := s.Kube.Authority()
	if err != nil {
		return "", http.StatusServiceUnavailable, err
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", http.StatusUnauthorized, errors.New("there is no certificate")
	}
	if err := certified(r.TLS.PeerCertificates[0], a, name); err != nil {
		return "", http.StatusUnauthorized, err
	}
	address, asked := s.Kube.Asked(name)
	if !asked {
		return "", http.StatusForbidden, notAsked(name)
	}
	return address, http.StatusOK, nil
}

// dial dials cloudcore itself with a certificate of this server's: the device's cannot be passed on.
func (s Server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	a, err := s.Kube.Authority()
	if err != nil {
		return nil, err
	}
	config, err := boundedhttp.Pinned(a.Serving)
	if err != nil {
		return nil, err
	}
	own, err := a.client(time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate for a tunnel: %w", err)
	}
	config.Certificates = []tls.Certificate{own}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

// client is a certificate for one handshake, after which nobody looks at it.
func (a Authority) client(now time.Time) (own tls.Certificate, err error) {
	ca, err := x509.ParseCertificate(a.CA)
	if err != nil {
		return own, err
	}
	signing, err := x509.ParseECPrivateKey(a.Key)
	if err != nil {
		return own, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return own, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "zedkube-edge-tunnel"},
		NotBefore: now.Add(-passFor), NotAfter: now.Add(passFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), signing)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
