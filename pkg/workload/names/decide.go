package names

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// ownQuiet is how long this node's addresses have to stay as they are before they are
	// written, ownMost for how long they may change until then.
	ownQuiet, ownMost = 2 * time.Second, 10 * time.Second
	// zoneQuiet and zoneMost are the same for all names, which restart CoreDNS; zoneMost
	// is also the least time between two restarts.
	zoneQuiet, zoneMost = 10 * time.Second, time.Minute
	// removedFor is how long a node has to be missing before its addresses are removed:
	// that of a node that joins again is deleted and made.
	removedFor = 10 * time.Minute
	// maxText bounds the names in a ConfigMap of at most 1 MiB that others use too, and
	// maxAddresses those of one workload on a network.
	maxText, maxAddresses = 512 << 10, 32
)

// facts is everything decide may look at.
type facts struct {
	now        time.Time
	native     bool
	known      bool                                   // zedrouter has published everything
	leads      bool                                   // and sees what CoreDNS has
	own        string                                 // name of this node; "" while it is not one, or not all nodes and ConfigMaps are seen
	apps       map[string]types.AppNetworkStatus      // by UUID
	networks   map[string]types.NetworkInstanceStatus // by UUID
	statuses   map[string]types.ENClusterAppStatus    // by UUID, of the controller's applications
	configMaps map[string]types.NetworkAllocations
	nodes      map[string]types.Node
	server     types.DNSServer
	rollout    types.DNSRollout
	deployed   bool // CoreDNS is
	memory
}

// memory is what this process remembers. Losing it costs a pause, or one write.
type memory struct {
	written   map[string]map[string]types.Allocation // what this node last wrote, by ConfigMap
	missing   map[string]time.Time                   // nodes that have addresses and no Node, since when
	settling  map[string]settling                    // by ConfigMap; "" for CoreDNS
	restarted time.Time                              // when CoreDNS last was
}

// settling is a change that waits for the end of a burst of changes.
type settling struct {
	to             string
	since, changed time.Time
}

type action struct {
	memory
	edits      map[string]edit // by ConfigMap
	publish    bool            // text and its hash
	text, hash string
	left       []string      // what is left out, and why
	again      time.Duration // 0 for when something changes
}

// decide says what to write: where orchestration is not native, nothing.
func decide(f facts) action {
	if !f.native {
		return action{}
	}
	a := action{memory: memory{map[string]map[string]types.Allocation{}, map[string]time.Time{}, map[string]settling{}, f.restarted}, edits: map[string]edit{}}
	maps.Copy(a.written, f.written)
	if f.own == "" {
		return a
	}
	for _, m := range f.configMaps {
		for _, is := range m.Entries {
			if _, there := f.nodes[is.NodeName]; !there {
				a.missing[is.NodeName] = cmp.Or(f.missing[is.NodeName], f.now)
			}
		}
	}
	if f.known {
		a.addresses(f)
	}
	if f.leads {
		a.zone(f)
	}
	slices.Sort(a.left)
	a.left = slices.Compact(a.left)
	return a
}

func (a *action) leave(format string, args ...any) {
	a.left = append(a.left, fmt.Sprintf(format, args...))
}

// due reports whether a change has waited for the end of its burst, and until after.
func (a *action) due(f facts, key, to string, quiet, most time.Duration, after time.Time) bool {
	s, waits := f.settling[key]
	if !waits {
		s.since = f.now
	}
	if s.to != to {
		s.to, s.changed = to, f.now
	}
	a.settling[key] = s
	wait := max(min(quiet-f.now.Sub(s.changed), most-f.now.Sub(s.since)), after.Sub(f.now))
	if wait > 0 && (a.again == 0 || wait < a.again) {
		a.again = wait
	}
	return wait <= 0
}

