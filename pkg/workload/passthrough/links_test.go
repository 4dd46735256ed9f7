//go:build linux

package passthrough

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// space is a network namespace of its own.
type space struct{ *os.File }

func newSpace(t *testing.T) space {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("this needs root")
		}
		t.Skip("this needs root")
	}
	var s space
	err := elsewhere(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		s.File, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// in calls do on a thread in the namespace.
func (s space) in(do func() error) error {
	return elsewhere(func() error { return unix.Setns(int(s.Fd()), unix.CLONE_NEWNET) }, do)
}

// elsewhere calls do on a thread that moves first, and ends with it.
func elsewhere(move, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // permanently: the thread is not fit for others
		err := move()
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

func (s space) must(t *testing.T, do func() error) {
	t.Helper()
	if err := s.in(do); err != nil {
		t.Fatal(err)
	}
}

// Raise implements Links in the namespace.
func (s space) Raise(name string) (r Raised, err error) {
	err = s.in(func() error { r, err = Host{}.Raise(name); return err })
	return r, err
}

// Follow implements Links in the namespace.
func (s space) Follow(ctx context.Context, news func()) error {
	return s.in(func() error { return Host{}.Follow(ctx, news) })
}

func (s space) up(t *testing.T, name string) (up bool) {
	t.Helper()
	s.must(t, func() error {
		link, err := netlink.LinkByName(name)
		up = err == nil && link.Attrs().Flags&net.FlagUp != 0
		return err
	})
	return up
}

// port is one end of a cable.
func port(name string) netlink.Link {
	return &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}
}

func TestALinkOfTheKernelIsSetUpOnce(t *testing.T) {
	s := newSpace(t)
	if r, err := s.Raise("eth1"); r != Absent || err != nil {
		t.Errorf("one that is not there: %v, %v", r, err)
	}
	s.must(t, func() error { return netlink.LinkAdd(port("eth1")) })
	for _, want := range []Raised{SetUp, WasUp} {
		if r, err := s.Raise("eth1"); r != want || err != nil || !s.up(t, "eth1") {
			t.Errorf("%v instead of %v, %v", r, want, err)
		}
	}
}

func TestTheKernelTellsOfLinksThatAreDownAndOfNoOthers(t *testing.T) {
	s := newSpace(t)
	s.must(t, func() error { return netlink.LinkAdd(port("eth1")) })
	news := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Follow(ctx, func() { news <- struct{}{} }) }()
	told := func(what string) {
		t.Helper()
		select {
		case <-news:
		case <-time.After(time.Minute):
			t.Fatalf("nothing is told of %s", what)
		}
		for {
			select {
			case <-news:
			case <-time.After(50 * time.Millisecond):
				return
			}
		}
	}
	told("the beginning")
	if _, err := s.Raise("eth1"); err != nil {
		t.Fatal(err)
	}
	s.must(t, func() error { return netlink.LinkSetMTU(port("eth1"), 1400) })
	select {
	case <-news:
		t.Error("a link that is up is told of")
	case <-time.After(100 * time.Millisecond):
	}
	s.must(t, func() error { return netlink.LinkSetDown(port("eth1")) })
	told("a link that goes down")
	other := newSpace(t)
	s.must(t, func() error { return netlink.LinkSetNsFd(port("eth1"), int(other.Fd())) })
	told("a link that leaves")
	other.must(t, func() error { return netlink.LinkSetNsFd(port("eth1"), int(s.Fd())) })
	told("a link that comes back")
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestARealPortIsUpWhenItComesBackFromAnApplication(t *testing.T) {
	s, pod := newSpace(t), newSpace(t)
	s.must(t, func() error {
		if err := netlink.LinkAdd(port("eth1")); err != nil {
			return err
		}
		return netlink.LinkSetUp(port("eth1"))
	})
	var nodes pubsub.Table[types.Node]
	var api pubsub.Table[types.APIStatus]
	cluster := &kubetest.Cluster{Nodes: &nodes, API: &api}
	a := &agent{}
	a.app("app-a", "eth1")
	log, _ := logtest.NewNullLogger()
	following := make(chan struct{}, 100)
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, Configs: &a.configs, Info: &a.info, Agent: &a.word, Nodes: &nodes, API: &api, Kube: cluster,
		Links: telling{space: s, news: following},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	<-following
	s.must(t, func() error { return netlink.LinkSetNsFd(port("eth1"), int(pod.Fd())) })
	pod.must(t, func() error { return netlink.LinkSetNsFd(port("eth1"), int(s.Fd())) })
	for begin := time.Now(); !s.up(t, "eth1"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("it is not set up")
		}
	}
	cancel()
	<-done
}

// telling tells the test of the news, too.
type telling struct {
	space
	news chan struct{}
}

func (l telling) Follow(ctx context.Context, news func()) error {
	return l.space.Follow(ctx, func() {
		news()
		l.news <- struct{}{}
	})
}
