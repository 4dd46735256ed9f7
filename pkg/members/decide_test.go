package members

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

var (
	cluster = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	other   = uuid.MustParse("77777777-3a0e-4c7e-9f1b-2f6f0c3a9e11")
)

// device is the UUID of the device whose Node is called name.
func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

func devices(names ...string) []uuid.UUID {
	var ids []uuid.UUID
	for _, n := range names {
		ids = append(ids, device(n))
	}
	return ids
}

// node is a Ready server that was told of the masters n1, n2 and n4, where n4
// replaces n3.
func node(name string, change ...func(*types.Node)) types.Node {
	n := types.Node{
		Name: name, UID: "uid-" + name, UUID: device(name).String(), Ready: types.ConditionTrue, BootID: "boot-" + name,
		ControlPlane: true, Etcd: true, Agent: &types.AgentStamp{Cluster: cluster, Masters: devices("n1", "n2", "n4")},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func down(n *types.Node)      { n.Ready = types.ConditionUnknown }
func cordoned(n *types.Node)  { n.Unschedulable = true }
func unstamped(n *types.Node) { n.Agent = nil }
func worker(n *types.Node)    { n.ControlPlane, n.Etcd = false, false }
func listing(names ...string) func(*types.Node) {
	return func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: cluster, Masters: devices(names...)} }
}

// scene is a cluster of three whose n3 is dead and replaced by n4.
func scene() facts {
	own := node("n1")
	return facts{
		now: time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC), uptime: time.Hour,
		belongs: true, valid: true, fetched: true, seen: true, known: true, looked: true, own: own,
		told:  told{cluster: cluster, masters: devices("n1", "n2", "n4"), device: device("n1")},
		nodes: []types.Node{own, node("n2"), node("n3", down)},
	}
}

