package names

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// entry is what a node wrote of a workload on network floor.
func entry(name, namespace string, addresses ...string) types.Allocation {
	return types.Allocation{AppUUID: appID(name), AppName: name, Namespace: namespace, NIUUID: netID("floor").String(), NIDisplayName: "floor", NodeName: "n1", IPv4: addresses}
}

func on(network string, entries ...types.Allocation) map[string]types.NetworkAllocations {
	row := types.NetworkAllocations{Entries: map[string]types.Allocation{}}
	for i, is := range entries {
		row.Entries[fmt.Sprint(i, is.AppUUID)] = is
	}
	return map[string]types.NetworkAllocations{types.AllocationsName(network): row}
}

func TestTheServerBlockIsThatOfEVE(t *testing.T) {
	maps := on("floor", entry("web", "shop", "10.55.0.8", "10.55.0.12"), entry("web", "shop", "10.55.0.7"), entry("db", "shop", "10.55.0.9"), entry("db", "office", "10.55.0.10"))
	both := entry("db", "shop", "10.66.0.9")
	both.NIDisplayName, both.IPv6 = "roof", []string{"fd00:66::9"}
	maps["eve-ni-roof-allocations"] = on("roof", both)["eve-ni-roof-allocations"]
	want := `internal:53 {
    errors
    cache 30
    hosts {
        10.55.0.10 db.office.floor.internal
        10.55.0.9 db.shop.floor.internal
        10.66.0.9 db.shop.roof.internal
        fd00:66::9 db.shop.roof.internal
        10.55.0.12 web.shop.floor.internal web.internal
        10.55.0.8 web.shop.floor.internal web.internal
        10.55.0.7 web.shop.floor.internal web.internal
        ttl 30
        fallthrough
    }
}
`
	z := render(maps, &action{})
	if d := cmp.Diff(want, z); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if of := render(nil, &action{}); of != "" {
		t.Errorf("of nothing %q", of)
	}
}

// hostile are entries as anyone may write them who may write ConfigMaps.
func hostile() []types.Allocation {
	var all []types.Allocation
	for _, text := range []string{"", "a b", "x\n}\n. {\n forward . 6.6.6.6\n}", "UPPER", "a.b", "-a", "{$HOME}", strings.Repeat("a", 64), "ä", "a\x00"} {
		all = append(all, entry(text, "shop", "10.55.0.1"), entry("app", text, "10.55.0.2"))
		network := entry("app", "shop", "10.55.0.3")
		network.NIDisplayName = text
		all = append(all, network)
	}
	return append(all, entry("bad", "shop",
		"", "x", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "255.255.255.255", "fe80::1", "fe80::1%eth0", "::1", "::", "ff02::1", "10.55.0.4 evil", "10.55.0.5\n}", "::ffff:127.0.0.1"))
}

func TestWhatIsNoNameOrNoAddressReachesNoCorefile(t *testing.T) {
	if z := render(on("floor", hostile()...), &action{}); z != "" {
		t.Errorf("rendered:\n%s", z)
	}
	elsewhere := entry("web", "shop", "10.55.0.7")
	if z := render(on("roof", elsewhere), &action{}); z != "" {
		t.Errorf("of a network in another one's ConfigMap:\n%s", z)
	}
	if z := render(on("floor", append(hostile(), elsewhere)...), &action{}); strings.Count(z, "\n") != 9 {
		t.Errorf("rendered:\n%s", z)
	}
}

func TestTooManyNamesAreCutAndReported(t *testing.T) {
	var all []types.Allocation
	for i := range 20000 {
		all = append(all, entry(fmt.Sprintf("a-name-of-some-length-%05d", i), "shop", "10.55.0.7"))
	}
	var a action
	z := render(on("floor", all...), &a)
	if len(z) > maxText+1000 || len(z) < maxText || len(a.left) != 1 || !strings.Contains(a.left[0], "too large") {
		t.Errorf("%d bytes, left out %v", len(z), a.left)
	}
}

func TestWhichWorkloadsHaveAddresses(t *testing.T) {
	rows := map[string]struct {
		change func(*types.AppNetworkStatus)
		want   int
	}{
		"one that is ready":                         {func(*types.AppNetworkStatus) {}, 1},
		"not one that is not activated":             {func(s *types.AppNetworkStatus) { s.Activated = false }, 0},
		"not one whose configuration is not in use": {func(s *types.AppNetworkStatus) { s.ConfigInSync = false }, 0},
		"not one that is being added":               {func(s *types.AppNetworkStatus) { s.PendingAdd = true }, 0},
		"not one that is being changed":             {func(s *types.AppNetworkStatus) { s.PendingModify = true }, 0},
		"not one that is being removed":             {func(s *types.AppNetworkStatus) { s.PendingDelete = true }, 0},
		"not one with an error":                     {func(s *types.AppNetworkStatus) { s.Error = "no bridge" }, 0},
		"not one without adapters":                  {func(s *types.AppNetworkStatus) { s.AppNetAdapterList = nil }, 0},
		"one that waits for an address": {func(s *types.AppNetworkStatus) {
			s.AppNetAdapterList[0].AssignedAddresses.IPv4Addrs = []types.AssignedAddr{{}}
		}, 1},
	}
	for name, r := range rows {
		s := app("shop", "web", "10.55.0.7", "floor")
		r.change(&s)
		f := facts{
			own: "n1", apps: map[string]types.AppNetworkStatus{appID("web"): s},
			networks: map[string]types.NetworkInstanceStatus{netID("floor").String(): {DisplayName: "floor"}},
		}
		e := wanted(f, &action{})["eve-ni-floor-allocations"]
		if len(e.mine) != r.want {
			t.Errorf("%s: %+v", name, e.mine)
		}
		for _, is := range e.mine {
			if strings.Contains(fmt.Sprint(is), "nil") {
				t.Errorf("%s: %+v", name, is)
			}
		}
	}
}

func TestAConfigMapThatCannotBeReadIsLeftAsItIs(t *testing.T) {
	f := facts{
		now: time.Now(), native: true, known: true, own: "n1",
		apps:       map[string]types.AppNetworkStatus{appID("web"): app("shop", "web", "10.55.0.7", "floor")},
		networks:   map[string]types.NetworkInstanceStatus{netID("floor").String(): {DisplayName: "floor"}},
		configMaps: map[string]types.NetworkAllocations{"eve-ni-floor-allocations": {Why: "allocations.json cannot be read"}},
	}
	for range 2 {
		a := decide(f)
		if len(a.edits) > 0 || a.again > 0 || len(a.left) != 1 {
			t.Errorf("%+v, %v, %v", a.edits, a.again, a.left)
		}
		f.now, f.memory = f.now.Add(time.Hour), a.memory
	}
}
