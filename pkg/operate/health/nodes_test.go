package health

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func nodesOf(nodes ...overview.ClusterNode) nodesFacts {
	return nodesFacts{Nodes: overview.Nodes{List: nodes}}
}

// server is a master that is as it should be.
func server(name string, change ...func(*overview.ClusterNode)) overview.ClusterNode {
	n := overview.ClusterNode{Name: name, UUID: name + "-uuid", Status: ready, Roles: []string{roleControl, roleEtcd}, Agent: "1.4.0", Kubelet: "v1.34.2"}
	n.Own = name == "a"
	for _, c := range change {
		c(&n)
	}
	return n
}

func silent(n *overview.ClusterNode) { n.Status = "NotReachable" }

func learns(n *overview.ClusterNode) { n.Learner = true }

var unseen = nodesFacts{err: errOdd}

func TestNode(t *testing.T) {
	of := func(f nodesFacts) types.Finding {
		return judgeNode(seen{overview.Overview{Node: overview.Node{Name: "a", UUID: "a-uuid"}, Cluster: overview.Cluster{Source: told(), Role: "server"}}}, f)
	}
	with := func(change func(*overview.ClusterNode)) types.Finding {
		return of(nodesOf(server("a", change), server("b")))
	}
	judge(t, []row{
		{"well", of(nodesOf(server("a"))), OK, "control-plane, etcd"},
		{"not seen", of(unseen), Unknown, "refused"},
		{"no list", of(nodesOf()), Unknown, "not known"},
		{"gone", of(nodesOf(server("b"))), Fail, `"a"`},
		{"not Ready", with(func(n *overview.ClusterNode) { n.Status, n.Since = "NotReady", now }), Fail, "Node a is not Ready. Since 2026"},
		{"no label", with(func(n *overview.ClusterNode) { n.UUID = "" }), Warn, "node-uuid"},
		{"another's", with(func(n *overview.ClusterNode) { n.UUID = "x" }), Fail, "another device"},
		{"no control plane", with(func(n *overview.ClusterNode) { n.Roles = []string{roleEtcd} }), Warn, "control-plane"},
		{"no etcd", with(func(n *overview.ClusterNode) { n.Roles = []string{roleControl} }), Warn, "etcd"},
		{"under pressure", with(func(n *overview.ClusterNode) { n.Pressures = []string{"DiskPressure"} }), Warn, "DiskPressure"},
		{"a worker", judgeNode(seen{overview.Overview{Cluster: overview.Cluster{Source: told(), Role: "worker"}}}, nodesOf(server("a", func(n *overview.ClusterNode) { n.Roles = []string{"worker"} }))), OK, "worker"},
	})
}

func TestLease(t *testing.T) {
	of := func(change func(*overview.Overview)) types.Finding {
		o := overview.Overview{Agent: overview.Agent{Runs: true}, Lease: overview.Lease{Source: told(), Leader: "b", Running: true, Since: now}}
		change(&o)
		return judgeLease(seen{o})
	}
	judge(t, []row{
		{"another", of(func(*overview.Overview) {}), OK, "Node b reports since"},
		{"this", of(func(o *overview.Overview) { o.Lease.Mine = true }), OK, "This node"},
		{"nobody", of(func(o *overview.Overview) { o.Lease.Leader = "" }), Warn, "No node"},
		{"nobody takes part", of(func(o *overview.Overview) { o.Lease.Leader, o.Lease.Running = "", false }), Unknown, "not take part"},
		{"the agent misses one", of(func(o *overview.Overview) {
			o.Conditions.Source, o.Conditions.List = told(), []types.NodeStateCondition{{Type: types.StateLeader, Status: types.ConditionFalse, Message: "Nobody renews the Lease."}}
		}), Fail, "Nobody renews"},
		{"not published", of(func(o *overview.Overview) { o.Lease = overview.Lease{} }), Unknown, "not published"},
		{"no agent", of(func(o *overview.Overview) { o.Agent.Runs = false }), Unknown, "is not running"},
	})
}

