package reach

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The addresses of this test: one that listens and one that comes.
var (
	here  = netip.MustParseAddr("127.46.7.1")
	there = netip.MustParseAddr("127.46.7.2")
)

// free are n ports that nobody has at an address.
func free(t *testing.T, at netip.Addr, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func TestListenersHearWhoComesAndGiveTheirPortsBack(t *testing.T) {
	ports := free(t, here, 3)
	served, err := net.Listen("tcp", host(here, ports[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	ears := Listen(t.Context(), here, ports)
	if !errors.Is(ears.Failed[ports[2]], ErrServed) || len(ears.Failed) != 1 {
		t.Errorf("failed: %v", ears.Failed)
	}
	got := Try(t.Context(), there, here, ports[:1])
	if d := cmp.Diff([]types.ReachPort{{Port: ports[0], Outcome: types.ReachOpen}}, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if got := ears.Await(t.Context(), there, ports[:1]); !slices.Equal(got, ports[:1]) || len(ears.Heard(here)) > 0 {
		t.Errorf("heard at %v, from itself at %v", got, ears.Heard(here))
	}
	ears.Close()
	for _, try := range Try(t.Context(), there, here, ports[:2]) {
		if try.Outcome != types.ReachRefused {
			t.Errorf("after it was closed port %d is %s", try.Port, try.Outcome)
		}
	}
}

// The kernel has taken the connection, and the device is too busy to see it yet.
func TestWhoConnectedIsHeardAlsoWhereThatIsSeenLate(t *testing.T) {
	ears := Listen(t.Context(), here, free(t, here, 1))
	defer ears.Close()
	port := slices.Collect(maps.Keys(ears.open))
	came := netip.AddrPortFrom(there, uint16(port[0]))
	time.AfterFunc(100*time.Millisecond, func() {
		ears.mu.Lock()
		defer ears.mu.Unlock()
		ears.heard[came] = true
	})
	if got := ears.Await(t.Context(), there, port); !slices.Equal(got, port) {
		t.Errorf("heard at %v", got)
	}
	if got := ears.Await(t.Context(), here, port); len(got) > 0 {
		t.Errorf("of a host that did not come it heard at %v", got)
	}
	served := []int{1} // by somebody else
	if got := ears.Await(t.Context(), there, served); !slices.Equal(got, port) {
		t.Errorf("heard at %v", got)
	}
}

func TestAnAddressOfSomebodyElseCannotBeListenedAt(t *testing.T) {
	ears := Listen(t.Context(), netip.MustParseAddr("192.0.2.7"), []int{6443})
	defer ears.Close()
	if err := ears.Failed[6443]; err == nil || errors.Is(err, ErrServed) {
		t.Errorf("got %v", err)
	}
}

func TestTheMemoryOfListenersIsBounded(t *testing.T) {
	ports := free(t, here, 1)
	ears := Listen(t.Context(), here, ports)
	defer ears.Close()
	for i := range maxHeard + 50 {
		Try(t.Context(), netip.AddrFrom4([4]byte{127, 46, byte(8 + i/200), byte(1 + i%200)}), here, ports)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		ears.mu.Lock()
		n := len(ears.heard)
		ears.mu.Unlock()
		if n == maxHeard {
			return
		}
		if n > maxHeard {
			t.Fatalf("%d are remembered", n)
		}
	}
	t.Error("not all were heard")
}

func TestWhatBecameOfATry(t *testing.T) {
	for want, err := range map[types.ReachOutcome]error{
		types.ReachOpen: nil, types.ReachRefused: &net.OpError{Err: syscall.ECONNREFUSED}, types.ReachSilent: &net.OpError{Err: context.DeadlineExceeded},
		types.ReachUnreachable: &net.OpError{Err: syscall.EHOSTUNREACH},
	} {
		if got := outcome(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
	if got := outcome(&net.OpError{Err: syscall.ETIMEDOUT}); got != types.ReachSilent {
		t.Errorf("a timeout of the kernel's is %s", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Try(ended, there, here, []int{1}); got[0].Outcome != types.ReachSilent {
		t.Errorf("a try that was given up is %s", got[0].Outcome)
	}
}

// answering serves each connection at a port of its own.
func answering(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(here, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}

func TestAHelloTellsWhoSpeaksTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secure := func(config *tls.Config) func(net.Conn) {
		config.Certificates = []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}
		return func(conn net.Conn) { _ = tls.Server(conn, config).HandshakeContext(t.Context()) }
	}
	for name, c := range map[string]struct {
		serve func(net.Conn)
		fails bool
	}{
		"TLS":                               {secure(&tls.Config{}), false},
		"TLS for who has a certificate":     {secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert}), false},
		"old TLS for who has a certificate": {secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}), false},
		"plain text":                        {func(c net.Conn) { _, _ = c.Write([]byte("220 ready\r\n")) }, true},
		"nothing":                           {func(net.Conn) {}, true},
		"silence":                           {func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<16)); _, _ = c.Read(make([]byte, 1)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			within := time.Minute
			if name == "silence" {
				within = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			if err := Hello(ctx, there, here, answering(t, c.serve)); (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}
