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

func TestConfigurationDecides(t *testing.T) {
	invalid := types.EdgeNodeClusterConfig{Initialized: true}
	check(t, map[string]row{
		"a configuration that is not known yet leaves a former status alone": {
			f: before(facts{}, status(ready, token)),
		},
		"a configuration that vanished is not a departure": {
			f:      before(facts{configKnown: true}, status(ready)),
			ignore: "the cluster configuration is gone",
		},
		"a configuration that turns invalid is not a departure": {
			f:      before(known(invalid, eth0()), status(ready)),
			ignore: "the cluster configuration is not valid any more",
		},
		"a device that was never clustered publishes nothing": {
			f: known(invalid, eth0()),
		},
		"a configuration that is not initialized is not looked at": {
			f: before(known(types.EdgeNodeClusterConfig{Valid: true}), status(ready)),
		},
		"a configuration without a cluster id never becomes a status": {
			f: before(known(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = types.UUIDandVersion{} }), eth0()),
				status(ready)),
			ignore: "the cluster configuration names no cluster",
		},
		"a configuration without a cluster address never becomes a status": {
			f: before(known(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix = nil }), eth0()),
				status(ready)),
			ignore: "the cluster configuration holds no cluster address",
		},
		"the token of the same cluster is kept": {
			f:    before(known(config(), eth0()), status(ready, token)),
			want: want(status(ready, token)),
		},
		"the token of another cluster is not": {
			f:    before(known(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = other }), eth0()), status(ready, token)),
			want: want(status(ready, func(s *types.EdgeNodeClusterStatus) { s.ClusterID = other })),
		},
	})
}

// had is a row of the token's table.
func had(f facts, id types.UUIDandVersion, text string, problem types.ErrorDescription) facts {
	f.token = types.ClusterToken{ClusterID: id.UUID, Token: text, Error: problem}
	return f
}

func TestTheTokenIsThatOfTheCluster(t *testing.T) {
	broken := types.ErrorDescription{Error: "no certificate", ErrorTime: now, ErrorSeverity: types.ErrorSeverityError}
	older := broken
	older.ErrorTime = early
	none := types.ErrorDescription{}
	fresh := func(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = "fresh" }
	failed := func(e types.ErrorDescription) func(*types.EdgeNodeClusterStatus) {
		return func(s *types.EdgeNodeClusterStatus) { s.Error = e }
	}
	elsewhere := func(s *types.EdgeNodeClusterStatus) { s.ClusterID = other }
	moved := config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = other })
	check(t, map[string]row{
		"the status does not wait for it": {
			f:    known(config(), eth0()),
			want: want(status(ready)),
		},
		"it is published when it is there": {
			f:    had(before(known(config(), eth0()), status(ready)), one, "fresh", none),
			want: want(status(ready, fresh)),
		},
		"so is why it cannot be had": {
			f:    had(before(known(config(), eth0()), status(ready)), one, "", broken),
			want: want(status(ready, failed(broken))),
		},
		"the last good one stands beside it": {
			f:    had(before(known(config(), eth0()), status(ready, token)), one, "secret", broken),
			want: want(status(ready, token, failed(broken))),
		},
		"one that a former run published too": {
			f:    had(before(known(config(), eth0()), status(ready, token)), one, "", broken),
			want: want(status(ready, token, failed(broken))),
		},
		"an error that a former run published keeps its time": {
			f:    had(before(known(config(), eth0()), status(ready, failed(older))), one, "", broken),
			want: want(status(ready, failed(older))),
		},
		"and stands until the table says more": {
			f:    before(known(config(), eth0()), status(ready, token, failed(older))),
			want: want(status(ready, token, failed(older))),
		},
		"a new token replaces both": {
			f:    had(before(known(config(), eth0()), status(ready, token, failed(older))), one, "fresh", none),
			want: want(status(ready, fresh)),
		},
		"that of another cluster is not shown": {
			f:    had(before(known(moved, eth0()), status(ready, token, failed(older))), one, "secret", broken),
			want: want(status(ready, elsewhere)),
		},
		"that of the next one is not either": {
			f:    had(before(known(config(), eth0()), status(ready, token)), other, "fresh", broken),
			want: want(status(ready, token)),
		},
		"the table's speaks before nim does": {
			f:    had(facts{hasConfig: true, config: config()}, one, "fresh", none),
			want: want(status(fresh)),
		},
	})
}

