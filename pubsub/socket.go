package pubsub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// network is SOCK_SEQPACKET: one message per packet.
const network = "unixpacket"

// maxSocketPath is what fits sockaddr_un beside its final zero byte.
const maxSocketPath = 107

// reach calls f with an address of the socket at path. A path that is too
// long for a socket address is reached through its open directory, so that a
// root may lie anywhere.
func reach(path string, f func(*net.UnixAddr) error) error {
	if len(path) <= maxSocketPath {
		return f(&net.UnixAddr{Name: path, Net: network})
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	return f(&net.UnixAddr{Name: short, Net: network})
}

func dial(path string) (conn *net.UnixConn, err error) {
	err = reach(path, func(a *net.UnixAddr) error {
		conn, err = net.DialUnix(network, nil, a)
		return err
	})
	return conn, err
}

// listen binds path. A socket on which somebody listens is an error; one that
// a dead process left behind is replaced.
func listen(path string) (l *net.UnixListener, err error) {
	conn, err := dial(path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("bind %s: %w", path, ErrInUse)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove stale socket: %w", err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("bind %s: cannot determine whether it is in use: %w", path, err)
	}
	err = reach(path, func(a *net.UnixAddr) error {
		l, err = net.ListenUnix(network, a)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", path, err)
	}
	// The address may be the way round through /proc, so we unlink ourselves.
	l.SetUnlinkOnClose(false)
	// Values may be secret: who may connect must not depend on the umask.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect socket: %w", err)
	}
	return l, nil
}
