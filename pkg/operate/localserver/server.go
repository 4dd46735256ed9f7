package localserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/peer"
)

const (
	writeTimeout = 10 * time.Second // bounds how long someone may take to take a part of an answer
	// answerTimeout bounds how long someone may take to take an answer that was
	// made: the kernel takes most of them at once.
	answerTimeout = 2 * time.Second
)

type server struct {
	*boundedhttp.Server
	address string                  // as it was asked for
	release context.CancelCauseFunc // ends the streams
	there   func() bool             // others still find the listener
}

// start listens on address and answers from a goroutine that stop ends.
func (c *Component) start(ctx context.Context, at place, address string) (*server, error) {
	listener, there, err := listen(ctx, at, address)
	if err != nil {
		return nil, err
	}
	return c.serve(ctx, at, address, listener, there), nil
}

func (c *Component) serve(ctx context.Context, at place, address string, listener net.Listener, there func() bool) *server {
	base, release := context.WithCancelCause(context.WithoutCancel(ctx))
	log := c.Log.WithField("address", address)
	return &server{boundedhttp.Serve(log, "local server", &bounded{Listener: listener}, &http.Server{ //nolint:gosec // Serve sets the timeouts
		Handler:     boundedhttp.Recover(log, c.handler(at, listener.Addr())),
		ConnContext: withConn,
		BaseContext: func(net.Listener) context.Context { return base },

		DisableGeneralOptionsHandler: true, // the guard answers that too
	}), address, release, there}
}

// listen opens address. there reports whether others still find the listener at it.
func listen(ctx context.Context, at place, address string) (l net.Listener, there func() bool, err error) {
	if at == onSocket {
		s, err := listenSocket(ctx, address)
		if err != nil {
			return nil, nil, fmt.Errorf("listen on socket: %w", err)
		}
		return s, s.there, nil
	}
	var config net.ListenConfig
	if l, err = config.Listen(ctx, "tcp", address); err != nil {
		return nil, nil, fmt.Errorf("listen on %s: %w", at, err)
	}
	return l, func() bool { return true }, nil
}

// alive reports that it still listens where others find it.
func (s *server) alive() bool { return s.Alive() && s.there() }

// errStops ends the streams, and tells requests in flight that it is not their client that has gone.
var errStops = errors.New("the local server stops")

// stop returns when the address is free again. Requests in flight may still
// end, in a goroutine of wg, also when ctx is done already; streams end at once.
func (s *server) stop(ctx context.Context, wg *sync.WaitGroup) {
	s.release(errStops)
	s.Stop(ctx, wg)
}

// maxConnections bounds the connections of one listener: a browser opens six,
// and a scraper one.
const maxConnections = 64

// bounded is a listener that holds at most maxConnections. A new one gets in: the
// one goes for it whose other end has been waited for longest, for a request or
// to take an answer, so that who opens connections and says or reads nothing keeps
// nobody out.
type bounded struct {
	net.Listener

	mu   sync.Mutex
	open []*trackedConn // oldest first
}

type trackedConn struct {
	net.Conn
	owner *bounded

	mu    sync.Mutex
	waits time.Time // since when the other end is waited for; zero while an answer is made
	until time.Time // when the answer has to be taken as a whole; zero for one that goes on
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	h := &trackedConn{Conn: conn, owner: b, waits: time.Now()}
	if surplus := b.add(h); surplus != nil {
		_ = surplus.Close()
	}
	return h, nil
}

// add takes h in and returns the connection that has to go for it, if any: h
// itself where answers are made for all others.
func (b *bounded) add(h *trackedConn) (surplus *trackedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, h)
	if len(b.open) <= maxConnections {
		return nil
	}
	var longest time.Time
	for _, o := range b.open {
		if waits := o.waiting(); !waits.IsZero() && (surplus == nil || waits.Before(longest)) {
			surplus, longest = o, waits
		}
	}
	return surplus
}

// waiting is since when the other end is waited for, zero if it is not.
func (h *trackedConn) waiting() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waits
}