func TestMembers(t *testing.T) {
	stale := types.StaleMember{Node: "c", Since: now.Add(-time.Hour), Why: "etcd would have no quorum."}
	of := func(m overview.Members, compared types.ConditionStatus) types.Finding {
		return judgeMembers(seen{overview.Overview{Cluster: overview.Cluster{Members: m}}}, compared)
	}
	judge(t, []row{
		{"all", of(overview.Members{Source: told(), Masters: []string{"x"}}, types.ConditionTrue), OK, "the 1 that"},
		{"none named", of(overview.Members{Source: told()}, types.ConditionTrue), OK, "configures no masters"},
		{"a ghost", of(overview.Members{Source: told(), Stale: []types.StaleMember{stale}}, types.ConditionTrue), Warn, "Node c is no longer configured as a master but has not been removed yet: etcd would have no quorum. Since 2026-"},
		{"ghosts", of(overview.Members{Source: told(), Stale: []types.StaleMember{stale, {Node: "d"}}}, types.ConditionTrue), Warn, "Node d is"},
		{"many ghosts", of(overview.Members{Source: told(), Stale: make([]types.StaleMember, 7)}, types.ConditionTrue), Warn, "2 more."},
		{"one that joins", of(overview.Members{Source: told(), Stale: []types.StaleMember{{Node: "c", Joins: true}}}, types.ConditionTrue), Warn, "not configured yet"},
		{"not compared", of(overview.Members{Source: told(), Masters: []string{"x"}}, types.ConditionUnknown), Unknown, "could not compare"},
		{"not published", of(overview.Members{}, types.ConditionTrue), Unknown, "not published"},
	})
}

func TestCordon(t *testing.T) {
	o := seen{overview.Overview{ReadAt: now}}
	by := func(who string, ago time.Duration) types.Finding {
		return judgeCordon(o, nodesOf(server("a", func(n *overview.ClusterNode) {
			n.Cordoned, n.CordonedBy, n.CordonWhy, n.CordonSince = true, who, "a drain.", now.Add(-ago)
		})))
	}
	noted := seen{overview.Overview{ReadAt: now, Drain: overview.Drain{Progress: &types.NodeDrainProgress{}}}}
	judge(t, []row{
		{"none", judgeCordon(o, nodesOf(server("a"))), OK, "This node is schedulable."},
		{"ours", by("zedkube", time.Hour), OK, "by zedkube for 60m: a drain."},
		{"ours for long", by("zedkube", 25*time.Hour), Warn, "unusually long"},
		{"kept", by("kept", time.Hour), OK, "keeps"},
		{"kept for long", by("kept", 25*time.Hour), Warn, "keeps the cordon of a drain for 25h: a drain."},
		{"somebody else's", by("somebody else", time.Hour), Warn, "someone other than zedkube for 60m: a drain."},
		{"the tie-breaker's", judgeCordon(o, nodesOf(server("a", func(n *overview.ClusterNode) { n.Cordoned, n.Roles = true, []string{tieBreaker} }))), OK, "tie-breaker"},
		{"not seen", judgeCordon(o, unseen), Unknown, "not known"},
		{"not seen, by the record", judgeCordon(noted, unseen), Unknown, "not cordoned"},
	})
}

func TestDrainLock(t *testing.T) {
	o := seen{overview.Overview{ReadAt: now}}
	held := func(by string, ago time.Duration, nodes nodesFacts) types.Finding {
		return judgeDrainLock(o, nodes, types.DrainLock{Holder: by, Since: now.Add(-ago)}, nil)
	}
	all := nodesOf(server("a"), server("b"), server("c", silent))
	judge(t, []row{
		{"free", judgeDrainLock(o, all, types.DrainLock{}, nil), OK, "free"},
		{"held", held("b", time.Hour, all), OK, "Node b holds it for 60m"},
		{"held for long", held("b", 25*time.Hour, all), Warn, "no other node can drain"},
		{"by one that is down", held("c", 2*time.Hour, all), Warn, "NotReachable"},
		{"by one that has just gone down", held("c", time.Minute, all), OK, "Node c"},
		{"by a ghost", held("d", time.Minute, all), Fail, "no such node"},
		{"the nodes are not seen", held("d", time.Minute, unseen), OK, "Node d"},
		{"not seen", judgeDrainLock(o, nodesFacts{}, types.DrainLock{}, errOdd), Unknown, "refused"},
		{"of a copy", judgeDrainLock(seen{overview.Overview{Copied: true}}, nodesFacts{}, types.DrainLock{}, nil), Unknown, "copy"},
	})
}

