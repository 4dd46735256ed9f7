package members

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestWhichStaleMemberIsRemoved(t *testing.T) {
	set := func(i int, change ...func(*types.Node)) func(*facts) {
		return func(f *facts) {
			for _, c := range change {
				c(&f.nodes[i])
			}
		}
	}
	five := func(f *facts) { // n2 is down as well, and was told otherwise
		f.configured.masters = devices("n1", "n2", "n4", "n6")
		f.nodes = []types.Node{node("n1"), node("n2", down, listing("n1", "n2", "n3")), node("n3", down), node("n4"), node("n6")}
		for _, i := range []int{0, 3, 4} {
			listing("n1", "n2", "n4", "n6")(&f.nodes[i])
		}
	}
	published := func(f *facts, uid string, ago time.Duration) {
		f.past.uptime += patience
		f.past.published[uid] = reported{mark: markOf(f.nodes[1]), at: f.past.uptime - ago}
	}
	for _, row := range []struct {
		rule   string
		change func(*facts)
		remove string // the Node; "" for none
		why    string // what ClusterMembers says
		stale  int    // how many it lists
	}{
		{"a dead master that is named no more", func(*facts) {}, "n3", "", 1},
		{"none on an empty list", func(f *facts) { f.configured.masters = nil }, "", "", 0},
		{"none that is named", func(f *facts) { f.configured.masters = devices("n1", "n2", "n3", "n4") }, "", "", 0},
		{"no worker", set(2, worker), "", "", 0},
		{"none of which nobody knows the device", set(2, func(n *types.Node) { n.UUID = "" }), "", "", 0},
		{"nor the tie-breaker, whom the controller still names", func(f *facts) { f.configured.tie = device("n3"); cordoned(&f.nodes[2]) }, "", "but as the tie-breaker", 1},
		{"one whose label is written in capitals", set(2, func(n *types.Node) { n.UUID = strings.ToUpper(n.UUID) }), "n3", "", 1},
		{"none that is named, in capitals", func(f *facts) {
			f.configured.masters = append(f.configured.masters, device("n3"))
			f.nodes[2].UUID = strings.ToUpper(f.nodes[2].UUID)
		}, "", "", 0},
		{"not while a Ready server without a label may be a member that was told otherwise", func(f *facts) { f.nodes = append(f.nodes, node("n5", unstamped, func(n *types.Node) { n.UUID = "" })) }, "", "n5 has no zedkube that reports", 1},
		{"not while a worker was given another list", func(f *facts) {
			f.nodes = append(f.nodes, node("w1", worker, listing("n1", "n2", "n3", "n4")))
		}, "", "w1 has not been configured with the same masters", 1},
		{"though a worker was given none", func(f *facts) { f.nodes = append(f.nodes, node("w1", worker, listing())) }, "n3", "", 1},
		{"though a worker has neither label nor stamp", func(f *facts) {
			f.nodes = append(f.nodes, node("n5", worker, unstamped, func(n *types.Node) { n.UUID = "" }))
		}, "n3", "", 1},
		{"not before the own Node, which has no label yet, is stamped", set(0, unstamped, func(n *types.Node) { n.UUID = "" }), "", "n1 has no zedkube that reports", 1},
		{"that one node's device has two Nodes hinders nothing", func(f *facts) {
			f.nodes = append(f.nodes, node("n5", func(n *types.Node) { n.UUID = device("n2").String() }))
		}, "n3", "", 1},
		{"both Nodes of one device, one after the other", func(f *facts) {
			f.nodes = append(f.nodes, node("n5", down, func(n *types.Node) { n.UUID, n.Etcd = device("n3").String(), false }))
		}, "n3", "", 2},
		{"one of the control plane without etcd", set(2, func(n *types.Node) { n.Etcd = false }), "n3", "", 1},
		{"one that etcd does not let vote yet", set(2, func(n *types.Node) { n.EtcdVoter = types.ConditionFalse }), "n3", "", 1},
		{"not where those who vote are too few without it", func(f *facts) {
			f.nodes[1].EtcdVoter = types.ConditionFalse
			f.nodes = append(f.nodes, node("n4", down))
		}, "", "no quorum", 1},
		{"none that names its device in no way anybody reads", set(2, func(n *types.Node) { n.UUID = "n3" }), "", "", 0},
		{"never itself", func(f *facts) {
			f.configured.device = device("n3")
			f.own = f.nodes[2]
		}, "", "", 0},
		{"not by a node that is no master itself", func(f *facts) { f.configured.device = device("n9") }, "", "does not name this node", 1},
		{"not while the configuration is not valid", func(f *facts) { f.valid = false }, "", "currently not valid", 1},
		{"not on the word of a controller that is not reached", func(f *facts) { f.fetched = false }, "", "may be out of date", 1},
		{"not while the cluster is not seen", func(f *facts) { f.seen = false }, "", "currently unknown", 1},
		{"not while a Ready member was told otherwise", set(1, listing("n1", "n2", "n3")), "", "n2 has not been configured with the same masters", 1},
		{"not while one was told of more", set(1, listing("n1", "n2", "n3", "n4")), "", "n2 has not been configured", 1},
		{"nor of fewer", set(1, listing("n1", "n2")), "", "n2 has not been configured", 1},
		{"nor of none", set(1, listing()), "", "n2 has not been configured", 1},
		{"nor of another cluster's", set(1, func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: other, Masters: devices("n1", "n2", "n4")} }), "", "n2 has not been configured", 1},
		{"the order of a list says nothing", set(1, listing("n4", "n2", "n1")), "n3", "", 1},
		{"not while a Ready member has no zedkube of this kind", set(1, unstamped), "", "n2 has no zedkube that reports", 1},
		{"a member that is down need not say anything", func(f *facts) {
			f.nodes[1] = node("n2", down, unstamped)
			f.nodes = append(f.nodes, node("n4"))
			f.configured.masters = devices("n1", "n2", "n4")
			f.nodes = append(f.nodes, node("n5"))
			f.configured.masters = append(f.configured.masters, device("n5"))
			for _, i := range []int{0, 3, 4} {
				listing("n1", "n2", "n4", "n5")(&f.nodes[i])
			}
		}, "n3", "", 1},
		{"not before the own stamp says the same", set(0, listing("n1", "n2", "n3")), "", "n1 has not been configured", 1},
		{"a Ready Node that is not named and knows it disagrees with nobody", func(f *facts) {
			f.nodes = append(f.nodes, node("n5"))
			f.nodes[3].Agent.Masters = nil
		}, "n3", "", 2},
		{"a Ready Node that is not named and was told that it is disagrees", func(f *facts) { f.nodes = append(f.nodes, node("n5", listing("n1", "n2", "n5"))) }, "", "n5 has not been configured with the same", 2},
		{"a stale Node that is Ready and runs a zedkube leaves by itself", set(2, func(n *types.Node) { n.Ready, n.Agent = types.ConditionTrue, &types.AgentStamp{} }), "", "drains it before it leaves", 1},
		{"one without is removed though it is Ready", set(2, func(n *types.Node) { n.Ready, n.Agent = types.ConditionTrue, nil }), "n3", "", 1},
		{"not where the rest had no quorum", set(1, down), "", "no quorum", 1},
		{"of two dead ones the first", func(f *facts) {
			f.nodes = append(f.nodes, node("n4"), node("n5", down))
		}, "n3", "", 2},
		{"none that was never named: it may be about to join", func(f *facts) { f.past.named = devices("n1", "n2", "n4") }, "", "may be about to join; if it is gone for good: zedkube nodes remove n3", 1},
		{"not before the controller was asked five times", func(f *facts) {
			f.past.stale["uid-n3"] = trace{holds: true, asked: f.uptime - 5*time.Minute + time.Second, stamp: markOf(f.nodes[2])}
		}, "", "omit node n3 for 5 configuration intervals", 1},
		{"nor where it takes an hour to ask it once", func(f *facts) { f.interval = time.Hour }, "", "5 configuration intervals", 1},
		{"nor where it was not reached in between", func(f *facts) { f.past.stale["uid-n3"] = trace{stamp: markOf(f.nodes[2])} }, "", "5 configuration intervals", 1},
		{"not against its own stamp, written since", set(2, listing("n1", "n2", "n3"), func(n *types.Node) { n.StampedAt = time.Now() }), "", "n3 has not been configured with the same masters", 1},
		{"though its own stamp from before names it", set(2, listing("n1", "n2", "n3")), "n3", "", 1},
		{"not against what a member that went down said of late", func(f *facts) { five(f); published(f, "uid-n2", patience-time.Second) }, "", "n2 has not been configured with the same masters", 1},
		{"nor against what it has said since", func(f *facts) {
			five(f)
			published(f, "uid-n2", patience)
			f.nodes[1].StampedAt = time.Now()
		}, "", "n2 has not been configured with the same masters", 1},
		{"though it said otherwise a day ago", func(f *facts) { five(f); published(f, "uid-n2", patience) }, "n3", "", 1},
		{"though it spoke of another cluster", func(f *facts) {
			five(f)
			published(f, "uid-n2", 0)
			f.nodes[1].Agent.Cluster = other
		}, "n3", "", 1},
		{"though it had withdrawn its list", func(f *facts) {
			five(f)
			published(f, "uid-n2", 0)
			f.nodes[1].Agent.Masters = nil
		}, "n3", "", 1},
		{"not while it is drained for a reboot", set(2, cordonedBy), "", "is being drained or rebooted: waiting for it for 24h0m0s at most; if it is gone", 1},
		{"nor while that begins", set(2, func(n *types.Node) { n.DrainInProgress = types.ConditionTrue }), "", "is being drained or rebooted", 1},
		{"nor when that is done", set(2, func(n *types.Node) { n.Drained = types.ConditionTrue }), "", "is being drained or rebooted", 1},
		{"nor while EVE's zedkube drains it", set(2, unstamped, cordoned), "", "is being drained or rebooted", 1},
		{"nor while EVE's may", set(2, cordoned, func(n *types.Node) { n.StampUnconfirmed = true }), "", "is being drained or rebooted", 1},
		{"though an operator cordoned it", set(2, cordoned), "n3", "", 1},
		{"though it was drained a day ago", func(f *facts) {
			cordonedBy(&f.nodes[2])
			f.past.uptime += patience
		}, "n3", "", 1},
		{"one whose zedkube has ended though its stamp stands", set(2, func(n *types.Node) { n.Ready, n.StampStale = types.ConditionTrue, true }), "n3", "", 1},
		{"not while the zedkube of a Ready member has ended", set(1, func(n *types.Node) { n.StampStale = true }), "", "n2 has no zedkube that reports which masters", 1},
		{"what hinders for a day is told with what an operator can do", func(f *facts) { down(&f.nodes[1]); f.past.uptime += patience }, "", "no quorum", 1},
		{"none so soon after another", func(f *facts) { f.pause = f.uptime + time.Second }, "", "", 1},
		{"none while the cluster rests after one", func(f *facts) { f.rest = f.uptime + time.Second }, "", "has just been removed", 1},
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
				if joins := strings.Contains(s.Why, "about to join"); s.Joins != joins {
					t.Errorf("joins %v, want %v", s.Joins, joins)
				}
				if f.past.long(f.nodes[2]) && s.Why != "" && !strings.Contains(s.Why, "zedkube nodes remove "+s.Node) {
					t.Errorf("after a day it does not say what an operator can do: %q", s.Why)
				}
				if row.remove == "" && row.why != "" && s.Why == "" {
					t.Errorf("does not say why %s stays", s.Node)
				}
			}
		})
	}
}

