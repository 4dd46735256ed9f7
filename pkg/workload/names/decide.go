package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
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
	now                      time.Time
	native, leads            bool
	own                      string // name of this node; "" while it is not a node
	known                    bool   // zedrouter has published everything
	seen, nodesSeen, dnsSeen bool   // these tables are complete

	apps       map[string]types.AppNetworkStatus      // by UUID
	networks   map[string]types.NetworkInstanceStatus // by UUID
	configMaps map[string]types.NetworkAllocations
	nodes      map[string]types.Node
	server     types.DNSServer
	rollout    types.DNSRollout
	deployed   bool // CoreDNS is
	memory
}

// memory is what this process remembers. Losing it costs a pause, or one write.
type memory struct {
	written            map[string]map[string]types.Allocation // what this node last wrote, by ConfigMap
	missing            map[string]time.Time                   // nodes that have addresses and no Node, since when
	allocations, names settling
	restarted          time.Time // when CoreDNS last was
}

// settling is a change that waits for the end of a burst of changes.
type settling struct {
	to             string // "" for no change
	since, changed time.Time
}

// wait is the change with what it is now to, and for how long it has to wait.
func (s settling) wait(to string, now time.Time, quiet, most time.Duration) (settling, time.Duration) {
	if s.to == "" {
		s.since = now
	}
	if s.to != to {
		s.to, s.changed = to, now
	}
	return s, min(quiet-now.Sub(s.changed), most-now.Sub(s.since))
}

type action struct {
	memory
	edits   map[string]edit // by ConfigMap
	publish *zone
	left    []string      // what is left out, and why
	again   time.Duration // 0 for when something changes
}

// decide says what to write: where orchestration is not native, nothing.
func decide(f facts) action {
	a := action{memory: f.memory}
	if !f.native || f.own == "" || !f.seen {
		return a
	}
	a.missing = missing(f)
	if f.known {
		a.addresses(f)
	}
	if f.leads && f.dnsSeen {
		a.zone(f)
	}
	slices.Sort(a.left)
	a.left = slices.Compact(a.left)
	return a
}

// missing are the nodes with addresses that a complete table of nodes lacks.
func missing(f facts) map[string]time.Time {
	out := map[string]time.Time{}
	for _, m := range f.configMaps {
		for _, is := range m.Entries {
			if _, there := f.nodes[is.NodeName]; !there && f.nodesSeen {
				out[is.NodeName] = f.now
			}
		}
	}
	for node := range out {
		if since, known := f.missing[node]; known {
			out[node] = since
		}
	}
	return out
}

// addresses compares the ConfigMaps with what zedrouter assigned.
func (a *action) addresses(f facts) {
	var gone []string
	for node, since := range a.missing {
		if f.leads && f.now.Sub(since) >= removedFor {
			gone = append(gone, node)
		}
	}
	edits, changes := wanted(f, a), ""
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		row, e := f.configMaps[name], edits[name]
		e.node, e.gone, e.written = f.own, gone, f.written[name]
		next := e.change(row)
		switch edits[name] = e; {
		case row.Why != "":
			a.left = append(a.left, "those of ConfigMap eve-kube-app/"+name+": "+row.Why)
		case len(next.Entries)+len(row.Entries) > 0 && !reflect.DeepEqual(next, row):
			changes += fmt.Sprint(name, next) // fmt sorts maps
			continue
		}
		if delete(edits, name); len(e.mine) > 0 && row.Why == "" && next.Network != e.network {
			a.left = append(a.left, fmt.Sprintf("those on network instance %s: instance %.70q of the same name has workloads on other nodes", e.network, next.Network))
		}
	}
	var wait time.Duration
	if a.allocations, wait = f.allocations.wait(changes, f.now, ownQuiet, ownMost); wait <= 0 {
		a.edits = edits
	} else if changes != "" {
		a.again = wait
	}
}

// edit changes what a ConfigMap holds: node has what is in mine.
type edit struct {
	network, node string
	mine, written map[string]types.Allocation // written is what the node wrote the last time
	gone          []string                    // nodes that were removed from the cluster
}

// change is the ConfigMap after the edit. Where other nodes have workloads on another
// network instance of that name nothing is added. What another node took over since this
// one wrote it is left to that node, or two that have it would fight.
func (e edit) change(row types.NetworkAllocations) types.NetworkAllocations {
	next := types.NetworkAllocations{Network: row.Network, Entries: map[string]types.Allocation{}}
	for app, is := range row.Entries {
		if is.NodeName != e.node && !slices.Contains(e.gone, is.NodeName) {
			next.Entries[app] = is
		}
	}
	if len(e.mine) == 0 || len(next.Entries) > 0 && row.Network != "" && row.Network != e.network {
		return next
	}
	next.Network = e.network
	for app, is := range e.mine {
		if _, taken := next.Entries[app]; !taken || !reflect.DeepEqual(e.written[app], is) {
			next.Entries[app] = is
		}
	}
	return next
}