// Write implements net.Conn. An answer that was made has to be taken as a whole in
// time, others in each part, as streams and profiles go on.
func (h *trackedConn) Write(p []byte) (int, error) {
	until, written := h.writing(time.Now())
	defer written()
	if err := h.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return h.Conn.Write(p)
}

// writing notes that the other end is waited for, until written is called.
func (h *trackedConn) writing(now time.Time) (until time.Time, written func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until = h.until; until.IsZero() {
		until = now.Add(writeTimeout)
	}
	if !h.waits.IsZero() {
		return until, func() {}
	}
	h.waits = now
	return until, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waits = time.Time{}
	}
}

// Close implements net.Conn.
func (h *trackedConn) Close() error {
	h.owner.remove(h)
	return h.Conn.Close()
}

func (b *bounded) remove(h *trackedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.open, h); i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
}

type connKey struct{}

// withConn puts into the context of a connection's requests the connection and,
// of a unix socket, who opened it.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if h, ok := conn.(*trackedConn); ok {
		if p, err := peer.Of(h.Conn); err == nil {
			ctx = peer.NewContext(ctx, p)
		}
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// openedBy is the connection of a request, nil for none of a bounded listener.
func openedBy(ctx context.Context) *trackedConn {
	h, _ := ctx.Value(connKey{}).(*trackedConn)
	return h
}

func (h *trackedConn) answering() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits, h.until = time.Time{}, time.Time{}
}

// made notes that the answer is made. It has to be taken as a whole within a time,
// or, for 0, in parts.
func (h *trackedConn) made(within time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.waits.IsZero() {
		return
	}
	h.waits = time.Now()
	if within > 0 {
		h.until = h.waits.Add(within)
	}
}

var errInUse = errors.New("another process listens there")

// socket is a listener on a unix socket that only its owner may connect to.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // the socket itself
}

// listenSocket opens the socket at path. One on which someone listens is an
// error, and so is a file that is no socket; what a dead process left behind is
// replaced. It is made in a directory of its own and then moved, so that there
// is no moment at which others may connect.
func listenSocket(ctx context.Context, path string) (*socket, error) {
	if err := socketFree(ctx, path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other agents read the topics in it
		return nil, fmt.Errorf("make directory of socket: %w", err)
	}
	tidy(dir)
	private, err := os.MkdirTemp(dir, privateDir)
	if err != nil {
		return nil, fmt.Errorf("make room for socket: %w", err)
	}
	defer os.RemoveAll(private)
	made := filepath.Join(private, "s")
	l, err := bind(made)
	if err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	l.SetUnlinkOnClose(false) // by then the path may be someone else's
	err = os.Chmod(made, 0o600)
	var file fs.FileInfo
	if err == nil {
		file, err = os.Lstat(made)
	}
	if err == nil {
		err = failpoint.Do("write", path, func() error { return os.Rename(made, path) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put socket in its place: %w", err), l.Close())
	}
	return &socket{UnixListener: l, path: path, file: file}, nil
}

const privateDir = ".socket-" // begins the name of the directory in which a socket is made

// tidy removes what an agent left that was killed meanwhile.
func tidy(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what comes next says why
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), privateDir) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// socketFree says why path is not to be taken, nil if it is.
func socketFree(ctx context.Context, path string) error {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("check socket: %w", err)
	case file.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket, leaving it alone", path)
	}
	conn, err := peer.Dial(ctx, path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: %w", path, errInUse)
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("cannot tell whether %s is in use: %w", path, err)
}

// there reports whether who connects to the path comes to this listener.
func (s *socket) there() bool {
	file, err := os.Lstat(s.path)
	return err == nil && os.SameFile(file, s.file)
}

// Close implements net.Listener. It removes the socket, unless the path is
// another's by now.
func (s *socket) Close() error {
	var err error
	if s.there() {
		err = failpoint.Do("remove", s.path, func() error { return os.Remove(s.path) })
	}
	return errors.Join(err, s.UnixListener.Close())
}

func bind(path string) (l *net.UnixListener, err error) {
	err = peer.Reach(path, func(short string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	return l, err
}
