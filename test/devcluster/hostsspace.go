//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace that only open files and processes hold: it
// has no name and no mount, and is gone when the last of them is.
type namespace struct{ file *os.File }

const threadNamespace = "/proc/thread-self/ns/net"

// newNamespace makes a namespace in which loopback is up.
func newNamespace() (*namespace, error) {
	var n *namespace
	err := elsewhere(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() error {
		file, err := os.Open(threadNamespace)
		if err != nil {
			return err
		}
		n = &namespace{file}
		// A closed connection whose other end is gone gives up after one more try.
		// Where that cannot be set, it holds the namespace for a minute or two.
		_ = os.WriteFile("/proc/sys/net/ipv4/tcp_orphan_retries", []byte("1"), 0o644)
		links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer links.Close()
		return raise(links, "lo")
	})
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", errors.Join(err, n.close()))
	}
	return n, nil
}

// enter calls do on a thread of this namespace. What do opens belongs to the
// namespace for good; goroutines that it starts do not.
func (n *namespace) enter(do func() error) error {
	return elsewhere(func() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }, do)
}

// elsewhere moves this thread to another network namespace for the time of do,
// and to others if move does and they are named as in /proc/self/ns. A thread
// that does not find back must not carry anybody else: it ends with its goroutine.
func elsewhere(move, do func() error, others ...string) error {
	runtime.LockOSThread()
	var own []*os.File
	for _, kind := range append([]string{"net"}, others...) {
		file, err := os.Open("/proc/thread-self/ns/" + kind)
		if err != nil {
			runtime.UnlockOSThread()
			return fmt.Errorf("remember the %s namespace: %w", kind, err)
		}
		defer file.Close()
		own = append(own, file)
	}
	err := move()
	if err == nil {
		err = do()
	}
	for _, file := range own {
		if back := unix.Setns(int(file.Fd()), 0); back != nil {
			return errors.Join(err, fmt.Errorf("return to %s: %w", file.Name(), back))
		}
	}
	runtime.UnlockOSThread()
	return err
}

// dial connects from this namespace. The address must be numeric: names are
// looked up elsewhere.
func (n *namespace) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.enter(func() error {
		var failed error
		conn, failed = (&net.Dialer{}).DialContext(ctx, network, address)
		return failed
	})
	return conn, err
}

func (n *namespace) close() error {
	if n == nil {
		return nil
	}
	return n.file.Close()
}
