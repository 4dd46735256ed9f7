package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/test/cmdtest/ownnetwork"
)

// want is a cluster that wants this of the path.
type want struct {
	is  Wanted
	err error
}

func (w *want) Notify(chan<- struct{})  {}
func (w *want) Wanted() (Wanted, error) { return w.is, w.err }

// cloudcore answers who it is and what it was sent, in the network of the test's process.
func cloudcore(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				said, err := io.ReadAll(c)
				if err == nil {
					fmt.Fprintf(c, "%s: %s", name, said)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func asks(address string) string {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err.Error()
	}
	fmt.Fprint(c, "logs")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err.Error()
	}
	got, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(got)
}

func newPath(w *want) *Component {
	log, _ := test.NewNullLogger()
	return &Component{
		Log: log, Pulse: &loop.Pulse{}, Kube: w, Host: Routes{},
		ports: map[int]*listener{}, places: make(chan struct{}, connections),
	}
}

func TestWhatIsAskedOfAnEdgeNodeComesToItsCloudcore(t *testing.T) {
	one, other := cloudcore(t, "one"), cloudcore(t, "other")
	ownnetwork.Do(t, func() error {
		w := &want{is: Wanted{Block: netip.MustParsePrefix("100.127.254.0/24"), Ports: map[int]Target{10351: {To: one}, 10352: {To: other}}}}
		c := newPath(w)
		defer c.stop()
		for range 2 {
			if err := errors.Join(c.Step(t.Context()), c.Ready()); err != nil {
				return err
			}
			for at, says := range map[string]string{
				"100.127.254.1:10351": "one: logs", "100.127.254.254:10351": "one: logs", "100.127.254.1:10352": "other: logs",
			} {
				if got := asks(at); got != says {
					t.Errorf("%s says %q, want %q", at, got, says)
				}
			}
			if got := asks("127.0.0.1:10351"); strings.Contains(got, "logs") {
				t.Errorf("the host's own address says %q, as if it were an edge node's", got)
			}
		}

		// A tunnel goes over to the other cloudcore, whose connections lead there at once.
		w.is.Ports = map[int]Target{10352: {To: other}}
		if err := c.Step(t.Context()); err != nil {
			return err
		}
		if got := asks("100.127.254.1:10351"); !strings.Contains(got, "refused") {
			t.Errorf("a port that is no longer recorded says %q", got)
		}

		// Somebody removes the route.
		if err := (Routes{}).Local(netip.Prefix{}); err != nil {
			return err
		}
		if got := asks("100.127.254.1:10352"); !strings.Contains(got, "unreachable") {
			t.Errorf("without the route: %q", got)
		}
		if err := c.Step(t.Context()); err != nil {
			return err
		}
		if got := asks("100.127.254.1:10352"); got != "other: logs" {
			t.Errorf("with the route again: %q", got)
		}

		// What is wanted is not known: what there is goes on.
		w.err = errors.New("no API server")
		if err := c.Step(t.Context()); err == nil {
			t.Error("no error")
		}
		if got := asks("100.127.254.1:10352"); got != "other: logs" {
			t.Errorf("while nothing is known: %q", got)
		}

		// It is switched off.
		w.err, w.is = nil, Wanted{}
		if err := c.Step(t.Context()); err != nil {
			return err
		}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_LOCAL, Protocol: protocol}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
		if err != nil || len(routes) > 0 {
			t.Errorf("it leaves %v, %v", routes, err)
		}
		if got := asks("127.0.0.1:10352"); !strings.Contains(got, "refused") {
			t.Errorf("it still serves: %q", got)
		}
		return nil
	})
}

func TestAnotherBlockReplacesTheRouteAndNobodyElsesIsTouched(t *testing.T) {
	ownnetwork.Do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		_, foreign, err := net.ParseCIDR("100.64.0.0/24")
		if err != nil {
			return err
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: foreign, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST}); err != nil {
			return err
		}
		for _, block := range []string{"100.127.254.0/24", "100.127.253.0/24"} {
			if err := (Routes{}).Local(netip.MustParsePrefix(block)); err != nil {
				return err
			}
		}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_LOCAL}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return err
		}
		var have []string
		for _, r := range routes {
			if ones, _ := r.Dst.Mask.Size(); ones == 24 {
				have = append(have, r.Dst.String())
			}
		}
		if got := strings.Join(have, " "); got != "100.64.0.0/24 100.127.253.0/24" {
			t.Errorf("routes: %s", got)
		}
		return nil
	})
}

func TestAPortThatTheHostUsesIsAnErrorOnlyWhereItIsNeeded(t *testing.T) {
	taken, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	c := newPath(&want{is: Wanted{Block: netip.MustParsePrefix("100.127.254.0/24"), Ports: map[int]Target{port: {To: "127.0.0.1:1", Unneeded: true}}}})
	c.Host = nowhere{}
	defer c.stop()
	if err := errors.Join(c.Step(t.Context()), c.Ready()); err != nil {
		t.Errorf("a port that nobody needs: %v", err)
	}
	c.Kube.(*want).is.Ports[port] = Target{To: "127.0.0.1:1"}
	if err := c.Step(t.Context()); err == nil || c.Ready() == nil {
		t.Error("a port that is needed and taken is no error")
	}
}

// nowhere is a host without routes.
type nowhere struct{}

func (nowhere) Local(netip.Prefix) error { return nil }

