package sriov

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// host is a sysfs in a folder.
type host struct {
	t   testing.TB
	dir string
}

func newHost(t testing.TB) host {
	h := host{t, t.TempDir()}
	h.file("bus/pci/drivers_probe", "")
	return h
}

func (h host) file(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

func (h host) link(name, target string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		h.t.Fatal(err)
	}
}

func devicePath(address string) string { return "bus/pci/devices/" + address + "/" }

// add puts a function of the port at pf there, with the driver, "" for none.
func (h host) add(pf string, v vf, driver string) {
	h.t.Helper()
	d := devicePath(v.Address)
	h.file(d+"vendor", "0x"+v.Vendor+"\n")
	h.file(d+"device", "0x"+v.Device+"\n")
	h.file(d+"driver_override", "(null)\n")
	h.link(d+"physfn", "../"+pf)
	h.file(devicePath(pf)+"net/"+v.PF+"/mtu", "1500\n")
	h.link(fmt.Sprint(devicePath(pf), "virtfn", v.Index), "../"+v.Address)
	if driver != "" {
		h.link(d+"driver", "../../../../bus/pci/drivers/"+driver)
	}
}

// port adds functions, the first of them at number 0.
func (h host) port(pf string, driver string, vfs ...vf) {
	for _, v := range vfs {
		h.add(pf, v, driver)
	}
}

func bundle(v vf) types.IoBundle {
	return types.IoBundle{
		Type: types.IoNetEthVF, Phylabel: fmt.Sprintf("%svf%d", v.PF, v.Index), PciLong: v.Address,
		VfParams: types.VfInfo{PFIface: v.PF},
	}
}

func three() []vf {
	return []vf{at("eth5", 0, "0000:3b:0a.0"), at("eth5", 1, "0000:3b:0a.1"), at("eth5", 10, "0000:3b:0b.2")}
}

func bundles(vfs []vf) (out []types.IoBundle) {
	for _, v := range vfs {
		out = append(out, bundle(v))
	}
	return out
}

func TestFunctionsAreReadFromSysfs(t *testing.T) {
	h := newHost(t)
	h.port("0000:3b:00.0", "vfio-pci", three()...)
	// The numbers are those of the port's function 0, whatever others say.
	h.file(devicePath("0000:3b:0a.1")+"vendor", "0xffff\n")
	given := bundles(three())
	slices.Reverse(given)
	given[0].VfParams = types.VfInfo{Index: 7}                     // its name comes from sysfs
	given[1].VfParams, given[1].Phylabel = types.VfInfo{}, "xvf01" // so does this
	got := sysfs(h.dir).scan(given)
	if d := cmp.Diff(three(), got.vfs); d != "" || len(got.problems)+len(got.unread)+len(got.bound) > 0 {
		t.Errorf("%s%+v", d, got)
	}
	if err := os.RemoveAll(filepath.Join(h.dir, devicePath("0000:3b:00.0"), "net")); err != nil {
		t.Fatal(err)
	}
	if got := sysfs(h.dir).scan(given); len(got.vfs) != 3 || got.vfs[2].PF != "x" {
		t.Errorf("without names in sysfs: %+v", got)
	}
}

func TestOnlyAFunctionWithoutDriverIsBound(t *testing.T) {
	h := newHost(t)
	vfs := three()
	h.add("0000:3b:00.0", vfs[0], "vfio-pci")
	h.add("0000:3b:00.0", vfs[1], "iavf")
	h.add("0000:3b:00.0", vfs[2], "")
	got := sysfs(h.dir).scan(bundles(vfs))
	if !got.vfs[0].Bound || got.vfs[1].Bound || got.vfs[2].Bound || len(got.problems) != 2 || len(got.unread)+len(got.bound) > 0 {
		t.Errorf("%+v", got)
	}
	for i, want := range []string{"(null)\n", "(null)\n", "vfio-pci"} {
		if is := h.read(devicePath(vfs[i].Address) + "driver_override"); is != want {
			t.Errorf("the override of %s is %q", vfs[i].Address, is)
		}
	}
	if probed := h.read("bus/pci/drivers_probe"); probed != vfs[2].Address {
		t.Errorf("probed is %q", probed)
	}
	h.file("bus/pci/drivers_probe", "")
	h.link(devicePath(vfs[2].Address)+"driver", "../../../../bus/pci/drivers/vfio-pci")
	if got := sysfs(h.dir).scan(bundles(vfs)); !got.vfs[2].Bound || h.read("bus/pci/drivers_probe") != "" {
		t.Errorf("with the driver %+v", got)
	}
}

