// Package ownnetwork is where tests have a network of their own.
package ownnetwork

import (
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Do calls do on a thread with a network of its own, which it has for good, and in which loopback is up.
func Do(t testing.TB, do func() error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may make networks")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends here
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