// wanted is what zedrouter assigned on this node, for each ConfigMap.
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
			if !s.Ready() || !there {
				continue
			}
			name := types.AllocationsName(network.DisplayName)
			is := types.Allocation{
				AppUUID: app, AppName: s.DisplayName, Namespace: types.NamespaceApps, NodeName: f.own, NIUUID: id, NIDisplayName: network.DisplayName,
			}
			if s.KubeApp != nil {
				is.Namespace = s.KubeApp.Namespace
			}
			switch {
			case !is.Valid():
				a.left = append(a.left, fmt.Sprintf("%.70q in namespace %.70q on network %.70q: one of them is not a valid DNS label", is.AppName, is.Namespace, is.NIDisplayName))
				continue
			case instances[network.DisplayName] > 1:
				a.left = append(a.left, fmt.Sprintf("those on network %q: several network instances have that name", network.DisplayName))
				continue
			case out[name].mine == nil:
				out[name] = edit{network: id, mine: map[string]types.Allocation{}}
			}
			if former, there := out[name].mine[app]; there { // by another adapter
				is = former
			}
			is.MACs = with(is.MACs, adapter.Mac.String())
			for _, assigned := range adapter.AssignedAddresses.IPv4Addrs {
				is.IPv4 = with(is.IPv4, assigned.Address.String())
			}
			for _, assigned := range adapter.AssignedAddresses.IPv6Addrs {
				is.IPv6 = with(is.IPv6, assigned.Address.String())
			}
			out[name].mine[app] = is
		}
	}
	return out
}

// with is the list with text, if that is something, sorted and each once.
func with(list []string, text string) []string {
	if text == "" || text == net.IP(nil).String() {
		return list
	}
	list = append(list, text)
	slices.Sort(list)
	return slices.Compact(list)
}

// zone decides about CoreDNS' configuration. One with which CoreDNS would not start is
// not written: the cluster would be without DNS.
func (a *action) zone(f facts) {
	z, change := render(f.configMaps, a), ""
	switch {
	case z.text == f.server.Text && (z.hash == f.rollout.Hash || z.text == "" && f.rollout.Hash == ""):
	case !f.deployed:
		a.left = append(a.left, "all: there is no Deployment kube-system/coredns")
	case f.server.Clash != "" && z.text != "":
		a.left = append(a.left, fmt.Sprintf("all: key %.70q of ConfigMap kube-system/coredns-custom serves the zone internal as well", f.server.Clash))
	default:
		change = z.hash
	}
	var wait time.Duration
	a.names, wait = f.names.wait(change, f.now, zoneQuiet, zoneMost)
	if !f.restarted.IsZero() {
		wait = max(wait, zoneMost-f.now.Sub(f.restarted))
	}
	if change != "" && wait <= 0 {
		a.publish = &z
	} else if change != "" && (a.again == 0 || wait < a.again) {
		a.again = wait
	}
}

// zone is a server block of CoreDNS' configuration.
type zone struct{ text, hash string }

// render makes the block byte for byte as EVE's zedkube does, so that a leader of the
// other kind does not restart CoreDNS. Others may write what it is made of: each label
// and address is checked.
func render(configMaps map[string]types.NetworkAllocations, a *action) (z zone) {
	all, aliases := map[string]types.Allocation{}, map[string]map[string]bool{}
	for configMap, m := range configMaps {
		for app, is := range m.Entries {
			name := is.AppName + "." + is.Namespace + "." + is.NIDisplayName + ".internal"
			if !is.Valid() || types.AllocationsName(is.NIDisplayName) != configMap || len(is.IPv4)+len(is.IPv6) == 0 {
				continue
			}
			if all[name+" "+app] = is; aliases[is.AppName] == nil {
				aliases[is.AppName] = map[string]bool{}
			}
			aliases[is.AppName][name] = true
		}
	}
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, _, _ := strings.Cut(key, " ")
		if lines.Len() > maxText {
			a.left = append(a.left, "those from "+name+" on: the configuration of CoreDNS would be too large")
			break
		}
		if is := all[key]; len(aliases[is.AppName]) == 1 {
			name += " " + is.AppName + ".internal"
		}
		for _, address := range published(all[key]) {
			fmt.Fprintf(&lines, "        %s %s\n", address, name)
		}
	}
	if lines.Len() > 0 {
		z.text = "internal:53 {\n    errors\n    cache 30\n    hosts {\n" + lines.String() + "        ttl 30\n        fallthrough\n    }\n}\n"
	}
	sum := sha256.Sum256([]byte(z.text))
	z.hash = hex.EncodeToString(sum[:])
	return z
}

// published are the global unicast addresses, sorted as texts, each once.
func published(is types.Allocation) (out []string) {
	for _, text := range slices.Concat(is.IPv4, is.IPv6) {
		address, err := netip.ParseAddr(text)
		if address = address.Unmap(); err == nil && address.Zone() == "" && address.IsGlobalUnicast() && len(out) < maxAddresses {
			out = with(out, address.String())
		}
	}
	return out
}