// addresses compares the ConfigMaps with what zedrouter assigned.
func (a *action) addresses(f facts) {
	clear(a.written)
	gone := maps.Clone(a.missing)
	maps.DeleteFunc(gone, func(_ string, since time.Time) bool { return !f.leads || f.now.Sub(since) < removedFor })
	for name, e := range wanted(f, a) {
		row := f.configMaps[name]
		e.node, e.gone, e.nodes = f.own, gone, f.nodes
		// A workload that has left is a new one when it comes back with its addresses.
		e.written = maps.Clone(f.written[name])
		maps.DeleteFunc(e.written, func(app string, _ types.Allocation) bool {
			s, there := f.apps[app]
			return !there || f.elsewhere(app, s)
		})
		a.written[name] = e.written
		next := e.change(row)
		if row.Why != "" {
			a.leave("those of ConfigMap eve-kube-app/%s: %s", name, row.Why)
			continue
		}
		if len(e.mine) > 0 && next.Network != e.network {
			a.leave("those on network instance %s: instance %.70q of the same name has workloads on other nodes", e.network, next.Network)
		}
		changed := len(next.Entries)+len(row.Entries) > 0 && !reflect.DeepEqual(next, row)
		if changed && a.due(f, name, fmt.Sprint(e.mine, gone), ownQuiet, ownMost, time.Time{}) { // fmt sorts maps
			a.edits[name] = e
		}
	}
}

// edit changes what a ConfigMap holds: node has what is in mine.
type edit struct {
	network, node string
	mine, written map[string]types.Allocation // written is what the node wrote the last time
	unknown       map[string]bool             // workloads of which it is not known whether they run on the node
	gone          map[string]time.Time        // nodes that were removed from the cluster
	nodes         map[string]types.Node
}

// change is the ConfigMap after the edit. Where other nodes have workloads on another
// network instance of that name nothing is added. The node's entry of a workload that may
// run elsewhere stays as it is.
func (e edit) change(row types.NetworkAllocations) types.NetworkAllocations {
	next := types.NetworkAllocations{Network: row.Network, Entries: map[string]types.Allocation{}}
	for app, is := range row.Entries {
		if _, gone := e.gone[is.NodeName]; !gone && (is.NodeName != e.node || e.unknown[app]) {
			next.Entries[app] = is
		}
	}
	if len(e.mine) == 0 || len(next.Entries) > 0 && row.Network != "" && row.Network != e.network {
		return next
	}
	next.Network = e.network
	for app, is := range e.mine {
		if now, there := next.Entries[app]; !there || e.takes(app, now, is) {
			next.Entries[app] = is
		}
	}
	return next
}

// takes reports that the node takes over an entry of another one. A copy without an address, as
// zedrouter has it until it sees the lease of a DHCP server outside, would only end the name of one that
// has an address. What another node took over since this one wrote it is left to that node, or two
// that have it would fight, unless that node is lost, and this one is not.
func (e edit) takes(app string, now, is types.Allocation) bool {
	if named := len(published(is)) > 0; named != (len(published(now)) > 0) {
		return named
	}
	lost := e.nodes[now.NodeName].Ready == types.ConditionUnknown && e.nodes[e.node].Ready != types.ConditionUnknown
	return lost || !reflect.DeepEqual(e.written[app], is)
}

// elsewhere reports that a workload does not run on this node. zedrouter has an application of the
// controller on its designated node while it runs on another, too (docs/wire.md, "zedmanager").
func (f facts) elsewhere(app string, s types.AppNetworkStatus) bool {
	return s.KubeApp == nil && !f.unknown(app, s) && !f.statuses[app].ScheduledOnThisNode
}

// unknown reports that it is not known whether a workload runs on this node: not yet, or, because the
// API server does not answer, not any more.
func (f facts) unknown(app string, s types.AppNetworkStatus) bool {
	is := f.statuses[app].AppKubeStatus // Unknown where nothing is published
	return s.KubeApp == nil && (is == types.AppKubeUnknown || is == types.AppKubeAPIUnreachable)
}

