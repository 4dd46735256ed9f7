package pubsub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

// network is SOCK_SEQPACKET: one message per packet.
const network = "unixpacket"

func dial(path string) (conn *net.UnixConn, err error) {
	err = peer.Reach(path, func(short string) error {
		conn, err = net.DialUnix(network, nil, &net.UnixAddr{Name: short, Net: network})
		return err
	})
	return conn, err
}

// listen binds path. A socket on which someone listens is an error; one that
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
	err = peer.Reach(path, func(short string) error {
		l, err = net.ListenUnix(network, &net.UnixAddr{Name: short, Net: network})
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
