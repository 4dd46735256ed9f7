package clusterinfo

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// patience is how long a node that has just become the leader waits for lists that
// fail before it reports without them.
const patience = 2 * time.Second

// facts is everything decide may look at.
type facts struct {
	leads bool
	now   time.Time
	led   time.Duration // for how long it has
	since time.Time     // wall clock, when that began

	tables  map[string]types.TableStatus
	changed map[string]bool // sections whose tables have changed; those of the others are nil
	nodes   map[string]types.Node
	appPods map[string]types.Pod // those that have changed since mem
	gone    []string             // app pods, by key, likewise
	vmis    map[string]types.VMI
	counts  map[string]types.KubePodNameSpaceInfo
	claims  map[string]types.Claim
	volumes map[string]types.Volume
	disks   map[string]types.LonghornNode
	daemons map[string]types.DaemonSet

	own        string // the UUID of this device
	membership types.Membership
	stale      []string // names of nodes that the controller no longer counts among the masters

	others []types.ReportSection // of other reports of this node
	mem    memory
}

// memory is the last good part of every section.
type memory struct {
	nodes      list[types.KubeNodeInfo]
	pods       list[types.KubePodInfo]
	vmis       list[types.KubeVMIInfo]
	volumes    list[types.KubeVolumeInfo]
	namespaces list[types.KubePodNameSpaceInfo]
	health     health
	appPods    []types.KubePodInfo  // the table of app pods as it was when last looked at, whole or not
	behind     map[string]bool      // sections that have changed and could not be brought up to date
	left       map[string]time.Time // since when sections may be untrue that are as a former run left them
	reported   bool                 // by this run, since this node leads
}

// health is how well storage does as a service.
type health struct {
	known  bool
	status types.ServiceStatus
	since  time.Time
}

// action is everything decide may ask for.
type action struct {
	withdraw bool
	publish  *types.KubeClusterInfo // nil: what is published stays
	health   types.KubeReportHealth
	mem      memory
	again    time.Duration // look again then at the latest; 0 for no such time
}

// decide says what to publish, from facts alone.
func decide(f facts) action {
	if !f.leads {
		// Also what a former run left: two reports would contradict each other.
		return action{withdraw: true, health: types.KubeReportHealth{Sections: sorted(f.others)}}
	}
	views := sources(f)
	a := action{mem: renewed(f, views)}
	a.health = types.KubeReportHealth{Reports: true, Sections: sections(f, views, a.mem)}
	switch {
	case awaits(f):
		unreported(a.health.Sections, f.since, "the report waits for its lists")
		a.again = patience - f.led
	case !a.mem.nodes.known:
		// An old report, or none, is better than one that calls an unseen cluster empty.
		unreported(a.health.Sections, f.since, "the report waits for the list of nodes")
	default:
		a.mem.reported = true
		a.publish = &types.KubeClusterInfo{
			Nodes: a.mem.nodes.sent, AppPods: a.mem.pods.sent, AppVMIs: a.mem.vmis.sent, PodNsInfo: a.mem.namespaces.sent,
			Storage: types.KubeStorageInfo{
				Health: a.mem.health.status, TransitionTime: a.mem.health.since, Volumes: a.mem.volumes.sent,
			},
		}
	}
	a.mem.left = stillLeft(f.mem.left, a.health.Sections)
	return a
}

// renewed brings up to date every section that has changed and whose source is
// whole, and keeps the last good part of the others. One that has none yet is made of
// rows in doubt too: without them it would say that there are none.
func renewed(f facts, views map[string]view) memory {
	m := f.mem
	m.appPods = appPods(m.appPods, f.appPods, f.gone)
	m.behind = map[string]bool{}
	news := func(section string, known bool) bool {
		v := views[section]
		m.behind[section] = f.changed[section] && !v.whole()
		return f.changed[section] && (v.whole() || !known && !v.unlisted)
	}
	if news(types.SectionNodes, m.nodes.known) {
		m.nodes = m.nodes.renew(nodes(f), deepEqual, maxMessage, f.now, "Conditions", bare)
	}
	if news(types.SectionAppPods, m.pods.known) {
		m.pods = m.pods.renew(m.appPods, equal, maxLarge, f.now, "", nil)
	}
	if news(types.SectionAppVMIs, m.vmis.known) {
		m.vmis = m.vmis.renew(vmis(f.vmis), equal, maxLarge, f.now, "", nil)
	}
	if news(types.SectionStorage, m.volumes.known) {
		m.volumes = m.volumes.renew(volumes(f), deepEqual, maxLarge, f.now, "", nil)
	}
	// Nodes go before namespaces, which no agent of EVE reads.
	room := maxMessage - m.nodes.size
	if news(types.SectionNamespaces, m.namespaces.known) {
		m.namespaces = m.namespaces.renew(namespaces(f.counts), equal, room, f.now, "", nil)
	} else if m.namespaces.limit != room {
		m.namespaces = m.namespaces.refit(room)
	}
	if news(types.SectionStorageHealth, m.health.known) {
		m.health = m.health.renew(f, views[types.SectionStorageHealth].absent)
	}
	return m
}

func (h health) renew(f facts, absent bool) health {
	status := types.ServiceStatusUnset
	if !absent {
		status = storageHealth(f.daemons, f.disks)
	}
	if h.status != status || h.since.IsZero() {
		h.status, h.since = status, f.now.UTC()
	}
	h.known = true
	return h
}
