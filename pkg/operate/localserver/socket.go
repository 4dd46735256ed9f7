package localserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

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
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put socket in its place: %w", err), l.Close())
	}
	return &socket{UnixListener: l, path: path, file: file}, nil
}

// privateDir begins the name of the directory in which a socket is made.
const privateDir = ".socket-"

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
		err = os.Remove(s.path)
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
