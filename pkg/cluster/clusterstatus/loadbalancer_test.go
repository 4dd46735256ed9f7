package clusterstatus

import (
	"net"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestLoadBalancerInterfaces(t *testing.T) {
	pool := types.LBInterface{Interface: "ethernet1", IPPrefix: "192.168.1.24/29"}
	broken := func(text string, at time.Time) types.ErrorDescription {
		return types.ErrorDescription{Error: text, ErrorTime: at, ErrorSeverity: types.ErrorSeverityError}
	}
	with := func(cidr string, e types.ErrorDescription, interfaces ...types.LBInterface) func(*types.EdgeNodeClusterStatus) {
		return func(s *types.EdgeNodeClusterStatus) {
			s.LBIPPrefixes, s.LBConfigError, s.LBInterfaces = []string{cidr}, e, interfaces
		}
	}
	notBoot := func(s *types.EdgeNodeClusterStatus) { s.BootstrapNode = false }
	const overlap = "load balancer prefix 192.168.1.24/29 overlaps address 192.168.1.25 of port ethernet1"
	check(t, map[string]row{
		"the bootstrap node gets the Linux name": {
			f:    known(config(lb(pool)), eth0(), eth1("192.168.1.5")),
			want: want(status(ready, with(pool.IPPrefix, types.ErrorDescription{}, types.LBInterface{Interface: "eth1", IPPrefix: pool.IPPrefix}))),
		},
		"other nodes get the prefixes only": {
			f:    known(config(lb(pool), follower), eth0(), eth1("192.168.1.5")),
			want: want(status(ready, notBoot, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"a prefix that holds an address of this node is dropped": {
			f:    known(config(lb(pool)), eth0(), eth1("192.168.1.25")),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, now)))),
		},
		"an overlap is reported by every node that has one": {
			f:    known(config(lb(pool), follower), eth0(), eth1("192.168.1.25")),
			want: want(status(ready, notBoot, with(pool.IPPrefix, broken(overlap, now)))),
		},
		"the address of a port without layer 3 does not count": {
			f: known(config(lb(pool), follower), eth0(), func() types.NetworkPortStatus {
				p := eth1("192.168.1.25")
				p.IsL3Port = false
				return p
			}()),
			want: want(status(ready, notBoot, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"the time of a problem stands while its text does": {
			f: before(known(config(lb(pool)), eth0(), eth1("192.168.1.25")),
				status(ready, with(pool.IPPrefix, broken(overlap, early)))),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, early)))),
		},
		"a new problem has a new time": {
			f: before(known(config(lb(pool)), eth0()), status(ready, with(pool.IPPrefix, broken(overlap, early)))),
			want: want(status(ready, with(pool.IPPrefix,
				broken(`load balancer interface "ethernet1": no port has this label`, now)))),
		},
		"a solved problem leaves nothing": {
			f: before(known(config(lb(pool), follower), eth0(), eth1("192.168.1.5")),
				status(ready, notBoot, with(pool.IPPrefix, broken(overlap, early)))),
			want: want(status(ready, notBoot, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"a label is not called unknown before nim has listed any port": {
			f:    known(config(lb(pool))),
			want: want(status(with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"a label that other ports do not have is unknown": {
			f: known(config(lb(pool)), eth0()),
			want: want(status(ready, with(pool.IPPrefix,
				broken(`load balancer interface "ethernet1": no port has this label`, now)))),
		},
		"text that is no prefix needs no port to be told": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet1", IPPrefix: "pool"}))),
			want: want(status(with("pool",
				broken(`load balancer interface "ethernet1": "pool" is not a CIDR`, now)))),
		},
		"a prefix that holds the cluster address is dropped before any port has it": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet1", IPPrefix: "10.244.244.0/24"})), eth1("192.168.1.5")),
			want: want(status(with("10.244.244.0/24",
				broken("load balancer prefix 10.244.244.0/24 overlaps the cluster address 10.244.244.2", now)))),
		},
		"an entry that is the port's own address is no entry": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet1", IPPrefix: "192.168.1.5/32"})), eth0(), eth1("192.168.1.5")),
			want: want(status(ready, with("192.168.1.5/32",
				broken("load balancer prefix 192.168.1.5/32 overlaps address 192.168.1.5 of port ethernet1", now)))),
		},
		"every address of a port counts": {
			f: known(config(lb(pool)), eth0(), func() types.NetworkPortStatus {
				p := eth1("192.168.1.5")
				p.AddrInfoList = append(p.AddrInfoList, types.AddrInfo{Addr: net.ParseIP("fd00::1")}, types.AddrInfo{Addr: net.ParseIP("192.168.1.25")})
				return p
			}()),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, now)))),
		},
		"of every port": {
			f: known(config(lb(pool)), eth0(), eth1("192.168.1.5"), types.NetworkPortStatus{
				IfName: "wwan0", IsL3Port: true, AddrInfoList: []types.AddrInfo{{Addr: net.ParseIP("192.168.1.31")}},
			}),
			want: want(status(ready, with(pool.IPPrefix,
				broken("load balancer prefix 192.168.1.24/29 overlaps address 192.168.1.31 of port wwan0", now)))),
		},
		"and one that nim calls a cluster address": {
			f: known(config(lb(pool)), eth0(), types.NetworkPortStatus{
				IfName: "eth1", Logicallabel: "ethernet1", IsL3Port: true, ClusterIPAddr: "192.168.1.25",
			}),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, now)))),
		},
		"IPv6 is not otherwise": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet1", IPPrefix: "fd00::/120"})), eth0(), eth1("fd00::7")),
			want: want(status(ready, with("fd00::/120",
				broken("load balancer prefix fd00::/120 overlaps address fd00::7 of port ethernet1", now)))),
		},
		"the order in which nim lists ports and addresses changes no text": {
			f: before(known(config(lb(pool)), eth1("192.168.1.31"), eth0(), eth1("192.168.1.25")),
				status(ready, with(pool.IPPrefix, broken(overlap, early)))),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, early)))),
		},
		"one bad entry takes no good one with it": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet9", IPPrefix: "172.16.0.0/29"}, pool)), eth0(), eth1("192.168.1.5")),
			want: want(status(ready, func(s *types.EdgeNodeClusterStatus) {
				s.LBInterfaces = []types.LBInterface{{Interface: "eth1", IPPrefix: pool.IPPrefix}}
				s.LBIPPrefixes = []string{"172.16.0.0/29", pool.IPPrefix}
				s.LBConfigError = broken(`load balancer interface "ethernet9": no port has this label`, now)
			})),
		},
		"a role that changed leaves no error of the former one": {
			f: before(known(config(lb(pool), follower), eth0()), status(ready, with(pool.IPPrefix,
				broken(`load balancer interface "ethernet1": no port has this label`, early)))),
			want: want(status(ready, notBoot, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"nor does one that changed while the agent was down, before nim has spoken": {
			f: before(facts{hasConfig: true, config: config(lb(pool), follower)}, status(ready, with(pool.IPPrefix,
				broken(`load balancer interface "ethernet9": no port has this label`, early), types.LBInterface{Interface: "eth1", IPPrefix: pool.IPPrefix}))),
			want: want(status(ready, notBoot, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"nor do prefixes": {
			f: before(facts{hasConfig: true, config: config(lb(pool))}, status(ready, with("192.168.1.32/29",
				broken(overlap, early), types.LBInterface{Interface: "eth1", IPPrefix: "192.168.1.32/29"}))),
			want: want(status(ready, with(pool.IPPrefix, types.ErrorDescription{}))),
		},
		"what has not changed stands until nim has spoken": {
			f:    before(facts{hasConfig: true, config: config(lb(pool))}, status(ready, with(pool.IPPrefix, broken(overlap, early)))),
			want: want(status(ready, with(pool.IPPrefix, broken(overlap, early)))),
		},
		"text that is no prefix is said to be none": {
			f: known(config(lb(types.LBInterface{Interface: "ethernet1", IPPrefix: "pool"})), eth0(), eth1("192.168.1.5")),
			want: want(status(ready, with("pool",
				broken(`load balancer interface "ethernet1": "pool" is not a CIDR`, now)))),
		},
	})
}
