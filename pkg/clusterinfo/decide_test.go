package clusterinfo

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// leading is a leader that sees a whole cluster.
func leading(change ...func(*facts)) facts {
	f := facts{leads: true, apiKnown: true, api: types.APIStatus{Synced: true, AllPods: true}}
	for _, c := range change {
		c(&f)
	}
	return f
}

func TestOnlyAReporterThatSeesTheClusterReports(t *testing.T) {
	counted := []types.KubePodNameSpaceInfo{{Name: "kube-system", PodCount: 1, PodRunningCount: 1}}
	system := types.Pod{Namespace: "kube-system", Name: "dns", Phase: types.PodRunning}
	rows := map[string]struct {
		f    facts
		want action
	}{
		"who does not lead withdraws the report": {f: facts{}, want: action{withdraw: true}},
		"who does not lead withdraws it although the cluster is in view": {
			f: leading(func(f *facts) { f.leads = false }), want: action{withdraw: true},
		},
		"a leader that knows nothing of the API leaves the report": {f: facts{leads: true}},
		"a leader leaves the report while the API is silent": {
			f: leading(func(f *facts) { f.api.SilentSince = then }),
		},
		"a leader leaves the report while its tables are incomplete": {
			f: leading(func(f *facts) { f.api.Synced = false }),
		},
		"an empty cluster is reported as empty": {
			f: leading(), want: action{publish: &types.KubeClusterInfo{}},
		},
		"pods are not counted before all are known": {
			f:    leading(func(f *facts) { f.api.AllPods, f.allPods = false, podTable(system) }),
			want: action{publish: &types.KubeClusterInfo{}},
		},
		"the last count stands until all pods are known again": {
			f:    leading(func(f *facts) { f.api.AllPods, f.last.PodNsInfo = false, counted }),
			want: action{publish: &types.KubeClusterInfo{PodNsInfo: counted}},
		},
		"a complete count replaces the last one": {
			f:    leading(func(f *facts) { f.allPods, f.last.PodNsInfo = podTable(system), nil }),
			want: action{publish: &types.KubeClusterInfo{PodNsInfo: counted}},
		},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(r.want, decide(r.f), cmp.AllowUnexported(action{}, cut{})); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestNodesAreReportedByNameWithRoleStateAndAdmission(t *testing.T) {
	utc2 := time.FixedZone("", 7200)
	got := nodes(nodeTable(
		types.Node{Name: "n3", Ready: types.ConditionUnknown, Etcd: true, Master: true},
		types.Node{Name: "n4"},
		types.Node{Name: "n2", Ready: types.ConditionFalse, Unschedulable: true},
		types.Node{
			Name: "n1", Ready: types.ConditionTrue, ReadySince: then.Add(time.Minute).In(utc2), Created: then.In(utc2),
			ControlPlane: true, Etcd: true, UUID: "u1", KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.0.0.1", ExternalIP: "1.2.3.4",
		},
	))
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
	got := appPods(podTable(
		appPod("f", phase("")),
		appPod("e", phase(types.PodFailed)),
		appPod("d", phase(types.PodSucceeded)),
		appPod("c", phase(types.PodPending), func(p *types.Pod) { p.NodeName = "" }),
		appPod("b", func(p *types.Pod) { p.RestartCount, p.RestartedAt, p.IP = 2, then.Add(time.Hour), "10.42.0.9" }),
		appPod("virt-launcher-x"),
		appPod("by-label", func(p *types.Pod) { p.VMI = "vm" }),
		appPod("by-owner", func(p *types.Pod) { p.Owner.Kind = "VirtualMachineInstance" }),
	))
	want := []types.KubePodInfo{
		{
			Name: "b", Status: types.KubePodRunning, RestartCount: 2, RestartTimestamp: then.Add(time.Hour),
			CreationTimestamp: then, PodIP: "10.42.0.9", NodeName: "n1",
		},
		{Name: "c", Status: types.KubePodPending, CreationTimestamp: then},
		{Name: "d", Status: types.KubePodSucceeded, CreationTimestamp: then, NodeName: "n1"},
		{Name: "e", Status: types.KubePodFailed, CreationTimestamp: then, NodeName: "n1"},
		{Name: "f", Status: types.KubePodUnknown, CreationTimestamp: then, NodeName: "n1"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestPodsAreCountedByNamespaceAndPhase(t *testing.T) {
	pod := func(ns, name string, phase types.PodPhase) types.Pod {
		return types.Pod{Namespace: ns, Name: name, Phase: phase}
	}
	got := namespaces(podTable(
		pod("b", "1", types.PodRunning), pod("b", "2", types.PodRunning), pod("b", "3", types.PodPending),
		pod("b", "4", types.PodFailed), pod("b", "5", types.PodSucceeded), pod("b", "6", types.PodUnknown),
		pod("a", "1", types.PodFailed),
	))
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
		f.nodes, f.appPods, f.allPods = map[string]types.Node{}, map[string]types.Pod{}, map[string]types.Pod{}
	})
	for i := range 1000 {
		name := fmt.Sprintf("node-%04d", i)
		f.nodes[name] = types.Node{Name: name, Ready: types.ConditionTrue, InternalIP: "10.244.244.2", KubeletVersion: "v1.34.2+k3s1"}
	}
	for i := range 10_000 {
		p := appPod(fmt.Sprintf("<pod>-%05d", i))
		f.appPods[p.Key()] = p
		p.Namespace = fmt.Sprintf("ns-%04d", i%2000)
		f.allPods[p.Key()] = p
	}
	return f
}

func TestReportOfAHugeClusterIsCutToWhatAMessageCarries(t *testing.T) {
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
	if n := size(r.Nodes) + size(r.PodNsInfo); n > maxMessage+4 {
		t.Errorf("%d bytes of nodes and namespaces", n)
	}
	if n := size(r.AppPods); n > maxLarge+2 || n < maxLarge-1000 {
		t.Errorf("%d bytes of pods", n)
	}
	want := cut{nodes: 1000 - len(r.Nodes), namespaces: 2000 - len(r.PodNsInfo), pods: 10_000 - len(r.AppPods)}
	if a.cut != want || want.nodes <= 0 || want.pods <= 0 || len(r.Nodes) < 100 || len(r.AppPods) < 3000 {
		t.Errorf("cut %+v, kept %d nodes and %d pods", a.cut, len(r.Nodes), len(r.AppPods))
	}
	if r.Nodes[0].Name != "node-0000" || r.AppPods[0].Name != "<pod>-00000" {
		t.Errorf("the first entries are %s and %s", r.Nodes[0].Name, r.AppPods[0].Name)
	}
	f.nodes = nil
	if a := decide(f); len(a.publish.PodNsInfo) < 300 || a.cut.namespaces == 0 {
		t.Errorf("%d namespaces without a node, cut %+v", len(a.publish.PodNsInfo), a.cut)
	}
}