func TestWhatMakesNoSenseIsNeitherReadNorBound(t *testing.T) {
	good := bundle(at("eth5", 1, "0000:3b:0a.1"))
	for name, spoil := range map[string]func(h host, b *types.IoBundle){
		"a path for an address":                func(_ host, b *types.IoBundle) { b.PciLong = "../devices/0000:3b:0a.1" },
		"an address with capitals":             func(_ host, b *types.IoBundle) { b.PciLong = "0000:3B:0a.1" },
		"an address with a line feed":          func(_ host, b *types.IoBundle) { b.PciLong += "\n" },
		"a short address":                      func(_ host, b *types.IoBundle) { b.PciLong = "3b:0a.1" },
		"a label without number":               func(_ host, b *types.IoBundle) { b.Phylabel = "eth5vf" },
		"a label without port":                 func(_ host, b *types.IoBundle) { b.Phylabel = "vf1" },
		"a number no function has":             func(_ host, b *types.IoBundle) { b.Phylabel = "eth5vf65536" },
		"a port that no resource is named for": func(_ host, b *types.IoBundle) { b.VfParams.PFIface = "eth5.100" },
		"the number of another function":       func(h host, _ *types.IoBundle) { h.link(devicePath("0000:3b:00.0")+"virtfn1", "../0000:3b:0a.7") },
		"a function that leads nowhere":        func(h host, _ *types.IoBundle) { h.link(devicePath("0000:3b:0a.1")+"physfn", "../../etc") },
		"a vendor that is none":                func(h host, _ *types.IoBundle) { h.file(devicePath("0000:3b:0a.0")+"vendor", "0x15b3f\n") },
		"a device that is no function": func(h host, _ *types.IoBundle) {
			_ = os.Remove(filepath.Join(h.dir, devicePath("0000:3b:0a.1"), "physfn"))
		},
	} {
		h, b := newHost(t), good
		h.port("0000:3b:00.0", "", three()...)
		spoil(h, &b)
		got := sysfs(h.dir).scan([]types.IoBundle{b})
		if len(got.vfs) > 0 || len(got.problems) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		if probed := h.read("bus/pci/drivers_probe"); probed != "" {
			t.Errorf("%s: probed %q", name, probed)
		}
		missing := strings.HasPrefix(name, "a device that is no")
		if missing != (len(got.unread) == 1) {
			t.Errorf("%s: unread are %q", name, got.unread)
		}
	}
}

func TestAFunctionNamedTwiceCountsOnce(t *testing.T) {
	h := newHost(t)
	h.port("0000:3b:00.0", "vfio-pci", three()...)
	h.port("0000:5e:00.0", "vfio-pci", at("eth5", 0, "0000:5e:0a.0"), at("eth5", 1, "0000:5e:0a.1"))
	got := sysfs(h.dir).scan(append(bundles(three()), bundle(at("eth5", 1, "0000:5e:0a.1")), bundle(at("eth9", 1, "0000:3b:0a.1"))))
	if d := cmp.Diff(three(), got.vfs); d != "" || len(got.problems) != 2 {
		t.Errorf("%s%q", d, got.problems)
	}
}

// hang makes reading the file hang until the returned function is called.
func (h host) hang(name string) (release func()) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	_ = os.Remove(path)
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if err := os.Rename(path, path+".old"); err != nil {
			h.t.Fatal(err)
		}
		h.file(name, "0x15b3\n")
		f, err := os.OpenFile(path+".old", os.O_RDWR, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		_, _ = f.WriteString("0x15b3\n")
		_ = f.Close()
	}
}