func TestWhichStaleMemberIsRemoved(t *testing.T) {
	set := func(i int, change ...func(*types.Node)) func(*facts) {
		return func(f *facts) {
			for _, c := range change {
				c(&f.nodes[i])
			}
		}
	}
	for _, row := range []struct {
		rule   string
		change func(*facts)
		remove string // the Node; "" for none
		why    string // what ClusterMembers says
		stale  int    // how many it lists
	}{
		{"a dead master that is named no more", func(*facts) {}, "n3", "", 1},
		{"none on an empty list", func(f *facts) { f.told.masters = nil }, "", "", 0},
		{"none that is named", func(f *facts) { f.told.masters = devices("n1", "n2", "n3", "n4") }, "", "", 0},
		{"no worker", set(2, worker), "", "", 0},
		{"none of which nobody knows the device", set(2, func(n *types.Node) { n.UUID = "" }), "", "", 0},
		{"none that names its device in no way anybody reads", set(2, func(n *types.Node) { n.UUID = "n3" }), "", "", 0},
		{"never itself", func(f *facts) {
			f.told.device = device("n3")
			f.own = f.nodes[2]
		}, "", "", 0},
		{"not by a node that is no master itself", func(f *facts) { f.told.device = device("n9") }, "", "does not name this node", 1},
		{"not while the configuration is not valid", func(f *facts) { f.valid = false }, "", "not valid at present", 1},
		{"not on the word of a controller that is not reached", func(f *facts) { f.fetched = false }, "", "may be old", 1},
		{"not while the cluster is not seen", func(f *facts) { f.seen = false }, "", "not seen", 1},
		{"not while a Ready member was told otherwise", set(1, listing("n1", "n2", "n3")), "", "n2 has not been told of the same masters", 1},
		{"not while one was told of more", set(1, listing("n1", "n2", "n3", "n4")), "", "n2 has not been told", 1},
		{"nor of fewer", set(1, listing("n1", "n2")), "", "n2 has not been told", 1},
		{"nor of none", set(1, listing()), "", "n2 has not been told", 1},
		{"nor of another cluster's", set(1, func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: other, Masters: devices("n1", "n2", "n4")} }), "", "n2 has not been told", 1},
		{"the order of a list says nothing", set(1, listing("n4", "n2", "n1")), "n3", "", 1},
		{"not while a Ready member has no zedkube of this kind", set(1, unstamped), "", "n2 has no zedkube that says", 1},
		{"a member that is down need not say anything", func(f *facts) {
			f.nodes[1] = node("n2", down, unstamped)
			f.nodes = append(f.nodes, node("n4"))
			f.told.masters = devices("n1", "n2", "n4")
			f.nodes = append(f.nodes, node("n5"))
			f.told.masters = append(f.told.masters, device("n5"))
			for _, i := range []int{0, 3, 4} {
				listing("n1", "n2", "n4", "n5")(&f.nodes[i])
			}
		}, "n3", "", 1},
		{"not before the own stamp says the same", set(0, listing("n1", "n2", "n3")), "", "n1 has not been told", 1},
		{"a Ready Node that is not named and knows it disagrees with nobody", func(f *facts) {
			f.nodes = append(f.nodes, node("n5"))
			f.nodes[3].Agent.Masters = nil
		}, "n3", "", 2},
		{"a Ready Node that is not named and was told that it is disagrees", func(f *facts) { f.nodes = append(f.nodes, node("n5", listing("n1", "n2", "n5"))) }, "", "n5 has not been told of the same", 2},
		{"a stale Node that is Ready and runs a zedkube leaves by itself", set(2, func(n *types.Node) { n.Ready, n.Agent = types.ConditionTrue, &types.AgentStamp{} }), "", "drains it before it leaves", 1},
		{"one without is removed though it is Ready", set(2, func(n *types.Node) { n.Ready, n.Agent = types.ConditionTrue, nil }), "n3", "", 1},
		{"not where the rest had no quorum", set(1, down), "", "no quorum", 1},
		{"of two dead ones the first", func(f *facts) {
			f.nodes = append(f.nodes, node("n4"), node("n5", down))
		}, "n3", "", 2},
		{"none so soon after another", func(f *facts) { f.pause = f.uptime + time.Second }, "", "", 1},
		{"none while the cluster rests after one", func(f *facts) { f.rest = f.uptime + time.Second }, "", "a moment ago", 1},
		{"none beside another", func(f *facts) { f.running = task{kind: remove} }, "", "", 1},
		{"nothing where this device is in no cluster", func(f *facts) { f.belongs = false }, "", "", 0},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f := scene()
			row.change(&f)
			a := decide(f)
			if got := a.task; (got.kind == remove) != (row.remove != "") || got.node.Name != row.remove {
				t.Errorf("removes %q, want %q", got.node.Name, row.remove)
			}
			if a.publish == nil {
				if row.why != "" || row.stale != 0 {
					t.Error("nothing is said")
				}
				return
			}
			if why := a.publish.Why; !strings.Contains(why, row.why) || row.why == "" && why != "" {
				t.Errorf("says %q, want %q", why, row.why)
			}
			if len(a.publish.Stale) != row.stale {
				t.Errorf("lists %v, want %d", a.publish.Stale, row.stale)
			}
			for _, s := range a.publish.Stale {
				if row.remove == "" && row.why != "" && s.Why == "" {
					t.Errorf("does not say why %s stays", s.Node)
				}
			}
		})
	}
}