func TestAHolderThatIsNoNodesNameIsInNoCommand(t *testing.T) {
	const holder = "node-1; reboot #"
	lock := types.DrainLock{Holder: holder, Since: now.Add(-48 * time.Hour)}
	for name, nodes := range map[string]nodesFacts{
		"no such node": nodesOf(server("node-1")), "the nodes are not seen": unseen, "a node of that name": nodesOf(server(holder, silent)),
	} {
		f := judgeDrainLock(seen{overview.Overview{ReadAt: now}}, nodes, lock, nil)
		if !strings.HasSuffix(f.Remedy, "zedkube drain unlock <node>") || !strings.Contains(f.Evidence, holder) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestEtcd(t *testing.T) {
	judge(t, []row{
		{"all", judgeEtcd(nodesOf(server("a"), server("b"), server("c"))), OK, "All 3"},
		{"one down", judgeEtcd(nodesOf(server("a"), server("b"), server("c", silent))), Warn, "2 of 3 members are Ready, no more may fail; not Ready: c"},
		{"one of three down leaves none to spare", judgeEtcd(nodesOf(server("a"), server("b"), server("c", silent))), Warn, "no more may fail"},
		{"one of five down", judgeEtcd(nodesOf(server("a"), server("b"), server("c"), server("d"), server("e", silent))), Warn, "only 1 more may fail"},
		{"two of five down", judgeEtcd(nodesOf(server("a"), server("b"), server("c"), server("d", silent), server("e", silent))), Warn, "no more may fail"},
		{"a learner does not vote", judgeEtcd(nodesOf(server("a"), server("b"), server("c"), server("d", learns))), OK, "All 3 voting members are Ready; 1 more"},
		{"nor does it count as down", judgeEtcd(nodesOf(server("a"), server("b"), server("c"), server("d", learns, silent))), OK, "All 3 voting members are Ready"},
		{"nor make up for one that is", judgeEtcd(nodesOf(server("a"), server("b", silent), server("c", learns))), Fail, "1 of 2"},
		{"two down", judgeEtcd(nodesOf(server("a"), server("b", silent), server("c", silent))), Fail, "no quorum; not Ready: b, c"},
		{"one of two down", judgeEtcd(nodesOf(server("a"), server("b", silent))), Fail, "1 of 2"},
		{"two", judgeEtcd(nodesOf(server("a"), server("b"))), Warn, "Both"},
		{"one", judgeEtcd(nodesOf(server("a"))), OK, "The only member"},
		{"no label", judgeEtcd(nodesOf(server("a", func(n *overview.ClusterNode) { n.Roles = nil }))), Unknown, "No node"},
		{"not seen", judgeEtcd(unseen), Unknown, "refused"},
	})
}

func TestVersions(t *testing.T) {
	other := server("b", func(n *overview.ClusterNode) { n.Agent = "1.5.0" })
	kubelet := server("b", func(n *overview.ClusterNode) { n.Kubelet = "v1.35.0" })
	stale := server("b", func(n *overview.ClusterNode) { n.Agent, n.AgentStale = "1.5.0", true })
	eve := server("b", func(n *overview.ClusterNode) { n.Agent = "" })
	judge(t, []row{
		{"the same", judgeVersions(nodesOf(server("a"), server("b"))), OK, "zedkube 1.4.0, Kubernetes v1.34.2 on 2 nodes"},
		{"another image", judgeVersions(nodesOf(server("a"), other)), Warn, "1.4.0 on a; 1.5.0 on b"},
		{"another kubelet", judgeVersions(nodesOf(server("a"), kubelet)), Warn, "v1.34.2 on a; v1.35.0 on b"},
		{"a stamp that has outlived its agent", judgeVersions(nodesOf(server("a"), stale)), Warn, "No zedkube has reported for 25m0s or longer on nodes where one ran: b"},
		{"one without", judgeVersions(nodesOf(server("a"), eve)), OK, "2 nodes"},
		{"not seen", judgeVersions(unseen), Unknown, "refused"},
	})
}

func TestConditions(t *testing.T) {
	of := func(status types.ConditionStatus, runs bool) types.Finding {
		list := []types.NodeStateCondition{{Type: types.StateReport, Status: status, Since: now, Message: "The report is old."}}
		return judgeConditions(seen{overview.Overview{Agent: overview.Agent{Runs: runs}, Conditions: overview.Conditions{Source: told(), List: list}}})
	}
	judge(t, []row{
		{"well", of(types.ConditionTrue, true), OK, "knows of no problem"},
		{"not known", of(types.ConditionUnknown, true), OK, "knows of no problem"},
		{"not well", of(types.ConditionFalse, true), Warn, "The report is old."},
		{"no agent", of(types.ConditionTrue, false), Unknown, "is not running"},
		{"none", judgeConditions(seen{overview.Overview{Agent: overview.Agent{Runs: true}}}), Unknown, "none"},
	})
}

func TestFiles(t *testing.T) {
	judge(t, []row{
		{"none", judgeFiles(filesFacts{}), OK, "No override"},
		{"not looked", judgeFiles(filesFacts{err: errOdd}), Unknown, "refused"},
		{"litter", judgeFiles(filesFacts{found: []leftover{{path: "/run/x", what: "was left"}}}), Warn, "/run/x was left."},
		{"one that does", judgeFiles(filesFacts{found: []leftover{{path: "/tmp/x", what: "decides", does: true}}, err: errOdd}), Warn, "/tmp/x decides."},
		{"many", judgeFiles(filesFacts{found: make([]leftover, 9)}), Warn, "4 more."},
	})
}

func TestDisk(t *testing.T) {
	of := func(d overview.Disk) types.Finding {
		return judgeDisks([]overview.Disk{{Path: "/run", Size: 100 << 20, Free: 90 << 20}, d}, nil)
	}
	judge(t, []row{
		{"room", of(overview.Disk{Path: "/persist", Size: 100 << 30, Free: 50 << 30, Files: 100, FreeFiles: 50}), OK, "/persist has 50.0 GiB free of 100.0 GiB"},
		{"counts no inodes", of(overview.Disk{Path: "/persist", Size: 100, Free: 50}), OK, "/persist"},
		{"little", of(overview.Disk{Path: "/persist", Size: 100 << 30, Free: 4 << 30}), Warn, "nearly full: 4.0 GiB of 100.0 GiB are free"},
		{"none", of(overview.Disk{Path: "/persist", Size: 100 << 30, Free: 1 << 29}), Fail, "512.0 MiB of 100.0 GiB are free"},
		{"few inodes", of(overview.Disk{Path: "/persist", Size: 100, Free: 50, Files: 100, FreeFiles: 4}), Warn, "4 more files"},
		{"no inodes", of(overview.Disk{Path: "/persist", Size: 100, Free: 50, Files: 100}), Fail, "0 more files"},
		{"unreadable", judgeDisks(nil, errOdd), Unknown, "refused"},
		{"unreadable, and another is full", judgeDisks([]overview.Disk{{Path: "/run", Size: 100}}, errOdd), Fail, "/run is full"},
	})
}

func TestLimits(t *testing.T) {
	of := func(used, most uint64) types.Finding {
		return judgeLimits([]limit{{"files", 1, 100, ""}, {"instances", used, most, "fs.x"}})
	}
	judge(t, []row{
		{"far", of(10, 128), OK, "Nothing"},
		{"near", of(110, 128), Warn, "110 of 128 instances"},
		{"there", of(128, 128), Fail, "128 of 128"},
		{"beyond", of(500, 128), Fail, "500 of 128"},
		{"no limit", of(5, 0), OK, "Nothing"},
		{"none read", judgeLimits(nil), Unknown, "cannot be read"},
	})
}

func TestWhoCordonedIsAskedBeforeItIsUndone(t *testing.T) {
	f := judgeCordon(seen{overview.Overview{ReadAt: now}}, nodesOf(server("a", func(n *overview.ClusterNode) { n.Cordoned, n.CordonedBy = true, "somebody else" })))
	if want := "zedkube audit --op cordon,uncordon and ask them first, then: zedkube uncordon a"; !strings.HasSuffix(f.Remedy, want) {
		t.Errorf("it says %q, want ... %q", f.Remedy, want)
	}
}
