//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// detector holds one end of a cable into each of the namespaces that it watches:
// an end is gone when the kernel has taken the other's namespace away.
type detector struct {
	space *namespace
	links *netlink.Handle
	ends  []string
}

func newDetector(t *testing.T) *detector {
	t.Helper()
	space, err := newNamespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = space.close() })
	d := &detector{space: space}
	err = space.enter(func() (err error) {
		d.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.links.Close)
	return d
}

// watch does not hold the namespace at path beyond the call.
func (d *detector) watch(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end := "end" + strconv.Itoa(len(d.ends))
	err = d.links.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: end}, PeerName: "detector", PeerNamespace: netlink.NsFd(file.Fd()),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.ends = append(d.ends, end)
}

// left counts the namespaces that are still there.
func (d *detector) left() int {
	n := 0
	for _, end := range d.ends {
		var gone netlink.LinkNotFoundError
		if _, err := d.links.LinkByName(end); !errors.As(err, &gone) {
			n++
		}
	}
	return n
}

// places are all that a cluster of hosts must not leave anything in.
func places(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	text := string(mounts)
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		text += "link " + l.Attrs().Name + "\n"
	}
	names, _ := os.ReadDir("/run/netns") // it need not be there
	for _, name := range names {
		text += "namespace " + name.Name() + "\n"
	}
	for _, dir := range []string{"/", "/etc", "/opt", "/run", "/usr/libexec", "/var/lib", "/var/log"} {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			text += "file " + dir + " " + entry.Name() + "\n"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tunables)) {
		value, _ := os.ReadFile("/proc/sys/" + name)
		text += fmt.Sprintf("tunable %s %s", name, value)
	}
	return text
}

func TestAKilledParentOfHostsLeavesNoNamespaceNoMountAndNoProcess(t *testing.T) {
	needsHosts(t)
	before := places(t)
	child, said := startChild(t, "hosts")
	if len(said) != 3 {
		t.Fatalf("the child said %q, want its directory, the switch and a host", said)
	}
	dir := said[0]
	d := newDetector(t)
	for _, path := range said[1:] {
		d.watch(t, path)
	}
	if during := places(t); during != before {
		t.Errorf("the machine has changed from\n%s\nto\n%s", before, during)
	}
	if n := d.left(); n != 2 {
		t.Fatalf("%d namespaces are there, want the switch's and the host's", n)
	}
	if running := processesOf(t, dir); len(running) != 6 {
		t.Errorf("%d processes ran, want 6: %q", len(running), running)
	}
	child.kill()
	eventually(t, 20*time.Second, "the namespaces to go", func() bool { return d.left() == 0 })
	eventually(t, 5*time.Second, "the directory to go", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	assertNothingLeft(t, dir)
	if after := places(t); after != before {
		t.Errorf("the machine had\n%s\nand has\n%s", before, after)
	}
}

func TestStoppedHostsLeaveNoNamespace(t *testing.T) {
	needsHosts(t)
	d := newDetector(t)
	w, err := newWire()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{wire: w}
	w.join()
	if err := c.takeHosts(3, &Cluster{wire: w}, true); err != nil {
		t.Fatal(err)
	}
	for i := Switch; i < 3; i++ {
		d.watch(t, c.HostCommand(i)[1][len("--net="):])
	}
	if n := d.left(); n != 4 {
		t.Fatalf("%d namespaces are there, want 4", n)
	}
	if err := c.dropHosts(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the hosts to go and the switch, which another uses, to stay", func() bool { return d.left() == 1 })
	if err := w.leave(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the switch to go", func() bool { return d.left() == 0 })
}

func TestATripIntoANamespaceEndsWhereItBegan(t *testing.T) {
	needsHosts(t)
	n, err := newNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	here := func() string {
		name, err := os.Readlink(threadNamespace)
		if err != nil {
			t.Error(err)
		}
		return name
	}
	home, abroad := here(), ""
	failed := errors.New("it failed there")
	if err := n.enter(func() error { abroad = here(); return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if abroad == home || here() != home {
		t.Errorf("from %s to %s and back to %s", home, abroad, here())
	}
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		t.Error(err)
	}
}
