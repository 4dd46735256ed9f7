// Package peer says which process is at the other end of a unix socket, and who
// is behind it, as the kernel tells.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Peer is the process that opened a connection.
type Peer struct {
	UID uint32
	PID int // 0 where it is in another PID namespace
}

var errNoUnixSocket = errors.New("no credentials: this is no unix socket")

// Of asks the kernel who opened conn, a connection of a unix socket
// (SO_PEERCRED).
func Of(conn net.Conn) (Peer, error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return Peer{}, errNoUnixSocket
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", err)
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", err)
	}
	if asked != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", asked)
	}
	return Peer{UID: cred.Uid, PID: int(cred.Pid)}, nil
}

// Self is this process.
func Self() Peer { return Peer{UID: uint32(os.Geteuid()), PID: os.Getpid()} }

// IsTrusted reports whether p may ask for everything: root, and the user of this
// process where that is not root.
func (p Peer) IsTrusted() bool { return p.UID == 0 || p.UID == Self().UID }

// key is the key of the peer in a context.
type key struct{}

// NewContext returns ctx with p in it.
func NewContext(ctx context.Context, p Peer) context.Context { return context.WithValue(ctx, key{}, p) }

// FromContext returns the peer whose request ctx belongs to.
func FromContext(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(key{}).(Peer)
	return p, ok
}
