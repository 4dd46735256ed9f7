package boundedhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
)

// certified is a certificate whose authority nobody knows.
func certified(t *testing.T) tls.Certificate {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
}

func TestAServerServesByTLSWithLimitsOfItsOwnUntilTheEnd(t *testing.T) {
	log, _ := test.NewNullLogger()
	certificate := certified(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan bool, 1)
	s := Serve(log, "server", l, &http.Server{
		MaxHeaderBytes: 4 * MaxHeaderBytes, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.TLS != nil
			Refuse(w, "no", http.StatusForbidden)
		}),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Until(ctx) }()
	config, err := Pinned(certificate)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(config *tls.Config) (Answer, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", 3*MaxHeaderBytes))
		return Do(NewClient(nil, config, 0), r, 10)
	}
	a, err := ask(config)
	if err != nil || a.Code != http.StatusForbidden || string(a.Body) != "no" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("%d %q %v, %v", a.Code, a.Body, a.Header, err)
	}
	if !<-asked {
		t.Error("it came without TLS")
	}
	if a, err := ask(nil); err == nil {
		t.Errorf("one whose certificate nobody knows answers %d", a.Code)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := ask(config); err == nil {
		t.Error("nobody listens, and answers")
	}
}

func TestAServerThatFailsSaysWhy(t *testing.T) {
	log, hook := test.NewNullLogger()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(log, "server", l, &http.Server{Handler: http.NotFoundHandler()})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Until(ctx); err == nil || ctx.Err() != nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
	if e := hook.LastEntry(); e == nil || e.Message != "server failed" {
		t.Errorf("logged is %v", e)
	}
}
