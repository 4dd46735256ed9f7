package clusterstatus

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// The bootstrap node has 10.244.244.2 for the cluster and 192.168.1.5.
func TestWhichPoolsCanBeHandedOut(t *testing.T) {
	for cidr, problem := range map[string]string{
		"192.168.1.24/29":         "",
		"192.168.1.6/32":          "",
		"10.244.0.0/17":           "", // next to the cluster address
		"172.16.0.7/29":           "", // with a host part
		"fd00:8::/64":             "",
		"::/0":                    "", // of another family
		"0.0.0.0/0":               "overlaps the cluster address",
		"10.244.244.2/32":         "overlaps the cluster address",
		"::ffff:10.244.244.0/120": "overlaps the cluster address",
		"192.168.0.0/16":          "overlaps address 192.168.1.5 of port ethernet1",
		"::ffff:192.168.1.0/120":  "overlaps address 192.168.1.5 of port ethernet1",
		"192.168.1.24":            "is not a CIDR",
		"192.168.1.24/33":         "is not a CIDR",
		"192.168.1.24/29 ":        "is not a CIDR",
		"":                        "is not a CIDR",
	} {
		pool := types.LBInterface{Interface: "ethernet1", IPPrefix: cidr}
		got := decide(known(config(lb(pool)), eth0(), eth1("192.168.1.5"))).publish
		if e := got.LBConfigError.Error; !strings.Contains(e, problem) || (e == "") != (problem == "") || len(got.LBInterfaces) != 0 == (e != "") {
			t.Errorf("%q: %v with %q, want %q", cidr, got.LBInterfaces, e, problem)
		}
	}
}

func TestAnInterfaceMayHaveSeveralPools(t *testing.T) {
	first, second := types.LBInterface{Interface: "ethernet1", IPPrefix: "172.16.0.0/29"}, types.LBInterface{Interface: "ethernet1", IPPrefix: "172.16.0.8/29"}
	got := decide(known(config(lb(first, second)), eth0(), eth1("192.168.1.5"))).publish
	want := []types.LBInterface{{Interface: "eth1", IPPrefix: first.IPPrefix}, {Interface: "eth1", IPPrefix: second.IPPrefix}}
	if d := cmp.Diff(want, got.LBInterfaces); d != "" || got.LBConfigError.Error != "" {
		t.Errorf("%s; want -, got +\n%s", got.LBConfigError.Error, d)
	}
}

// The join server is the bootstrap node, and only that deploys pools.
func TestAPoolWithTheJoinServerInItIsHandedOutByNobody(t *testing.T) {
	pool := types.LBInterface{Interface: "ethernet1", IPPrefix: "10.244.244.2/31"}
	join := func(c *types.EdgeNodeClusterConfig) { c.JoinServerIP = net.ParseIP("10.244.244.2") }
	got := decide(known(config(lb(pool), join), eth0(), eth1("192.168.1.5"))).publish
	if got.LBInterfaces != nil || got.LBConfigError.Error == "" {
		t.Errorf("the bootstrap node: %+v", got)
	}
	elsewhere := func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix = prefix("10.244.244.9/28") }
	if got := decide(known(config(lb(pool), join, follower, elsewhere), eth0(), eth1("192.168.1.5"))).publish; got.LBInterfaces != nil {
		t.Errorf("another node: %+v", got)
	}
}
