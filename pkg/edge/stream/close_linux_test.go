package stream

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/edge/settings"
	"github.com/zedkube/zedkube/test/cmdtest/ownnetwork"
)

const behind = settings.StreamBehind

func up(name string, addresses ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		address, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		address.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, address); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// dials connects within that time.
type dials func(address string, port int, within time.Duration) error

// pod makes a pod's network on this thread with somebody outside of it, and returns how he and somebody inside dial.
func pod() (outside, inside dials, err error) {
	here := unix.Gettid()
	type job struct{ do func() error }
	jobs, results := make(chan job), make(chan error)
	stranger := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			stranger <- -1
			return
		}
		stranger <- unix.Gettid()
		for j := range jobs {
			results <- j.do()
		}
	}()
	there := <-stranger
	if there < 0 {
		return nil, nil, os.ErrPermission
	}
	ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", there))
	if err != nil {
		return nil, nil, err
	}
	defer ns.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth1", PeerNamespace: netlink.NsFd(int(ns.Fd()))}
	if err := netlink.LinkAdd(veth); err != nil {
		return nil, nil, fmt.Errorf("thread %d: %w", here, err)
	}
	if err := up("eth0", "192.0.2.1/24", "fd00::1/64"); err != nil {
		return nil, nil, err
	}
	elsewhere := func(do func() error) error { jobs <- job{do}; return <-results }
	if err := elsewhere(func() error { return up("eth1", "192.0.2.2/24", "fd00::2/64") }); err != nil {
		return nil, nil, err
	}
	dial := func(address string, port int, within time.Duration) error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(address, fmt.Sprint(port)), within)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	return func(a string, p int, within time.Duration) error {
		return elsewhere(func() error { return dial(a, p, within) })
	}, dial, nil
}

func TestACloseOfThePortStopsWhatComesFromOutsideOnly(t *testing.T) {
	ownnetwork.Do(t, func() error {
		outside, inside, err := pod()
		if err != nil {
			return err
		}
		for _, port := range []int{settings.StreamPort, behind - 1, behind} {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
			if err != nil {
				return err
			}
			defer l.Close()
		}
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err != nil {
			return err
		}
		dialled := []string{"192.0.2.1", "fd00::1"}
		for _, a := range addresses {
			if a.IP.IsLinkLocalUnicast() {
				dialled = append(dialled, a.IP.String()+"%eth1")
			}
		}
		const soon, atAll = 300 * time.Millisecond, time.Minute
		reached := func(address string) bool { // an address needs a moment
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for range 600 {
				if outside(address, behind, soon) == nil {
					return true
				}
				<-again.C
			}
			return false
		}
		for _, a := range dialled {
			if !reached(a) {
				return fmt.Errorf("%s cannot be reached before it is closed, which proves nothing", a)
			}
		}
		for range 2 { // a container that starts again does it again
			if err := Close(behind-1, behind); err != nil {
				return err
			}
		}
		for _, a := range dialled {
			for _, port := range []int{behind - 1, behind} {
				if err := outside(a, port, soon); err == nil {
					t.Errorf("port %d is reached from outside at %s", port, a)
				}
			}
			if err := outside(a, settings.StreamPort, atAll); err != nil {
				t.Errorf("port %d is not reached from outside: %v", settings.StreamPort, err)
			}
		}
		for _, a := range []string{"127.0.0.1", "::1", "192.0.2.1", "fd00::1"} {
			if err := inside(a, behind, atAll); err != nil {
				t.Errorf("port %d is not reached from inside at %s: %v", behind, a, err)
			}
		}
		return nil
	})
}

func TestARuleBeforeTheOneThatClosesIsAnError(t *testing.T) {
	ownnetwork.Do(t, func() error {
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table = netlink.FAMILY_V4, fromInside, unix.RT_TABLE_LOCAL
		if err := netlink.RuleAdd(r); err != nil {
			return err
		}
		err := Close(behind, behind)
		if err == nil || !slices.Contains(strings.Fields(err.Error()), "before") {
			t.Errorf("a rule that opens the port again: %v", err)
		}
		return nil
	})
}
