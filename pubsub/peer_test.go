package pubsub

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func runDir(root string) string   { return filepath.Join(root, "run/agent/Sample") }
func sockPath(root string) string { return runDir(root) + ".sock" }
func largePath(root string) string {
	return filepath.Join(root, "persist/pubsub-large/agent/Sample")
}

// itself is this test program as another process. Under an emulator of another
// processor the kernel cannot start it alone; make names the emulator.
func itself(args ...string) *exec.Cmd {
	args = append([]string{os.Args[0]}, args...)
	if emulator := os.Getenv("EMULATOR"); emulator != "" {
		args = append([]string{emulator}, args...)
	}
	return exec.Command(args[0], args[1:]...)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// rawClient speaks the subscriber's side byte by byte.
type rawClient struct {
	t    *testing.T
	conn *net.UnixConn
}

func rawDial(t *testing.T, root string) rawClient {
	t.Helper()
	conn, err := dial(sockPath(root))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return rawClient{t, conn}
}

func (c rawClient) say(s string) {
	c.t.Helper()
	_, err := c.conn.Write([]byte(s))
	must(c.t, err)
}

func (c rawClient) hear() string {
	c.t.Helper()
	must(c.t, c.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	buf := make([]byte, packetBuffer)
	n, err := c.conn.Read(buf)
	must(c.t, err)
	return string(buf[:n])
}

func (c rawClient) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.hear(); got != w {
			c.t.Fatalf("got packet %q, want %q", got, w)
		}
	}
}

func (c rawClient) silent() {
	c.t.Helper()
	must(c.t, c.conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	if n, err := c.conn.Read(make([]byte, packetBuffer)); !os.IsTimeout(err) {
		c.t.Fatalf("got %d bytes and %v, want silence", n, err)
	}
}

// rawServer is a publisher written by hand.
type rawServer struct {
	t *testing.T
	l *net.UnixListener
}

func rawListen(t *testing.T, root string) rawServer {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(sockPath(root)), 0o700))
	l, err := listen(sockPath(root))
	must(t, err)
	s := rawServer{t, l}
	t.Cleanup(s.close)
	return s
}

func (s rawServer) close() { s.l.Close(); os.Remove(s.l.Addr().String()) }

// accept takes a subscriber and says the given packets to it.
func (s rawServer) accept(packets ...string) rawClient {
	s.t.Helper()
	must(s.t, s.l.SetDeadline(time.Now().Add(time.Minute)))
	conn, err := s.l.AcceptUnix()
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	c := rawClient{s.t, conn}
	c.expect("request Sample")
	for _, p := range packets {
		c.say(p)
	}
	return c
}