func TestWhatTheTieBreakerNeeds(t *testing.T) {
	pod := func(change func(*types.Pod)) types.Pod {
		p := types.Pod{Namespace: "eve-kube-app", Name: "a", NodeName: "n3", Phase: types.PodRunning, Owner: types.Owner{Kind: "ReplicaSet"}}
		change(&p)
		return p
	}
	for _, row := range []struct {
		rule   string
		change func(*facts)
		acts   bool
		evicts int
	}{
		{"a schedulable one is cordoned", func(*facts) {}, true, 0},
		{"though it is down", func(f *facts) { down(&f.nodes[2]) }, true, 0},
		{"one that is cordoned and empty is left alone", func(f *facts) { cordoned(&f.nodes[2]) }, false, 0},
		{"its pods go", func(f *facts) { cordoned(&f.nodes[2]); f.pods = []types.Pod{pod(func(*types.Pod) {})} }, true, 1},
		{"not those that go already", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Deleted = f.now })}
		}, false, 0},
		{"nor those that are done", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Phase = types.PodSucceeded })}
		}, false, 0},
		{"nor those of a DaemonSet", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Owner.Kind = "DaemonSet" })}
		}, false, 0},
		{"nor those of a node that is down", func(f *facts) {
			cordoned(&f.nodes[2])
			down(&f.nodes[2])
			f.pods = []types.Pod{pod(func(*types.Pod) {})}
		}, false, 0},
		{"nor other nodes' pods", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.NodeName = "n2" })}
		}, false, 0},
		{"while the cluster rests after a removal too", func(f *facts) { f.rest = f.uptime + time.Minute }, true, 0},
		{"not on an old word", func(f *facts) { f.fetched = false }, false, 0},
		{"not without one", func(f *facts) { f.told.tie = uuid.Nil; cordoned(&f.nodes[2]) }, false, 0},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f := scene()
			f.nodes[2] = node("n3")
			f.told.masters, f.told.tie = nil, device("n3")
			row.change(&f)
			a := decide(f)
			if (a.task.kind == tie) != row.acts || len(a.task.pods) != row.evicts {
				t.Errorf("%+v, want acts %v and %d pods", a.task, row.acts, row.evicts)
			}
			if f.told.tie != uuid.Nil && a.publish.TieBreaker != "n3" {
				t.Errorf("the tie-breaker is %q", a.publish.TieBreaker)
			}
		})
	}
}

func TestWhatIsLeftOverIsLookedForFirstAndOnNobodysWord(t *testing.T) {
	f := scene()
	f.looked, f.valid, f.fetched = false, false, false
	if a := decide(f); a.task.kind != unlock {
		t.Errorf("does %v", a.task.kind)
	}
	f.seen = false
	if a := decide(f); a.task.kind != nothing {
		t.Error("without a cluster too")
	}
}

func TestARepairLosesItsReasonWithTheControllersWord(t *testing.T) {
	f := scene()
	f.running = task{kind: remove, told: f.told}
	if decide(f).cancel {
		t.Error("it is called off without reason")
	}
	for name, change := range map[string]func(*facts){
		"controller lost": func(f *facts) { f.fetched = false }, "configuration lost": func(f *facts) { f.valid = false },
		"cluster left": func(f *facts) { f.belongs = false }, "other masters": func(f *facts) { f.told.masters = devices("n1", "n2", "n3") },
	} {
		g := f
		change(&g)
		if !decide(g).cancel {
			t.Errorf("%s: it goes on", name)
		}
	}
}

func TestWhoMayTakeTheDrainLockForAMember(t *testing.T) {
	nodes := []types.Node{node("n1"), node("n2"), node("n3", down)}
	for _, row := range []struct {
		rule string
		lock types.DrainLock
		free bool
	}{
		{"nobody holds it", types.DrainLock{}, true},
		{"another node drains", types.DrainLock{Holder: "n2"}, false},
		{"this node drains", types.DrainLock{Holder: "n1"}, false},
		{"the stale node went down with it", types.DrainLock{Holder: "n3"}, true},
		{"its holder is gone", types.DrainLock{Holder: "n9"}, true},
		{"an earlier removal left it", types.DrainLock{Holder: "n2", Task: types.TaskMembers}, true},
	} {
		if why := untakeable(row.lock, "n3", nodes); (why == "") != row.free {
			t.Errorf("%s: %q", row.rule, why)
		}
	}
	if untakeable(types.DrainLock{Holder: "n3"}, "n3", []types.Node{node("n3")}) == "" {
		t.Error("the lock of a stale node that is up and drains is taken")
	}
}

func TestTheControllersListIsASet(t *testing.T) {
	a := devices("n1", "n2", "n3")
	b := slices.Clone(a)
	slices.Reverse(b)
	if !sameSet(a, b) || sameSet(a, a[:2]) || sameSet(a[:2], a) || !sameSet(nil, nil) {
		t.Error("sets are told apart wrongly")
	}
}
