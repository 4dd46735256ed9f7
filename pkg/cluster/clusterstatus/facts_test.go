package clusterstatus

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

var (
	now   = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	early = now.Add(-time.Hour)
	one   = types.UUIDandVersion{UUID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")}
	other = types.UUIDandVersion{UUID: uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")}
)

func prefix(cidr string) *net.IPNet {
	ip, n, err := net.ParseCIDR(cidr)
	if err != nil {
		panic(err)
	}
	return &net.IPNet{IP: ip, Mask: n.Mask}
}

// config is a valid configuration of a bootstrap node.
func config(change ...func(*types.EdgeNodeClusterConfig)) types.EdgeNodeClusterConfig {
	c := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterName: "c1", ClusterID: one, ClusterInterface: "ethernet0",
		ClusterIPPrefix: prefix("10.244.244.2/28"), JoinServerIP: net.ParseIP("10.244.244.2"), BootstrapNode: true,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// status is what stands for config before any port is known.
func status(change ...func(*types.EdgeNodeClusterStatus)) types.EdgeNodeClusterStatus {
	s := types.EdgeNodeClusterStatus{
		ClusterName: "c1", ClusterID: one, ClusterIPPrefix: prefix("10.244.244.2/28"),
		JoinServerIP: net.ParseIP("10.244.244.2"), BootstrapNode: true,
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func ready(s *types.EdgeNodeClusterStatus) { s.ClusterInterface, s.ClusterIPIsReady = "eth0", true }
func named(s *types.EdgeNodeClusterStatus) { s.ClusterInterface = "eth0" }
func token(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = "secret" }

func eth0(change ...func(*types.NetworkPortStatus)) types.NetworkPortStatus {
	p := types.NetworkPortStatus{IfName: "eth0", Logicallabel: "ethernet0", IsL3Port: true, ClusterIPAddr: "10.244.244.2"}
	for _, f := range change {
		f(&p)
	}
	return p
}

func eth1(addr string) types.NetworkPortStatus {
	return types.NetworkPortStatus{
		IfName: "eth1", Logicallabel: "ethernet1", IsL3Port: true,
		AddrInfoList: []types.AddrInfo{{Addr: net.ParseIP(addr)}},
	}
}

func lb(entries ...types.LBInterface) func(*types.EdgeNodeClusterConfig) {
	return func(c *types.EdgeNodeClusterConfig) { c.LBInterfaces = entries }
}

func follower(c *types.EdgeNodeClusterConfig) { c.BootstrapNode = false }

type row struct {
	f      facts
	want   *types.EdgeNodeClusterStatus // nil: publish nothing
	left   bool                         // withdraw it
	ignore string
}

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			r.f.now = now
			got := decide(r.f)
			if d := cmp.Diff(action{publish: r.want, withdraw: r.left, ignore: r.ignore}, got, cmp.AllowUnexported(action{})); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func known(c types.EdgeNodeClusterConfig, ports ...types.NetworkPortStatus) facts {
	return facts{configKnown: true, hasConfig: true, config: c, portsKnown: true, ports: ports}
}

// before adds what is already published.
func before(f facts, s types.EdgeNodeClusterStatus) facts {
	f.hasStatus, f.status = true, s
	return f
}

// in adds the membership; its configuration is the one of config unless changed.
func in(state types.Membership, f facts, change ...func(*types.EdgeNodeClusterConfig)) facts {
	f.membership = types.ClusterMembership{State: state}
	if f.membership.Belongs() {
		c := config(change...)
		f.membership.Config = &c
	}
	return f
}

func want(s types.EdgeNodeClusterStatus) *types.EdgeNodeClusterStatus { return &s }
