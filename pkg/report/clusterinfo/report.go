package clusterinfo

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// nodes reports every node, by name.
func nodes(f facts) []types.KubeNodeInfo {
	out := make([]types.KubeNodeInfo, 0, len(f.nodes))
	for _, key := range slices.Sorted(maps.Keys(f.nodes)) {
		n := f.nodes[key]
		out = append(out, types.KubeNodeInfo{
			Name:               n.Name,
			Status:             types.KubeNodeStatusOf(n.Ready),
			IsMaster:           n.HasAPIServer(),
			UsesEtcd:           n.Etcd,
			CreationTime:       n.Created.UTC(),
			LastTransitionTime: n.ReadySince.UTC(),
			KubeletVersion:     n.KubeletVersion,
			InternalIP:         n.InternalIP,
			ExternalIP:         n.ExternalIP,
			Schedulable:        !n.Unschedulable,
			Admission:          admission(f, n),
			NodeID:             n.UUID,
			Conditions:         conditions(n.Conditions),
		})
	}
	return out
}

// admission is how far a node has come into the cluster, or out of it.
//
// A node has joined once it has a Ready condition, of whatever status: one that
// is not reachable now has not left. Without the condition its kubelet has not
// reported yet, and it is joining.
func admission(f facts, n types.Node) types.KubeNodeAdmission {
	own := n.UUID != "" && n.UUID == f.own
	switch {
	case own && f.membership == types.MembershipLeaving, !n.Foreign() && n.Agent.Leaving, slices.Contains(f.stale, n.Name):
		return types.KubeNodeAdmissionLeaving
	case own && (f.membership == types.MembershipNever || f.membership == types.MembershipLeft):
		return types.KubeNodeAdmissionNotClustered
	case n.Ready == "":
		return types.KubeNodeAdmissionJoining
	}
	return types.KubeNodeAdmissionJoined
}

