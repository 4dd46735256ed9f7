package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

var now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func TestNodesAsTheAPIServerHasThem(t *testing.T) {
	cordoned := types.Node{Name: "b", UID: "2", Ready: types.ConditionFalse, Unschedulable: true, CordonedBy: &types.Cordon{By: "zedkube", Reason: "r", Since: ago(time.Hour)}, ControlPlane: true, Etcd: true, DrainInProgress: types.ConditionTrue}
	kept, foreign := cordoned, cordoned
	kept.Name, kept.CordonKept = "c", true
	foreign.Name, foreign.CordonedBy, foreign.TaintedAt, foreign.Drained = "d", nil, ago(time.Minute), types.ConditionTrue
	lost := types.Node{Name: "e", UID: "5", Ready: types.ConditionUnknown, TieBreaker: true}
	witness := types.Node{
		Name: "a", UID: "1", Ready: types.ConditionTrue, ReadySince: ago(time.Hour), Agent: &types.AgentStamp{Version: "v1"}, StampedAt: ago(time.Second),
		Conditions: []types.NodeCondition{{Type: "DiskPressure", Status: types.ConditionTrue}, {Type: "PIDPressure", Status: types.ConditionFalse}},
		Witness:    &types.Witness{Sightings: []types.Sighting{{UID: "5", Silent: types.WitnessSilent}, {UID: "2", Alive: "10.0.0.2:12346"}}},
	}
	back := types.Node{Name: "f", UID: "6", Ready: types.ConditionTrue, Agent: &types.AgentStamp{Version: "v1"}, StampStale: true}
	got := NodesOf([]types.Node{lost, foreign, kept, cordoned, witness, back}, "b")
	both, answers := []string{"control-plane", "etcd"}, "its device answers a at 10.0.0.2:12346"
	want := []ClusterNode{
		{Name: "a", Status: "Ready", Since: ago(time.Hour), Roles: []string{"worker"}, Agent: "v1", AgentAt: ago(time.Second), Pressures: []string{"DiskPressure"}},
		{Name: "b", Own: true, Status: "NotReady", Roles: both, Cordoned: true, CordonedBy: "zedkube", CordonWhy: "r", CordonSince: ago(time.Hour), Drain: "draining", Lost: answers},
		{Name: "c", Status: "NotReady", Roles: both, Cordoned: true, CordonedBy: "kept", CordonWhy: "r", CordonSince: ago(time.Hour), Drain: "draining", Lost: answers},
		{Name: "d", Status: "NotReady", Roles: both, Cordoned: true, CordonedBy: "somebody else", CordonSince: ago(time.Minute), Drain: "drained", Lost: answers},
		{Name: "e", Status: "NotReachable", Roles: []string{"tie-breaker"}, Lost: "its device answers none of a"},
		{Name: "f", Status: "Ready", Roles: []string{"worker"}, Agent: "v1", AgentStale: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestTheDrainOfANodeIsInAWord(t *testing.T) {
	for want, n := range map[string]types.Node{
		"":         {DrainInProgress: types.ConditionFalse, DrainReason: string(types.PhaseIdle)},
		"waiting":  {DrainInProgress: types.ConditionTrue, DrainReason: string(types.PhaseGates)},
		"draining": {DrainInProgress: types.ConditionTrue, DrainReason: string(types.PhaseEmptying)},
		"drained":  {Drained: types.ConditionTrue, DrainReason: string(types.PhaseComplete)},
		"forced":   {Drained: types.ConditionFalse, DrainInProgress: types.ConditionTrue, DrainReason: types.DrainForced},
	} {
		if got := NodesOf([]types.Node{n}, "")[0].Drain; got != want {
			t.Errorf("%+v is %q, want %q", n, got, want)
		}
	}
}

func TestNobodyIsCordonedByKept(t *testing.T) {
	for by, want := range map[string]string{
		"": "cordoned", "zedkube": "cordoned by zedkube", "somebody else": "cordoned by somebody else", "kept": "cordoned, and kept so by an operator",
		"operator": "cordoned by somebody else", "tie-breaker": "cordoned as tie-breaker", types.CordonedDisabled: "cordoned, workloads disabled",
	} {
		if got := Cordoned(by); got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
	}
}

func TestNodesOfKubeEdgeAreShownBesideTheMembers(t *testing.T) {
	var members, edges pubsub.Table[types.Node]
	publish(t, &members, types.Node{Name: "n1", Ready: types.ConditionTrue})
	publish(t, &edges, types.Node{Name: "e2", Ready: types.ConditionUnknown, ReadySince: ago(time.Hour), Unschedulable: true, KubeletVersion: "v1.30.7-kubeedge-v1.20.0"})
	publish(t, &edges, types.Node{Name: "e1", Ready: types.ConditionTrue, InternalIP: "10.88.1.2"})
	l := Live{Root: t.TempDir(), Node: &members, Edge: &edges, EdgeMetrics: &pubsub.Table[types.KubeNodeMetrics]{}, Info: &pubsub.Table[types.EdgeNodeInfo]{}, API: &pubsub.Table[types.APIStatus]{}}
	want := []EdgeNode{
		{Name: "e1", Ready: true, Address: "10.88.1.2"},
		{Name: "e2", Since: ago(time.Hour), Cordoned: true, Kubelet: "v1.30.7-kubeedge-v1.20.0"},
	}
	o := l.Overview(now)
	if diff := cmp.Diff(want, o.Nodes.Edge); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if len(o.Nodes.List) != 1 || o.Nodes.List[0].Name != "n1" {
		t.Errorf("the members are %v", o.Nodes.List)
	}
}

func publish(t *testing.T, table *pubsub.Table[types.Node], n types.Node) {
	t.Helper()
	if err := table.Publish(n.Name, n); err != nil {
		t.Fatal(err)
	}
}