func TestMembershipHoldsWhileZedagentNamesNoCluster(t *testing.T) {
	invalid := types.EdgeNodeClusterConfig{Initialized: true}
	nameless := func(c *types.EdgeNodeClusterConfig) { c.ClusterID = types.UUIDandVersion{} }
	const notValid, isGone = "the cluster configuration is not valid any more", "the cluster configuration is gone"
	check(t, map[string]row{
		"at boot a member's status is published before zedagent has spoken": {
			f:    in(types.MembershipMember, facts{}),
			want: want(status()),
		},
		"a configuration that zedagent has not read yet is no alarm": {
			f:    in(types.MembershipMember, facts{configKnown: true}),
			want: want(status()),
		},
		"a doubtful member's status follows the ports, after a reboot too": {
			f:    in(types.MembershipDoubtful, known(invalid, eth0())),
			want: want(status(ready)), ignore: notValid,
		},
		"so does that of a node that leaves": {
			f:    in(types.MembershipLeaving, before(known(invalid, eth0()), status(named, token))),
			want: want(status(ready, token)), ignore: notValid,
		},
		"a configuration that is gone is no other matter": {
			f:    in(types.MembershipDoubtful, before(facts{configKnown: true, portsKnown: true}, status(ready))),
			want: want(status()), ignore: isGone,
		},
		"zedagent's own valid word comes first": {
			f:    in(types.MembershipLeaving, known(config(), eth0()), func(c *types.EdgeNodeClusterConfig) { c.ClusterName = "old" }),
			want: want(status(ready)),
		},
		"one that cannot be used does not": {
			f:    in(types.MembershipMember, known(config(nameless), eth0())),
			want: want(status(ready)), ignore: "the cluster configuration names no cluster",
		},
		"a kept configuration without a cluster id never becomes a status": {
			f:      in(types.MembershipDoubtful, before(known(invalid, eth0()), status(ready)), nameless),
			ignore: notValid,
		},
		"a node that has left withdraws it": {
			f:    in(types.MembershipLeft, before(known(invalid, eth0()), status(ready))),
			left: true,
		},
		"once": {
			f: in(types.MembershipLeft, known(invalid, eth0())),
		},
		"but not before zedagent has said that there is no cluster": {
			f: in(types.MembershipLeft, before(facts{}, status(ready))),
		},
		"nor after it has named the next one": {
			f:    in(types.MembershipLeft, before(known(config(), eth0()), status(ready))),
			want: want(status(ready)),
		},
		"a device that was never clustered withdraws nothing": {
			f:      in(types.MembershipNever, before(known(invalid, eth0()), status(ready))),
			ignore: notValid,
		},
	})
}

func TestPortsDecideReadiness(t *testing.T) {
	moved := config(func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix = prefix("10.244.244.3/28") })
	check(t, map[string]row{
		"a valid configuration is published before any port is known": {
			f:    facts{hasConfig: true, config: config()},
			want: want(status()),
		},
		"a port with another label counts for nothing": {
			f:    known(config(), eth0(func(p *types.NetworkPortStatus) { p.Logicallabel = "mgmt" })),
			want: want(status()),
		},
		"the Linux name is published before the address is there": {
			f:    known(config(), eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "" })),
			want: want(status(named)),
		},
		"ready once the port has the cluster address": {
			f:    known(config(), eth0()),
			want: want(status(ready)),
		},
		"not ready with another address": {
			f:    known(config(), eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "10.244.244.3" })),
			want: want(status(named)),
		},
		"addresses are compared as addresses, not as text": {
			f:    known(config(), eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "::ffff:10.244.244.2" })),
			want: want(status(ready)),
		},
		"not ready while the port is invalid": {
			f:    before(known(config(), eth0(func(p *types.NetworkPortStatus) { p.InvalidConfig = true })), status(ready)),
			want: want(status(named)),
		},
		"not ready while the port has no Linux name": {
			f:    known(config(), eth0(func(p *types.NetworkPortStatus) { p.IfName = "" })),
			want: want(status()),
		},
		"before nim speaks again, what a former run learned still holds": {
			f:    before(facts{hasConfig: true, config: config()}, status(ready)),
			want: want(status(ready)),
		},
		"but not for another address": {
			f:    before(facts{hasConfig: true, config: moved}, status(ready)),
			want: want(status(func(s *types.EdgeNodeClusterStatus) { s.ClusterIPPrefix = moved.ClusterIPPrefix })),
		},
	})
}