func TestWhatHindersOneRepairDoesNotHinderAnother(t *testing.T) {
	f := scene()
	f.nodes = append(f.nodes, node("n4"), node("n5", down))
	f.configured.tie = device("n4")
	for i := range f.nodes {
		tied("n4")(&f.nodes[i])
	}
	f.reason = "it does not work"
	var order []string
	for range 4 {
		a := decide(f)
		order = append(order, a.task.node.Name)
		f.tried = a.task
	}
	if d := cmp.Diff([]string{"n4", "n3", "n5", "n4"}, order); d != "" {
		t.Error(d)
	}
	f.tried.node = f.nodes[2]
	f.tried.kind = remove
	out := decide(f).publish
	if out.Why != f.reason || out.Stale[0].Why != f.reason || out.Stale[1].Why != "" {
		t.Errorf("says %+v", out)
	}
}

func TestWhatIsLeftOverIsLookedForFirstAndOnNobodysWord(t *testing.T) {
	f := scene()
	f.locked, f.valid, f.fetched = true, false, false
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
	f.running = task{kind: remove, rules: f.rules()}
	if decide(f).cancel {
		t.Error("it is called off without reason")
	}
	for name, change := range map[string]func(*facts){
		"controller lost": func(f *facts) { f.fetched = false }, "configuration lost": func(f *facts) { f.valid = false },
		"cluster left": func(f *facts) { f.belongs = false }, "other masters": func(f *facts) { f.configured.masters = devices("n1", "n2", "n3") },
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
	r := repair{task: task{kind: remove, node: nodes[2], rules: scene().rules()}}
	early := r.removal()
	r.past.uptime += patience
	late := r.removal()
	for _, row := range []struct {
		rule string
		lock types.DrainLock
		free bool
		late bool // free after a day
	}{
		{"nobody holds it", types.DrainLock{}, true, true},
		{"another node drains", types.DrainLock{Holder: "n2"}, false, false},
		{"this node drains", types.DrainLock{Holder: "n1"}, false, false},
		{"the stale node went down with it", types.DrainLock{Holder: "n3"}, false, true},
		{"the stale node's drain had ended", types.DrainLock{Holder: "n3", Ended: true}, true, true},
		{"its holder is gone", types.DrainLock{Holder: "n9"}, true, true},
		{"an earlier removal left it", types.DrainLock{Holder: "n2", Task: types.TaskMembers}, true, true},
	} {
		if why := early.lockUnavailable(row.lock, nodes); (why == "") != row.free {
			t.Errorf("%s: %q", row.rule, why)
		}
		if why := late.lockUnavailable(row.lock, nodes); (why == "") != row.late {
			t.Errorf("%s, after a day: %q", row.rule, why)
		}
	}
	nodes[2].Ready = types.ConditionTrue
	if late.lockUnavailable(types.DrainLock{Holder: "n3"}, nodes) == "" {
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
