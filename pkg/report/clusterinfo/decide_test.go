package clusterinfo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

var then = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func table[T any](key func(T) string, rows ...T) map[string]T {
	out := map[string]T{}
	for _, r := range rows {
		out[key(r)] = r
	}
	return out
}

func nodeTable(rows ...types.Node) map[string]types.Node {
	return table(func(n types.Node) string { return n.Name }, rows...)
}

func podTable(rows ...types.Pod) map[string]types.Pod { return table(types.Pod.Key, rows...) }

func appPod(name string, change ...func(*types.Pod)) types.Pod {
	p := types.Pod{Namespace: "eve-kube-app", Name: name, NodeName: "n1", Phase: types.PodRunning, Created: then}
	for _, f := range change {
		f(&p)
	}
	return p
}

// all are the tables a report is made of.
func all() map[string]types.TableStatus {
	out := map[string]types.TableStatus{}
	for _, tables := range made() {
		for _, name := range tables {
			out[name] = types.TableStatus{Complete: true, Since: then}
		}
	}
	return out
}

// leading is a leader that sees a whole cluster, of which everything is news.
func leading(change ...func(*facts)) facts {
	f := facts{leads: true, now: then.Add(time.Hour), led: time.Hour, since: then, tables: all(), changed: map[string]bool{}}
	for name := range made() {
		f.changed[name] = true
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// broken is a table that cannot be obtained since a minute after then.
func broken(tables ...string) func(*facts) {
	return func(f *facts) {
		for _, name := range tables {
			f.tables[name] = types.TableStatus{Since: then.Add(time.Minute), Why: "the API server says no"}
		}
	}
}

func section(t *testing.T, a action, name string) types.ReportSection {
	t.Helper()
	for _, s := range a.health.Sections {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("nothing is said of section %s", name)
	return types.ReportSection{}
}

func TestOnlyAReporterThatSeesTheClusterReports(t *testing.T) {
	for name, r := range map[string]struct {
		f                    facts
		withdraws, publishes bool
		again                time.Duration
	}{
		"who does not lead withdraws the report": {f: facts{}, withdraws: true},
		"who does not lead withdraws it although the cluster is in view": {
			f: leading(func(f *facts) { f.leads = false }), withdraws: true,
		},
		"a leader that has seen no nodes yet leaves the report": {f: leading(broken(types.TableNodes))},
		"an empty cluster is reported as empty":                 {f: leading(), publishes: true},
		"nor where one that is listed is in doubt": {
			f: leading(led(0), func(f *facts) { f.tables[types.TableClaims] = types.TableStatus{Since: then, InDoubt: true} }), publishes: true,
		},
		"a new leader waits a moment for all of its sources": {f: leading(broken(types.TableClaims), led(time.Second)), again: time.Second},
		"and no longer":                                           {f: leading(broken(types.TableClaims), led(2*time.Second)), publishes: true},
		"nor where all are there at once":                         {f: leading(led(0)), publishes: true},
		"nor where it has reported":                               {f: leading(broken(types.TableClaims), led(time.Second), func(f *facts) { f.mem.reported = true }), publishes: true},
		"a leader without KubeVirt and Longhorn waits for nobody": {f: leading(led(0), lacking), publishes: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(r.f)
			if a.withdraw != r.withdraws || (a.publish != nil) != r.publishes || a.again != r.again {
				t.Errorf("withdraws %v, publishes %v, looks again after %v", a.withdraw, a.publish != nil, a.again)
			}
			if a.health.Reports == r.withdraws {
				t.Errorf("KubeReportHealth says that it reports: %v", a.health.Reports)
			}
		})
	}
}

func led(d time.Duration) func(*facts) { return func(f *facts) { f.led = d } }

// lacking is a cluster without KubeVirt and Longhorn.
func lacking(f *facts) {
	for _, name := range []string{
		types.TableVMIs, types.TableLonghornVolumes, types.TableLonghornEngines, types.TableLonghornReplicas,
		types.TableLonghornSnapshots, types.TableLonghornNodes,
	} {
		f.tables[name] = types.TableStatus{Complete: true, Since: then, Absent: true}
	}
}

func TestASourceThatFailsSpoilsItsOwnSectionOnly(t *testing.T) {
	fill := func(f *facts) {
		f.nodes = nodeTable(types.Node{Name: "n1", Ready: types.ConditionTrue})
		f.appPods = podTable(appPod("a"))
		f.vmis = map[string]types.VMI{"vm": {Name: "vm", Phase: types.VMIRunning}}
		f.counts = map[string]types.KubePodNameSpaceInfo{"x": {Name: "x", PodCount: 1}}
		f.claims = map[string]types.Claim{"v-pvc-0": {Name: "v-pvc-0", Volume: "pvc-1", Phase: types.ClaimBound}}
		f.volumes = map[string]types.Volume{"pvc-1": {Name: "pvc-1"}}
		f.daemons = map[string]types.DaemonSet{"m": {Name: "m", Wanted: 1, Ready: 1}}
	}
	before := decide(leading(fill))
	for broke, sections := range map[string][]string{
		types.TableAppPods:           {types.SectionAppPods, types.SectionNamespaces},
		types.TableVMIs:              {types.SectionAppVMIs},
		types.TablePodCounts:         {types.SectionNamespaces},
		types.TableClaims:            {types.SectionStorage},
		types.TableLonghornVolumes:   {types.SectionStorage},
		types.TableLonghornEngines:   {types.SectionStorage},
		types.TableLonghornReplicas:  {types.SectionStorage},
		types.TableLonghornSnapshots: {types.SectionAllocated},
		types.TableLonghornDaemons:   {types.SectionStorageHealth},
		types.TableLonghornNodes:     {types.SectionStorageHealth},
		types.TableNodes:             {types.SectionNodes},
	} {
		t.Run(broke, func(t *testing.T) {
			f := leading(broken(broke)) // and everything else has become empty
			f.mem, f.gone = before.mem, []string{"eve-kube-app/a"}
			a := decide(f)
			got := map[string]int{
				types.SectionNodes: len(a.publish.Nodes), types.SectionAppPods: len(a.publish.AppPods), types.SectionAppVMIs: len(a.publish.AppVMIs),
				types.SectionStorage: len(a.publish.Storage.Volumes), types.SectionNamespaces: len(a.publish.PodNsInfo),
				types.SectionStorageHealth: int(a.publish.Storage.Health) - int(types.ServiceStatusFailed),
			}
			for name, n := range got {
				kept, stale := n != 0, !section(t, a, name).StaleSince.IsZero()
				if want := slices.Contains(sections, name); kept != want || stale != want {
					t.Errorf("%s: the last good part is kept: %v, it is called stale: %v", name, kept, stale)
				}
			}
			want := types.ReportSection{Name: sections[0], Known: true, StaleSince: then.Add(time.Minute), Why: "the API server says no"}
			now := section(t, a, sections[0])
			if now.StaleSince != want.StaleSince || now.Why != want.Why {
				t.Errorf("it says %+v", now)
			}
			// The news that came meanwhile is taken in when the source is back,
			// although nothing rings then.
			g := leading(func(g *facts) { g.mem, g.changed = a.mem, a.mem.behind })
			if b := decide(g); len(b.publish.Nodes)+len(b.publish.AppPods)+len(b.publish.AppVMIs)+len(b.publish.Storage.Volumes)+len(b.publish.PodNsInfo) != 0 {
				t.Errorf("what was missed is never taken in: %+v", b.publish)
			}
		})
	}
}

func TestAListWithoutEntriesIsNull(t *testing.T) {
	a := decide(leading(func(f *facts) { f.appPods = podTable(appPod("virt-launcher-x")) }))
	data, err := json.Marshal(a.publish)
	if err != nil || strings.Contains(string(data), "[]") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestASectionWithoutNewsStaysAsItIs(t *testing.T) {
	before := decide(leading(func(f *facts) { f.nodes = nodeTable(types.Node{Name: "n1"}) }))
	f := leading(func(f *facts) { f.mem, f.changed, f.now = before.mem, map[string]bool{}, then.Add(2*time.Hour) })
	a := decide(f)
	if d := cmp.Diff(before.publish, a.publish); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if d := cmp.Diff(before.health, a.health); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestASectionOfWhatTheClusterLacksIsKnownAndAbsent(t *testing.T) {
	a := decide(leading(lacking))
	for _, name := range []string{types.SectionAppVMIs, types.SectionStorage, types.SectionStorageHealth, types.SectionAllocated} {
		if s := section(t, a, name); !s.Absent || !s.Known || !s.StaleSince.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	if s := section(t, a, types.SectionNodes); s.Absent {
		t.Error("every cluster has nodes")
	}
	if a.publish.Storage.Health != types.ServiceStatusUnset {
		t.Errorf("storage is %v where there is none", a.publish.Storage.Health)
	}
	f := leading(broken(types.TableLonghornVolumes))
	if s := section(t, decide(f), types.SectionStorage); s.Absent || s.Known {
		t.Errorf("a source that has never been seen: %+v", s)
	}
}

func TestTheBytesOfVolumesThatWereNeverSeenAreNotKnown(t *testing.T) {
	snapshots := func(f *facts) { f.volumes = map[string]types.Volume{"v": {Name: "v", Snapshots: 7}} }
	a := decide(leading(snapshots, broken(types.TableClaims)))
	if s := section(t, a, types.SectionAllocated); s.Known || !s.StaleSince.Equal(then.Add(time.Minute)) || s.Why != "the API server says no" {
		t.Errorf("before the volumes are seen: %+v", s)
	}
	before := decide(leading(snapshots))
	f := leading(broken(types.TableClaims))
	f.mem = before.mem
	if s := section(t, decide(f), types.SectionAllocated); !s.Known || !s.StaleSince.IsZero() {
		t.Errorf("of volumes that were seen: %+v", s)
	}
}

func TestNodesAreReportedByNameWithRoleStateAndAdmission(t *testing.T) {
	utc2 := time.FixedZone("", 7200)
	got := nodes(leading(func(f *facts) {
		f.nodes = nodeTable(
			types.Node{Name: "n3", Ready: types.ConditionUnknown, Etcd: true, Master: true},
			types.Node{Name: "n4"},
			types.Node{Name: "n2", Ready: types.ConditionFalse, Unschedulable: true},
			types.Node{
				Name: "n1", Ready: types.ConditionTrue, ReadySince: then.Add(time.Minute).In(utc2), Created: then.In(utc2),
				ControlPlane: true, Etcd: true, UUID: "u1", KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.0.0.1", ExternalIP: "1.2.3.4",
			},
		)
	}))
	want := []types.KubeNodeInfo{
		{
			Name: "n1", Status: types.KubeNodeReady, IsMaster: true, UsesEtcd: true, CreationTime: then,
			LastTransitionTime: then.Add(time.Minute), KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.0.0.1",
			ExternalIP: "1.2.3.4", Schedulable: true, Admission: types.KubeNodeAdmissionJoined, NodeID: "u1",
		},
		{Name: "n2", Status: types.KubeNodeNotReady, Admission: types.KubeNodeAdmissionJoined},
		{
			Name: "n3", Status: types.KubeNodeNotReachable, IsMaster: true, UsesEtcd: true, Schedulable: true,
			Admission: types.KubeNodeAdmissionJoined,
		},
		{Name: "n4", Schedulable: true, Admission: types.KubeNodeAdmissionJoining},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestAppPodsAreReportedByNameWithoutLaunchers(t *testing.T) {
	phase := func(ph types.PodPhase) func(*types.Pod) { return func(p *types.Pod) { p.Phase = ph } }
	got := appPods(nil, podTable(
		appPod("f", phase("")),
		appPod("e", phase(types.PodFailed)),
		appPod("d", phase(types.PodSucceeded)),
		appPod("c", phase(types.PodPending), func(p *types.Pod) { p.NodeName = "" }),
		appPod("b", func(p *types.Pod) { p.RestartCount, p.RestartedAt, p.IP = 2, then.Add(time.Hour), "10.42.0.9" }),
		appPod("virt-launcher-x"),
		appPod("by-label", func(p *types.Pod) { p.VMI = "vm" }),
		appPod("by-owner", func(p *types.Pod) { p.Owner.Kind = "VirtualMachineInstance" }),
	), nil)
	want := []types.KubePodInfo{
		{
			Name: "b", Status: types.KubePodRunning, RestartCount: 2, RestartTimestamp: types.TextTime(then.Add(time.Hour)),
			CreationTimestamp: types.TextTime(then), PodIP: "10.42.0.9", NodeName: "n1",
		},
		{Name: "c", Status: types.KubePodPending, CreationTimestamp: types.TextTime(then)},
		{Name: "d", Status: types.KubePodSucceeded, CreationTimestamp: types.TextTime(then), NodeName: "n1"},
		{Name: "e", Status: types.KubePodFailed, CreationTimestamp: types.TextTime(then), NodeName: "n1"},
		{Name: "f", Status: types.KubePodUnknown, CreationTimestamp: types.TextTime(then), NodeName: "n1"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestAppPodsComeAndGoWithTheOthersInTheirPlaces(t *testing.T) {
	var infos []types.KubePodInfo
	for _, c := range []struct {
		rows []types.Pod
		gone []string
		want []string
	}{
		{[]types.Pod{appPod("d"), appPod("b")}, nil, []string{"b", "d"}},
		{nil, nil, []string{"b", "d"}},
		{[]types.Pod{appPod("c"), appPod("a"), appPod("virt-launcher-x")}, nil, []string{"a", "b", "c", "d"}},
		{[]types.Pod{appPod("b", func(p *types.Pod) { p.IP = "new" })}, []string{"eve-kube-app/a", "eve-kube-app/none"}, []string{"b new", "c", "d"}},
		{[]types.Pod{appPod("e"), appPod("c", func(p *types.Pod) { p.VMI = "vm" })}, []string{"eve-kube-app/d"}, []string{"b new", "e"}},
		{nil, []string{"eve-kube-app/b", "eve-kube-app/e"}, nil},
	} {
		before := infos
		was := slices.Clone(before)
		infos = appPods(before, podTable(c.rows...), c.gone)
		var got []string
		for _, info := range infos {
			got = append(got, strings.TrimSpace(info.Name+" "+info.PodIP))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Error("want -, got +\n" + d)
		}
		if d := cmp.Diff(was, before); d != "" {
			t.Error("what was reported before has changed:\n" + d)
		}
	}
}

func TestAdmissionTellsWhereANodeStands(t *testing.T) {
	ready := types.Node{Name: "n1", UUID: "u1", Ready: types.ConditionTrue}
	with := func(change func(*types.Node)) types.Node { n := ready; change(&n); return n }
	for name, r := range map[string]struct {
		n          types.Node
		membership types.Membership
		stale      []string
		want       types.KubeNodeAdmission
	}{
		"a node whose kubelet has reported has joined":       {ready, types.MembershipMember, nil, types.KubeNodeAdmissionJoined},
		"one that is lost has not left":                      {with(func(n *types.Node) { n.Ready = types.ConditionUnknown }), types.MembershipMember, nil, types.KubeNodeAdmissionJoined},
		"one without a Ready condition is joining":           {with(func(n *types.Node) { n.Ready = "" }), types.MembershipMember, nil, types.KubeNodeAdmissionJoining},
		"a device without a cluster is not clustered":        {ready, types.MembershipNever, nil, types.KubeNodeAdmissionNotClustered},
		"nor is one that has left":                           {ready, types.MembershipLeft, nil, types.KubeNodeAdmissionNotClustered},
		"this node leaves":                                   {ready, types.MembershipLeaving, nil, types.KubeNodeAdmissionLeaving},
		"a doubt is no leave":                                {ready, types.MembershipDoubtful, nil, types.KubeNodeAdmissionJoined},
		"another node says that it leaves":                   {with(func(n *types.Node) { n.UUID, n.Agent = "u2", &types.AgentStamp{Leaving: true} }), types.MembershipMember, nil, types.KubeNodeAdmissionLeaving},
		"a master that the controller does not name leaves":  {with(func(n *types.Node) { n.UUID = "u2" }), types.MembershipMember, []string{"n1"}, types.KubeNodeAdmissionLeaving},
		"what this device is says nothing of another's node": {with(func(n *types.Node) { n.UUID = "u2" }), types.MembershipNever, nil, types.KubeNodeAdmissionJoined},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{own: "u1", membership: r.membership, stale: r.stale}
			if got := admission(f, r.n); got != r.want {
				t.Errorf("got %v, want %v", got, r.want)
			}
		})
	}
}

func TestAMasterThatIsNotNamedYetDoesNotLeave(t *testing.T) {
	m := types.ClusterMembers{Stale: []types.StaleMember{{Node: "n3"}, {Node: "n4", Joins: true}}}
	if got := noLongerNamed(m); !slices.Equal(got, []string{"n3"}) {
		t.Errorf("%v leave", got)
	}
}

func TestConditionsAreThoseThatTheControllerKnows(t *testing.T) {
	got := conditions([]types.NodeCondition{
		{Type: "PIDPressure", Status: types.ConditionFalse, Since: then},
		{Type: "MemoryPressure", Status: types.ConditionTrue, Since: then},
		{Type: "EtcdIsVoter", Status: types.ConditionTrue},
		{Type: "NetworkUnavailable", Status: types.ConditionUnknown, Since: then},
	})
	want := []types.KubeNodeCondition{
		{Type: types.KubeNodeConditionMemoryPressure, Set: true, Since: then},
		{Type: types.KubeNodeConditionPIDPressure, Since: then},
		{Type: types.KubeNodeConditionNetworkUnavailable, Since: then},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestTheReasonOfAPodIsWhatKeepsItFromRunning(t *testing.T) {
	containers := func(list ...types.Container) func(*types.Pod) { return func(p *types.Pod) { p.Containers = list } }
	ended := func(code int32, reason string) types.Container {
		return types.Container{Now: types.ContainerRun{ID: "1", Started: then, Finished: then.Add(time.Second), ExitCode: code, Reason: reason}}
	}
	runs := types.Container{Now: types.ContainerRun{ID: "1", Started: then}}
	for want, p := range map[string]types.Pod{
		"":                  appPod("well", containers(runs, ended(0, "Completed"))),
		"Evicted":           appPod("p", func(p *types.Pod) { p.Reason = "Evicted" }, containers(ended(137, "OOMKilled"))),
		"Unschedulable":     appPod("p", func(p *types.Pod) { p.NodeName, p.Unschedulable = "", "0/3 nodes" }),
		"ContainerCreating": appPod("p", containers(types.Container{Waiting: "ContainerCreating"})),
		"CrashLoopBackOff":  appPod("p", containers(runs, types.Container{Waiting: "CrashLoopBackOff"})),
		"OOMKilled":         appPod("p", containers(ended(137, "OOMKilled"))),
		"Error":             appPod("p", containers(ended(1, ""))),
		"PodInitializing":   appPod("p", containers(types.Container{Now: types.ContainerRun{ID: "1", Started: then}}, types.Container{Waiting: "PodInitializing"})),
		"ImagePullBackOff":  appPod("p", containers(types.Container{Waiting: "PodInitializing"}, types.Container{Waiting: "ImagePullBackOff"})),
	} {
		if got := reason(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestVirtualMachinesAreReportedByNameInEveryPhase(t *testing.T) {
	table := map[string]types.VMI{}
	for i, phase := range []types.VMIPhase{
		types.VMIUnset, types.VMIPending, types.VMIScheduling, types.VMIScheduled, types.VMIRunning, types.VMISucceeded, types.VMIFailed, types.VMIUnknown, "WaitingForSync",
	} {
		name := fmt.Sprintf("vm-%d", i)
		table[name] = types.VMI{Name: name, Phase: phase, Created: then, NodeName: "n1"}
	}
	ready := table["vm-4"]
	ready.Ready, ready.ReadySince = true, then.Add(time.Minute)
	table["vm-4"] = ready
	for i, got := range vmis(table) {
		want := types.KubeVMIInfo{
			Name: fmt.Sprintf("vm-%d", i), Status: types.KubeVMIStatus(min(i, int(types.KubeVMIUnknown))), CreationTime: then,
			LastTransitionTime: table[fmt.Sprintf("vm-%d", i)].ReadySince, IsReady: i == 4, NodeName: "n1",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error("want -, got +\n" + d)
		}
	}
}

func TestPodsAreCountedByNamespace(t *testing.T) {
	got := namespaces(map[string]types.KubePodNameSpaceInfo{
		"b": {Name: "b", PodCount: 6, PodRunningCount: 2, PodPendingCount: 1, PodFailedCount: 1, PodSucceededCount: 1}, "a": {Name: "a", PodCount: 1, PodFailedCount: 1},
	})
	want := []types.KubePodNameSpaceInfo{
		{Name: "a", PodCount: 1, PodFailedCount: 1},
		{Name: "b", PodCount: 6, PodRunningCount: 2, PodPendingCount: 1, PodFailedCount: 1, PodSucceededCount: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

// huge is a cluster of which no part fits into a report.
func huge() facts {
	f := leading(func(f *facts) {
		f.nodes, f.appPods, f.counts = map[string]types.Node{}, map[string]types.Pod{}, map[string]types.KubePodNameSpaceInfo{}
		f.vmis, f.claims, f.volumes = map[string]types.VMI{}, map[string]types.Claim{}, map[string]types.Volume{}
	})
	for i := range 1000 {
		name := fmt.Sprintf("node-%04d", i)
		f.nodes[name] = types.Node{
			Name: name, Ready: types.ConditionTrue, InternalIP: "10.244.244.2", KubeletVersion: "v1.34.2+k3s1",
			Conditions: []types.NodeCondition{{Type: "DiskPressure", Status: types.ConditionFalse, Since: then}},
		}
	}
	for i := range 2000 {
		ns, claim, volume := fmt.Sprintf("ns-%04d", i), fmt.Sprintf("%04d-pvc-0", i), fmt.Sprintf("pvc-%04d", i)
		f.counts[ns] = types.KubePodNameSpaceInfo{Name: ns, PodCount: 5}
		f.claims[claim] = types.Claim{Name: claim, Volume: volume, Phase: types.ClaimBound}
		v := types.Volume{Name: volume, State: "attached", Robustness: "healthy", Running: true, Created: then, Size: 1 << 40, Used: 1 << 39}
		for r := range 3 {
			v.Replicas = append(v.Replicas, types.Replica{Name: fmt.Sprintf("%s-replica-of-%04d-r-%d", volume, i, r), Node: "node-0001", State: "running", Mode: "RW", Started: true})
		}
		f.volumes[volume] = v
	}
	for i := range 10_000 {
		p := appPod(fmt.Sprintf("<pod>-%05d", i))
		f.appPods[p.Key()] = p
		vm := fmt.Sprintf("vm-%05d", i)
		f.vmis[vm] = types.VMI{Name: vm, Phase: types.VMIRunning, Created: then, ReadySince: then, NodeName: "node-0001"}
	}
	return f
}

func TestReportOfAHugeClusterIsCutToWhatAMessageCarriesAndSaysSo(t *testing.T) {
	f := huge()
	a := decide(f)
	r := a.publish
	size := func(v any) int {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	if n := size(r.Nodes) + size(r.PodNsInfo); n > pubsub.MaxMessage+4 || n < pubsub.MaxMessage-500 {
		t.Errorf("%d bytes of nodes and namespaces", n)
	}
	for name, n := range map[string]int{types.SectionAppPods: size(r.AppPods), types.SectionAppVMIs: size(r.AppVMIs), types.SectionStorage: size(r.Storage.Volumes)} {
		if n > pubsub.MaxLarge+2 || n < pubsub.MaxLarge-1000 {
			t.Errorf("%d bytes of %s", n, name)
		}
	}
	for name, n := range map[string][2]int{
		types.SectionNodes: {1000, len(r.Nodes)}, types.SectionNamespaces: {2000, len(r.PodNsInfo)}, types.SectionAppPods: {10_000, len(r.AppPods)},
		types.SectionAppVMIs: {10_000, len(r.AppVMIs)}, types.SectionStorage: {2000, len(r.Storage.Volumes)},
	} {
		if s := section(t, a, name); s.Total != n[0] || s.Truncated != n[0]-n[1] || s.Truncated == 0 {
			t.Errorf("%s has %d of %d and says %+v", name, n[1], n[0], s)
		}
	}
	if s := section(t, a, types.SectionNodes); len(r.Nodes) < 100 || r.Nodes[0].Conditions != nil || s.Without != "Conditions" {
		t.Errorf("conditions do not go before nodes: %d nodes, %+v", len(r.Nodes), s)
	}
	if r.Nodes[0].Name != "node-0000" || r.AppPods[0].Name != "<pod>-00000" || r.Storage.Volumes[0].Name != "0000-pvc-0" {
		t.Errorf("the first entries are %s and %s", r.Nodes[0].Name, r.AppPods[0].Name)
	}
	f.mem, f.nodes, f.changed = a.mem, nil, map[string]bool{types.SectionNodes: true}
	b := decide(f)
	if s := section(t, b, types.SectionNamespaces); len(b.publish.PodNsInfo) < 300 || s.Truncated == 0 {
		t.Errorf("%d namespaces without a node, %+v", len(b.publish.PodNsInfo), s)
	}
}

func TestNoNameIsTooLongForTheReport(t *testing.T) {
	long := strings.Repeat("n", 60_000)
	a := decide(leading(func(f *facts) { f.nodes = nodeTable(types.Node{Name: "a"}, types.Node{Name: long}) }))
	if s := section(t, a, types.SectionNodes); len(a.publish.Nodes) != 1 || s.Truncated != 1 {
		t.Errorf("%d nodes, %+v", len(a.publish.Nodes), s)
	}
}
