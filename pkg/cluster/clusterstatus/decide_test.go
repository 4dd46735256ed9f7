package clusterstatus

import (
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestConfigurationDecides(t *testing.T) {
	invalid := types.EdgeNodeClusterConfig{Initialized: true}
	check(t, map[string]row{
		"a configuration that is not known yet leaves a former status alone": {
			f: before(facts{}, status(ready, token)),
		},
		"a configuration that vanished is not a departure": {
			f:      before(facts{configKnown: true}, status(ready)),
			ignore: "the cluster configuration was withdrawn",
		},
		"a configuration that turns invalid is not a departure": {
			f:      before(known(invalid, eth0()), status(ready)),
			ignore: "the cluster configuration is no longer valid",
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
			ignore: "the cluster configuration has no cluster UUID",
		},
		"a configuration without a cluster address never becomes a status": {
			f: before(known(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix = nil }), eth0()),
				status(ready)),
			ignore: "the cluster configuration has no cluster address",
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

func TestMembershipHoldsWhileZedagentNamesNoCluster(t *testing.T) {
	invalid := types.EdgeNodeClusterConfig{Initialized: true}
	nameless := func(c *types.EdgeNodeClusterConfig) { c.ClusterID = types.UUIDandVersion{} }
	const notValid, isGone = "the cluster configuration is no longer valid", "the cluster configuration was withdrawn"
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
			want: want(status(ready)), ignore: "the cluster configuration has no cluster UUID",
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
		"an IPv6 address is compared as well": {
			f: known(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix = prefix("fd00:7::21/64") }),
				eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "fd00:7:0:0::21" })),
			want: want(status(ready, func(s *types.EdgeNodeClusterStatus) { s.ClusterIPPrefix = prefix("fd00:7::21/64") })),
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
