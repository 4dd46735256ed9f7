package sriov

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// The plug-in ends over a field of another type, and so does every one of the cluster.
func TestAResourceThatThePluginCannotDecodeIsNotTakenOver(t *testing.T) {
	for _, field := range []string{
		`"excludeTopology":"yes"`, `"additionalInfo":[]`, `"additionalInfo":{"*":"x"}`, `"additionalInfo":{"*":{"a":1}}`, `"SelectorObjs":7`,
	} {
		read := readConfig(`{"resourceList":[{"resourceName":"nics","resourcePrefix":"intel.com","selectors":{},` + field + `}]}`)
		if !read.broken || len(read.others) > 0 {
			t.Errorf("%s is taken for good", field)
		}
	}
	good := `{"resourceName":"nics","resourcePrefix":"intel.com","selectors":{},"excludeTopology":true,"additionalInfo":{"*":{"token":"a"}}}`
	if read := readConfig(`{"resourceList":[` + good + `]}`); read.broken || len(read.others) != 1 {
		t.Error("a good one is refused")
	}
}

func TestAHostileConfigMapCostsNothing(t *testing.T) {
	deep := strings.Repeat("[", 500_000)
	vfs := strings.Repeat(`{"pf":"eth5","index":1},`, 20_000)
	for name, data := range map[string]map[string]string{
		"deep":              {configKey: deep, mergedKey: deep, partKey("n2"): deep},
		"deep selectors":    {configKey: `{"resourceList":[{"resourceName":"a","selectors":` + deep + `}]}`},
		"deep and closed":   {configKey: `{"resourceList":[{"resourceName":"a","selectors":` + deep + strings.Repeat("]", 500_000) + `}]}`},
		"garbage":           {configKey: "\x00\xff", mergedKey: "\x00", partKey("n2"): "\xff"},
		"a huge part":       {partKey("n2"): `{"vfs":[` + vfs + `{}]}`},
		"a path for a port": {partKey("n2"): `{"vfs":[{"pf":"../x","index":1,"vendor":"8086","device":"154c","address":"0000:3b:0a.1"}]}`},
		"a path for a slot": {partKey("n2"): `{"vfs":[{"pf":"eth5","index":1,"vendor":"8086","device":"154c","address":"../0000:3b:0a.1"}]}`},
		"nobody's keys":     {"node..json": "{}", "node.": "{}", "../x": "{}", "node.n9.json": deep},
		"times without end": {mergedKey: `{"since":"9999-12-31T23:59:59Z"}`},
	} {
		own := []vf{at("eth5", 1, "0000:3b:0a.1")}
		f := facts{
			now: noon, own: "n1", nodes: []string{"n1", "n2"}, scanned: &scanned{vfs: own},
			config: types.SRIOVConfig{Version: "7", Data: data},
		}
		begin := time.Now()
		a := decide(f)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		if a.change == nil {
			t.Errorf("%s: the own part is not written", name)
			continue
		}
		if len(a.change.Data[configKey]) > 1000 {
			t.Errorf("%s: %d bytes are written", name, len(a.change.Data[configKey]))
		}
		if read := readConfig(a.change.Data[configKey]); read.broken || len(read.vfs) != 1 {
			t.Errorf("%s: written is %s", name, a.change.Data[configKey])
		}
	}
}

func TestNoPathOfDomainmgrLeadsOutOfSysfs(t *testing.T) {
	for name, spoil := range map[string]func(b *types.IoBundle){
		"an address":    func(b *types.IoBundle) { b.PciLong = "0000:3b:0a.1/../../../../../victim" },
		"a dot":         func(b *types.IoBundle) { b.PciLong = ".." },
		"a port":        func(b *types.IoBundle) { b.VfParams.PFIface = "../../../victim" },
		"a label":       func(b *types.IoBundle) { b.Phylabel = "../../../victimvf1/../x" },
		"a number":      func(b *types.IoBundle) { b.Phylabel = "eth5vf-1" },
		"a port itself": func(b *types.IoBundle) { b.PciLong = "0000:3b:00.0" },
	} {
		h, b := newHost(t), bundle(at("eth5", 1, "0000:3b:0a.1"))
		h.port("0000:3b:00.0", "", three()...)
		h.file("victim/driver_override", "mine")
		h.file(devicePath("0000:3b:00.0")+"driver_override", "mine")
		spoil(&b)
		if got := sysfs(h.dir).scan([]types.IoBundle{b}); len(got.vfs)+len(got.bound) > 0 || len(got.problems) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		for _, path := range []string{"victim/", devicePath("0000:3b:00.0")} {
			if text := h.read(path + "driver_override"); text != "mine" {
				t.Errorf("%s: %s was written: %q", name, path, text)
			}
		}
		if text := h.read("bus/pci/drivers_probe"); text != "" {
			t.Errorf("%s: probed %q", name, text)
		}
	}
}

func TestTenNodesThatStartAtOnceMakeNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for n := range 10 {
			names = append(names, fmt.Sprintf("n%d", n))
		}
		s := newStage(t, names...)
		defer s.end()
		for n, name := range names {
			s.agents[name].give(at("eth5", 1, fmt.Sprintf("0000:%02x:0a.1", 0x30+n)))
		}
		s.start()
		s.pass(30 * time.Second)
		if tries := len(s.cluster.Calls("setsriovconfig")); tries > 60 {
			t.Errorf("%d tries to write ten parts", tries)
		}
		s.pass(5 * time.Minute)
		s.settled(names...)
		if s.restarts() > 10 {
			t.Errorf("%d restarts", s.restarts())
		}
		s.quiet()
	})
}

// Of two nodes that correct in turn, each may find the other's work only.
func TestAnothersCorrectionIsNoSignOfCalm(t *testing.T) {
	a := at("eth5", 1, "0000:3b:0a.1")
	f := facts{now: noon, own: "n1", nodes: []string{"n1"}, scanned: &scanned{vfs: []vf{a}}, config: held(map[string][]vf{"n1": {a}})}
	f.memory.repaired, f.memory.pause = ago(time.Minute), 2*minPause
	for n := range 6 { // each look comes just after a correction
		f.config.Data[mergedKey] = string(encode(merged{Since: f.now}))
		f.memory = decide(f).memory
		if f.memory.pause == 0 {
			t.Fatalf("the pause has ended after %d looks", n+1)
		}
		f.now = f.now.Add(lookAgain)
	}
	for range 2 {
		f.memory = decide(f).memory
		f.now = f.now.Add(lookAgain)
	}
	if f.memory.pause != 0 {
		t.Error("the pause has not ended though nobody corrects any more")
	}
}