// wanted is what zedrouter assigned on this node to workloads that run here, for each ConfigMap.
func wanted(f facts, a *action) map[string]edit {
	out, instances := map[string]edit{}, map[string]int{}
	for name := range f.configMaps {
		out[name] = edit{}
	}
	for _, n := range f.networks {
		instances[n.DisplayName]++
	}
	for app, s := range f.apps {
		for _, adapter := range s.AppNetAdapterList {
			id := adapter.Network.String()
			network, there := f.networks[id]
			if !s.Ready() || !there || f.elsewhere(app, s) {
				continue
			}
			name, is := types.AllocationsName(network.DisplayName), types.Allocation{
				AppUUID: app, AppName: s.DisplayName, Namespace: types.NamespaceApps, NodeName: f.own, NIUUID: id, NIDisplayName: network.DisplayName,
			}
			if s.KubeApp != nil {
				is.Namespace = s.KubeApp.Namespace
			}
			switch {
			case !is.Valid():
				a.leave("%.70q in namespace %.70q on network %.70q: one of them is not a valid DNS label", is.AppName, is.Namespace, is.NIDisplayName)
				continue
			case instances[network.DisplayName] > 1:
				a.leave("those on network %q: several network instances have that name", network.DisplayName)
				continue
			case out[name].mine == nil:
				out[name] = edit{network: id, mine: map[string]types.Allocation{}, unknown: map[string]bool{}}
			}
			if f.unknown(app, s) {
				out[name].unknown[app] = true
				continue
			}
			if former, there := out[name].mine[app]; there { // by another adapter
				is = former
			}
			is.MACs = with(is.MACs, adapter.Mac)
			is.IPv4 = with(is.IPv4, adapter.AssignedAddresses.IPv4Addrs...)
			is.IPv6 = with(is.IPv6, adapter.AssignedAddresses.IPv6Addrs...)
			out[name].mine[app] = is
		}
	}
	return out
}

// with is the list with more, sorted and each once. No address is "<nil>", as package net writes it.
func with[T fmt.Stringer](list []string, more ...T) []string {
	for _, one := range more {
		if text := one.String(); text != "" && text != "<nil>" {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// zone decides about CoreDNS' configuration. One with which CoreDNS would not start is
// not written: the cluster would be without DNS.
func (a *action) zone(f facts) {
	a.text = render(f.configMaps, a)
	a.hash = fmt.Sprintf("%x", sha256.Sum256([]byte(a.text)))
	switch {
	case a.text == f.server.Text && (a.hash == f.rollout.Hash || a.text == "" && f.rollout.Hash == ""):
	case !f.deployed:
		a.leave("all: there is no Deployment kube-system/coredns")
	case f.server.Clash != "" && a.text != "":
		a.leave("all: key %.70q of ConfigMap kube-system/coredns-custom serves the zone internal as well", f.server.Clash)
	default:
		a.publish = a.due(f, "", a.hash, zoneQuiet, zoneMost, f.restarted.Add(zoneMost))
	}
}

// render makes CoreDNS' server block byte for byte as EVE's zedkube does, so that a leader
// of the other kind does not restart CoreDNS. Others may write what it is made of: each
// label and address is checked.
func render(configMaps map[string]types.NetworkAllocations, a *action) string {
	all, names := map[string]types.Allocation{}, map[string]string{} // the only long name of a short one, or ""
	for configMap, m := range configMaps {
		for app, is := range m.Entries {
			if !is.Valid() || types.AllocationsName(is.NIDisplayName) != configMap || len(is.IPv4)+len(is.IPv6) == 0 {
				continue
			}
			name := is.AppName + "." + is.Namespace + "." + is.NIDisplayName + ".internal"
			if only, there := names[is.AppName]; !there || only == name {
				names[is.AppName] = name
			} else {
				names[is.AppName] = ""
			}
			all[name+" "+app] = is
		}
	}
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		is := all[key]
		name, _, _ := strings.Cut(key, " ")
		if lines.Len() > maxText {
			a.leave("those from %s on: the configuration of CoreDNS would be too large", name)
			break
		}
		if names[is.AppName] != "" {
			name += " " + is.AppName + ".internal"
		}
		for _, address := range published(is) {
			fmt.Fprintf(&lines, "        %s %s\n", address, name)
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "internal:53 {\n    errors\n    cache 30\n    hosts {\n" + lines.String() + "        ttl 30\n        fallthrough\n    }\n}\n"
}

// published are the global unicast addresses, sorted as texts, each once.
func published(is types.Allocation) (out []string) {
	for _, text := range slices.Concat(is.IPv4, is.IPv6) {
		address, err := netip.ParseAddr(text)
		if address = address.Unmap(); err == nil && address.Zone() == "" && address.IsGlobalUnicast() && len(out) < maxAddresses {
			out = with(out, address)
		}
	}
	return out
}
