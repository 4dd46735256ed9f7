package k3scerts

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/k3stls"
	"github.com/zedkube/zedkube/types"
)

// TestLeavesOfSecondsExpireAndAreRenewedByAStart is by the real clock and real sockets: a server of k3s
// presents a certificate that expires a moment later, is refused by its clients then, and is started again.
// A machine that is too busy to shake hands in that time is given longer.
func TestLeavesOfSecondsExpireAndAreRenewedByAStart(t *testing.T) {
	d := newDevice(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
	d.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		if !strings.HasSuffix(address, ":6443") {
			return nil, errors.New("connection refused")
		}
		return dial(ctx)
	}
	var serves atomic.Pointer[k3stls.K3s]
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = serves.Load().Serve(conn, "6443") }()
		}
	}()
	ask := func() error {
		conn, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return serves.Load().Ask(conn)
	}
	for life := 2 * time.Second; ; life *= 2 {
		k, err := k3stls.New(d.root, life, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		serves.Store(k)
		if err = ask(); err == nil {
			break
		}
		if life > time.Hour {
			t.Fatal(err)
		}
	}
	before := d.step(t)
	first := before.Leaves[0]
	if n := len(before.Leaves); n != len(k3stls.Leaves()) || first.State != types.CertUrgent {
		t.Fatalf("%d leaves, %+v", n, first)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for err = ask(); err == nil; err = ask() {
		<-tick.C
	}
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Fatalf("its clients say %v", err)
	}
	s := d.step(t)
	if got := s.Leaves[0]; !got.NotAfter.Equal(first.NotAfter) || got.NotAfter.After(time.Now()) || got.State != types.CertUrgent || s.ClockDoubt != "" {
		t.Errorf("expired: %+v", s)
	}
	k := serves.Load()
	if k.Stop(); ask() == nil {
		t.Error("k3s answers while it is down")
	}
	k.Life = 12 * time.Hour
	if err := errors.Join(k.Start(), ask()); err != nil {
		t.Errorf("k3s has started again: %v", err)
	}
	for _, leaf := range d.step(t).Leaves {
		if leaf.NotAfter.Before(time.Now()) {
			t.Errorf("not renewed: %+v", leaf)
		}
	}
}