// leads is a connection through a path, once it has begun, from a free port of this host to a cloudcore, with its other end.
func leads(t *testing.T, c *Component, begin func()) (here, there net.Conn, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	c.Host = nowhere{}
	c.Kube.(*want).is = Wanted{Block: netip.MustParsePrefix("127.0.0.0/24"), Ports: map[int]Target{port: {To: l.Addr().String()}}}
	begin()
	for again := time.NewTicker(10 * time.Millisecond); here == nil; <-again.C {
		if here, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			here = nil
		}
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return here, there, port
}

// ends wants the connection to end within half a minute: the kernel alone would take minutes.
func ends(t *testing.T, name string, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s goes on: %v", name, err)
	}
}

func TestTheEndEndsConnections(t *testing.T) {
	c := newPath(&want{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	here, _, _ := leads(t, c, func() { go func() { c.Run(ctx); close(ended) }() })
	stop()
	<-ended
	ends(t, "the connection", here)
}

func TestAConnectionEndsWhenItsPortLeadsElsewhere(t *testing.T) {
	c := newPath(&want{})
	defer c.stop()
	step := func() {
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	here, there, port := leads(t, c, step)
	c.Kube.(*want).is.Ports = map[int]Target{port: {To: "127.0.0.1:1"}}
	step()
	ends(t, "the connection to the former cloudcore", here)
	ends(t, "its other end", there)
}

// inAnotherProcess runs the test again, in a process whose whole network is its own, and reports whether this is that.
func inAnotherProcess(t *testing.T) bool {
	t.Helper()
	const marked = "TEST_PATH_NETWORK"
	if os.Getenv(marked) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("only root may make networks")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), marked+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// server is another host, with a network of its own: where it listens, and a function that takes its cable out.
func server(t *testing.T) (l net.Listener, cut func() error) {
	t.Helper()
	address := func(link, cidr string) error {
		at, err := netlink.LinkByName(link)
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(cidr)
		return errors.Join(err, netlink.AddrAdd(at, a), netlink.LinkSetUp(at))
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = errors.Join(netlink.LinkSetUp(lo), netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}))
	}
	if err == nil {
		err = address("here", "192.0.2.1/24")
	}
	there, errThere := netlink.LinkByName("there")
	if err := errors.Join(err, errThere); err != nil {
		t.Fatal(err)
	}
	work, results := make(chan func() error), make(chan error)
	t.Cleanup(func() { close(work) })
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends here
		results <- unix.Unshare(unix.CLONE_NEWNET)
		for do := range work {
			results <- do()
		}
	}()
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	do := func(f func() error) error { work <- f; return <-results }
	thread := 0
	if err := do(func() error { thread = unix.Gettid(); return nil }); err != nil {
		t.Fatal(err)
	}
	network, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", thread))
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	err = netlink.LinkSetNsFd(there, int(network.Fd()))
	if err == nil {
		err = do(func() (err error) {
			if err = address("there", "192.0.2.2/24"); err == nil {
				l, err = net.Listen("tcp4", "192.0.2.2:0")
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, func() error { return do(func() error { return netlink.LinkSetDown(there) }) }
}

func TestConnectionsToALostServerEndAndQuietOnesGoOn(t *testing.T) {
	if !inAnotherProcess(t) {
		return
	}
	l, cut := server(t)
	c := newPath(&want{is: Wanted{Block: netip.MustParsePrefix("100.127.254.0/24"), Ports: map[int]Target{10351: {To: l.Addr().String()}}}})
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	var here, there [3]net.Conn
	for i := range here {
		var err error
		if here[i], err = net.Dial("tcp", "100.127.254.1:10351"); err != nil {
			t.Fatal(err)
		}
		if there[i], err = l.Accept(); err != nil {
			t.Fatal(err)
		}
	}

	// For longer than lostAfter nobody says anything, and one reads nothing of more than all buffers hold.
	const much = 64 << 20
	sent := make(chan error, 1)
	go func() {
		_, err := here[2].Write(make([]byte, much))
		sent <- err
	}()
	<-time.After(lostAfter + 4*time.Second)
	for i := range 2 {
		if _, err := fmt.Fprint(there[i], "line"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(here[i], make([]byte, 4)); err != nil {
			t.Errorf("a connection that was quiet: %v", err)
		}
	}
	select {
	case err := <-sent:
		t.Fatalf("all was sent, although nothing was read: %v", err)
	default:
	}
	if _, err := io.CopyN(io.Discard, there[2], much); err != nil {
		t.Errorf("to one that reads late: %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}

	if err := cut(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(here[1], "a request")
	ends(t, "a connection with a request", here[1])
	ends(t, "an idle connection", here[0])
	again, err := net.Dial("tcp", "100.127.254.1:10351")
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "a connection after that", again)
}

func TestPortsOfTheRecord(t *testing.T) {
	record := map[string]int{"10.42.1.9": 10352, "10.42.0.7": 10351, "no address": 10353, "10.42.0.8": 70000, "10.42.0.9": 0, "10.42.0.6": 10250}
	got := fmt.Sprint(Ports(record, 10003, "", 10350, 10351, 0, 10250))
	if want := "map[10350:{10.42.0.7:10003 true} 10351:{10.42.0.7:10003 false} 10352:{10.42.1.9:10003 false}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = fmt.Sprint(Ports(record, 10003, "192.0.2.1:31003", 10350))
	if want := "map[10350:{192.0.2.1:31003 true} 10351:{192.0.2.1:31003 false} 10352:{192.0.2.1:31003 false}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Ports(nil, 10003, "", 10350); len(got) != 0 {
		t.Errorf("without a cloudcore: %v", got)
	}
}