// noLongerNamed are the masters that the controller named before: one that is about
// to join is not named yet, and does not leave.
func noLongerNamed(m types.ClusterMembers) (nodes []string) {
	for _, s := range m.Stale {
		if !s.Joins {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// conditionTypes are those that eve-api knows; Ready is the node's status.
var conditionTypes = map[string]types.KubeNodeConditionType{
	"MemoryPressure":     types.KubeNodeConditionMemoryPressure,
	"DiskPressure":       types.KubeNodeConditionDiskPressure,
	"PIDPressure":        types.KubeNodeConditionPIDPressure,
	"NetworkUnavailable": types.KubeNodeConditionNetworkUnavailable,
}

func conditions(list []types.NodeCondition) []types.KubeNodeCondition {
	var out []types.KubeNodeCondition
	for _, c := range list {
		// One that is Unknown, as all are of a lost node, is not known to hold.
		if kind, known := conditionTypes[c.Type]; known {
			out = append(out, types.KubeNodeCondition{Type: kind, Set: c.Status == types.ConditionTrue, Since: c.Since.UTC()})
		}
	}
	slices.SortFunc(out, func(a, b types.KubeNodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

// appPods reports the pods of the app namespace, by name, without the
// launchers of virtual machines: those are reported as what they launch. It is
// what was reported before, which stays as it is, with these rows in the place
// of former ones and without those that are gone, by key.
func appPods(before []types.KubePodInfo, rows map[string]types.Pod, gone []string) []types.KubePodInfo {
	if len(rows) == 0 && len(gone) == 0 {
		return before
	}
	out := slices.Clone(before)
	var added []types.KubePodInfo
	left := map[string]bool{}
	for _, key := range gone { // all of one namespace
		_, name, _ := strings.Cut(key, "/")
		left[name] = true
	}
	for _, p := range rows {
		i, found := slices.BinarySearchFunc(out, p.Name, func(info types.KubePodInfo, name string) int { return cmp.Compare(info.Name, name) })
		switch {
		case launcher(p):
			left[p.Name] = true
		case found:
			out[i] = podInfo(p)
		default:
			added = append(added, podInfo(p))
		}
	}
	if len(left) > 0 {
		out = slices.DeleteFunc(out, func(info types.KubePodInfo) bool { return left[info.Name] })
	}
	if len(added) > 0 {
		out = append(out, added...)
		slices.SortFunc(out, func(a, b types.KubePodInfo) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

func podInfo(p types.Pod) types.KubePodInfo {
	return types.KubePodInfo{
		Name:              p.Name,
		Status:            podStatuses[p.Phase],
		RestartCount:      uint32(max(p.RestartCount, 0)),
		RestartTimestamp:  types.TextTime(p.RestartedAt.UTC()),
		CreationTimestamp: types.TextTime(p.Created.UTC()),
		PodIP:             p.IP,
		NodeName:          p.NodeName,
		Reason:            reason(p),
	}
}

// launcher knows a launcher pod by its label or owner, and by its name because
// that is the rule of the wire (docs/wire.md, "KubeClusterInfo").
func launcher(p types.Pod) bool {
	return p.VMI != "" || p.Owner.Kind == "VirtualMachineInstance" || strings.HasPrefix(p.Name, "virt-launcher-")
}

var podStatuses = map[types.PodPhase]types.KubePodStatus{
	types.PodPending:   types.KubePodPending,
	types.PodRunning:   types.KubePodRunning,
	types.PodSucceeded: types.KubePodSucceeded,
	types.PodFailed:    types.KubePodFailed,
}

// reason is the pod's own, as Evicted; else that of the scheduler; else that of
// its first container that waits or has failed, as kubectl shows it. "" where
// all is well.
func reason(p types.Pod) string {
	switch {
	case p.Reason != "":
		return p.Reason
	case p.Unschedulable != "" && p.NodeName == "":
		return "Unschedulable"
	}
	for _, c := range p.Containers {
		failed := !c.Now.Finished.IsZero() && c.Now.ExitCode != 0
		switch {
		case c.Waiting == "PodInitializing":
			continue // one before it says why
		case c.Waiting != "":
			return c.Waiting
		case failed:
			return cmp.Or(c.Now.Reason, "Error")
		}
	}
	if slices.ContainsFunc(p.Containers, func(c types.Container) bool { return c.Waiting == "PodInitializing" }) {
		return "PodInitializing"
	}
	return ""
}

// vmis reports the virtual machine instances of the app namespace, by name.
func vmis(table map[string]types.VMI) []types.KubeVMIInfo {
	out := make([]types.KubeVMIInfo, 0, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		v := table[key]
		status, known := vmiStatuses[v.Phase]
		if !known { // also a phase of a newer KubeVirt, such as WaitingForSync
			status = types.KubeVMIUnknown
		}
		out = append(out, types.KubeVMIInfo{
			Name:               v.Name,
			Status:             status,
			CreationTime:       v.Created.UTC(),
			LastTransitionTime: v.ReadySince.UTC(),
			IsReady:            v.Ready,
			NodeName:           v.NodeName,
		})
	}
	return out
}

var vmiStatuses = map[types.VMIPhase]types.KubeVMIStatus{
	types.VMIUnset:      types.KubeVMIUnset,
	types.VMIPending:    types.KubeVMIPending,
	types.VMIScheduling: types.KubeVMIScheduling,
	types.VMIScheduled:  types.KubeVMIScheduled,
	types.VMIRunning:    types.KubeVMIRunning,
	types.VMISucceeded:  types.KubeVMISucceeded,
	types.VMIFailed:     types.KubeVMIFailed,
}

// namespaces are the pods of each namespace that has any, by name.
func namespaces(table map[string]types.KubePodNameSpaceInfo) []types.KubePodNameSpaceInfo {
	return slices.SortedFunc(maps.Values(table), func(a, b types.KubePodNameSpaceInfo) int { return cmp.Compare(a.Name, b.Name) })
}

// made says from which tables each section is made. Storage stays true without
// the snapshots, but for AllocatedBytes.
func made() map[string][]string {
	return map[string][]string{
		types.SectionNodes:      {types.TableNodes},
		types.SectionAppPods:    {types.TableAppPods},
		types.SectionAppVMIs:    {types.TableVMIs},
		types.SectionNamespaces: {types.TablePodCounts, types.TableAppPods}, // the counts leave those out
		types.SectionStorage: {
			types.TableClaims, types.TableLonghornVolumes, types.TableLonghornEngines, types.TableLonghornReplicas,
		},
		types.SectionAllocated:     {types.TableLonghornSnapshots},
		types.SectionStorageHealth: {types.TableLonghornDaemons, types.TableLonghornNodes},
	}
}

// view is how well the tables of one section are seen.
type view struct {
	stale    time.Time // zero while all of them are whole
	why      string
	absent   bool // the cluster lacks what it is about
	unlisted bool // a list has not been received, or is too old
}

func (v view) whole() bool { return v.stale.IsZero() }

// sources is how well each section can be made now.
func sources(f facts) map[string]view {
	out := map[string]view{}
	for name, tables := range made() {
		v := view{absent: true}
		for _, table := range tables {
			t, kept := f.tables[table]
			if !kept {
				t = types.TableStatus{Since: f.since, Why: "the list of " + table + " has not been requested yet"}
			}
			if !t.Complete && (v.stale.IsZero() || t.Since.Before(v.stale)) {
				v.stale, v.why = t.Since.UTC(), t.Why
			}
			v.unlisted = v.unlisted || !t.Complete && !t.InDoubt
			// Claims are Kubernetes' own and always there.
			v.absent = v.absent && (t.Complete && t.Absent || table == types.TableClaims || table == types.TableLonghornDaemons)
		}
		out[name] = v
	}
	return out
}

// steady leaves whole only the tables that have been so all the time: where this
// node no longer leads, their rows go after what was said of them.
func steady(before, after map[string]types.TableStatus) {
	for name, was := range before {
		switch now, kept := after[name]; {
		case kept && now.Since.Equal(was.Since):
		case kept && !now.Complete:
			before[name] = now
		default:
			delete(before, name)
		}
	}
}

// awaits reports whether a first report would leave out what is about to be listed.
func awaits(f facts) bool {
	if f.mem.reported || f.led >= patience {
		return false
	}
	for _, v := range sources(f) {
		if v.unlisted {
			return true
		}
	}
	return false
}

// sections tells of each section of the report, and of those of other reports,
// by name.
func sections(f facts, views map[string]view, m memory) []types.ReportSection {
	out := slices.Clone(f.others)
	for name, v := range views {
		s := types.ReportSection{Name: name, StaleSince: v.stale, Why: v.why, Absent: v.absent}
		switch name {
		case types.SectionNodes:
			of(&s, m.nodes)
		case types.SectionAppPods:
			of(&s, m.pods)
		case types.SectionAppVMIs:
			of(&s, m.vmis)
		case types.SectionStorage:
			of(&s, m.volumes)
		case types.SectionNamespaces:
			of(&s, m.namespaces)
		case types.SectionStorageHealth:
			s.Known, s.Updated = m.health.known, m.health.since
		case types.SectionAllocated:
			s.Known = v.whole() && m.volumes.known
			if v.whole() && !m.volumes.known { // there is nothing yet that could have them
				s.StaleSince, s.Why = views[types.SectionStorage].stale, views[types.SectionStorage].why
			}
		}
		out = append(out, s)
	}
	return sorted(out)
}

// unreported says of the sections of a report that is not made yet, whatever is
// seen by now, that they are none or of a former run.
func unreported(list []types.ReportSection, since time.Time, why string) {
	for i, s := range list {
		if _, ok := made()[s.Name]; !ok {
			continue
		}
		list[i].Known = false
		if s.StaleSince.IsZero() {
			list[i].StaleSince, list[i].Why = since, why
		}
	}
}

// stillLeft has sections that are as a former run left them be as old as that, and
// returns which those are.
func stillLeft(left map[string]time.Time, list []types.ReportSection) map[string]time.Time {
	still := map[string]time.Time{}
	for i, s := range list {
		since, was := left[s.Name]
		if !was || s.Known || s.StaleSince.IsZero() {
			continue
		}
		still[s.Name] = since
		if since.Before(s.StaleSince) {
			list[i].StaleSince = since
		}
	}
	return still
}

func of[T any](s *types.ReportSection, l list[T]) {
	s.Known, s.Updated, s.Total, s.Truncated, s.Without = l.known, l.updated, len(l.all), l.left(), l.without
}

func sorted(list []types.ReportSection) []types.ReportSection {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b types.ReportSection) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
