// Package interop meets package pubsub as another process would: from the
// bytes of docs/wire.md, "Socket protocol", with system calls and base64.
// Nothing of pubsub is used on the side that is played here, so that a mistake
// made in both roles at once does not go unseen.
package interop

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The places of the topic Probe of agent "peer" below a root.
func socketPath(root string) string { return filepath.Join(root, "run/peer/Probe.sock") }
func dirPath(root string) string    { return filepath.Join(root, "run/peer/Probe") }
func largeDir(root string) string   { return filepath.Join(root, "persist/pubsub-large/peer/Probe") }

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// shortRoot is a directory whose sockets fit a socket address.
func shortRoot(tb testing.TB) string {
	tb.Helper()
	root, err := os.MkdirTemp("/tmp", "interop")
	must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(root) })
	return root
}

// socket is one end of a connection, or a listener.
type socket struct {
	tb testing.TB
	fd int
}

func newSocket(tb testing.TB) socket {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	must(tb, err)
	s := socket{tb, fd}
	s.patience(10 * time.Second)
	return s
}

// with is the same socket for another test.
func (s socket) with(tb testing.TB) socket { return socket{tb, s.fd} }

// patience bounds every accept and read from now on.
func (s socket) patience(d time.Duration) {
	s.tb.Helper()
	tv := syscall.NsecToTimeval(d.Nanoseconds())
	must(s.tb, syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &tv))
	must(s.tb, syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &tv))
}

// connect dials our publication.
func connect(tb testing.TB, root string) socket {
	tb.Helper()
	s := newSocket(tb)
	connectTo(tb, s, socketPath(root))
	return s
}

// listen binds the socket that our subscription looks for.
func listen(tb testing.TB, root string) socket {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(socketPath(root)), 0o755))
	s := newSocket(tb)
	must(tb, syscall.Bind(s.fd, &syscall.SockaddrUnix{Name: socketPath(root)}))
	must(tb, syscall.Listen(s.fd, 8))
	return s
}

// accept takes a connection and the request on it.
func (s socket) accept() socket {
	s.tb.Helper()
	fd, _, err := syscall.Accept4(s.fd, syscall.SOCK_CLOEXEC)
	for err == syscall.EINTR {
		fd, _, err = syscall.Accept4(s.fd, syscall.SOCK_CLOEXEC)
	}
	must(s.tb, err)
	c := socket{s.tb, fd}
	c.patience(10 * time.Second)
	c.expect("request Probe")
	return c
}

func (s socket) close() { syscall.Close(s.fd) }

// say sends packets.
func (s socket) say(packets ...string) {
	s.tb.Helper()
	for _, p := range packets {
		for {
			err := syscall.Sendto(s.fd, []byte(p), syscall.MSG_NOSIGNAL, nil)
			if err == nil {
				break
			}
			if err != syscall.EINTR {
				s.tb.Fatalf("send %.60q: %v", p, err)
			}
		}
	}
}

// hear returns the next packet; the end of the connection is "".
func (s socket) hear() string {
	s.tb.Helper()
	buf := make([]byte, 65536)
	for {
		n, err := syscall.Read(s.fd, buf)
		switch err {
		case nil:
			return string(buf[:n])
		case syscall.EINTR:
		case syscall.ECONNRESET:
			return ""
		default:
			s.tb.Fatalf("read: %v", err)
		}
	}
}

func (s socket) expect(packets ...string) {
	s.tb.Helper()
	for _, want := range packets {
		if got := s.hear(); got != want {
			s.tb.Fatalf("got packet %q, want %q", got, want)
		}
	}
}

// silent checks that nothing comes for a while.
func (s socket) silent() {
	s.tb.Helper()
	s.patience(150 * time.Millisecond)
	defer s.patience(10 * time.Second)
	if n, err := syscall.Read(s.fd, make([]byte, 65536)); err != syscall.EAGAIN {
		s.tb.Fatalf("got %d bytes and %v, want silence", n, err)
	}
}

// write puts a file where it belongs by rename, as EVE's publishers do.
func write(tb testing.TB, path, content string) {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf("tmp%d", time.Now().UnixNano()))
	must(tb, os.WriteFile(temp, []byte(content), 0o600))
	must(tb, os.Rename(temp, path))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("did not happen: %s", what)
		}
	}
}

// words are the parts of a packet.
func words(packet string) []string { return strings.Split(packet, " ") }

func connectTo(tb testing.TB, s socket, path string) {
	tb.Helper()
	must(tb, syscall.Connect(s.fd, &syscall.SockaddrUnix{Name: path}))
}

func decodeB64(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}
