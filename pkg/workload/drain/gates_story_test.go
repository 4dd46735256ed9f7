package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

var all = []string{"n1", "n2", "n3"}

func TestThreeNodesAskedAtOnceRebootInTurnAndNeverTwoAreDown(t *testing.T) {
	for name, row := range map[string]struct {
		latency, after time.Duration
	}{
		"quickly":             {0, 0},
		"with a slow API":     {2 * time.Second, 0},
		"with slow devices":   {0, time.Minute},
		"with slow everybody": {2 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			fleetStory(t, func(f *fleet) {
				f.kube.SetLatency(row.latency)
				f.ask(all...)
				order := f.live(30*time.Minute, row.after)
				if len(order) != 3 {
					f.t.Errorf("rebooted: %v", order)
				}
				f.free()
				if n := len(f.pods.All()); n != 1 { // but the DaemonSet's
					f.t.Errorf("%d pods are left", n)
				}
			})
		})
	}
}

// halfway is a cluster in which n1 is down after its drain and n2 waits.
func halfway(t *testing.T, tell func(*fleet)) {
	t.Helper()
	fleetStory(t, func(f *fleet) {
		f.ask("n1")
		time.Sleep(5 * time.Second)
		if c := f.complete(); len(c) != 1 || c[0] != "n1" {
			f.t.Fatalf("complete: %v", c)
		}
		f.ask("n2")
		time.Sleep(5 * time.Second)
		f.waits("n2", "node n1 drains and has not rebooted yet")
		f.off("n1")
		time.Sleep(30 * time.Second)
		f.waits("n2", "node n1 drains and has not rebooted yet")
		tell(f)
	})
}

// goesOn checks that the drain of n2 completes within d.
func (f *fleet) goesOn(d time.Duration) {
	f.t.Helper()
	time.Sleep(d)
	f.agents["n2"].is(types.DrainComplete, deviceOp)
	if l := f.kube.Lock(); l.Holder != "n2" {
		f.t.Errorf("the lock is %s's", l.Holder)
	}
}

func TestAHolderThatComesBackGivesTheLockToTheNext(t *testing.T) {
	halfway(t, func(f *fleet) {
		f.on("n1")
		time.Sleep(time.Minute)
		f.waits("n2", "has not rebooted yet") // as far as the cluster knows
		f.ready("n1")
		f.goesOn(30 * time.Second)
	})
}

func TestAHolderWhoseAgentNeverComesBackStillCordonedIsWaitedFor(t *testing.T) {
	halfway(t, func(f *fleet) {
		f.kube.ChangeNode("n1", func(n *types.Node) { n.Ready, n.BootID = types.ConditionTrue, "boot-9" })
		time.Sleep(10 * time.Minute)
		f.waits("n2", "still cordoned by its drain")
		f.kube.ChangeNode("n1", func(n *types.Node) { n.CordonKept = true }) // that is an operator's now
		f.goesOn(30 * time.Second)
	})
}

func TestAHolderThatDiesForGoodIsNamedAtTheDeadline(t *testing.T) {
	halfway(t, func(f *fleet) {
		n2 := f.agents["n2"]
		asked, _ := n2.progress.Get(types.Global)
		time.Sleep(23 * time.Minute)
		f.waits("n2", "node n1")
		if p, _ := n2.progress.Get(types.Global); p.Since.Sub(asked.Started) > 10*time.Second || p.Deadline.Sub(p.Started) != 24*time.Minute {
			f.t.Errorf("waits since %s, from %s until %s", p.Since, p.Started, p.Deadline)
		}
		time.Sleep(2 * time.Minute)
		n2.is(types.DrainFailedDrain, deviceOp)
		n2.phase(types.PhaseNotEmpty, "node n1")
		if n, _ := f.nodes.Get("n2"); n.Unschedulable || f.kube.Lock().Holder != "n1" {
			f.t.Errorf("%+v, lock %+v", n, f.kube.Lock())
		}
		n2.request(&n2.zedagent, deviceOp)
		_ = f.nodes.Unpublish("n1") // and somebody deletes it
		f.goesOn(10 * time.Second)
	})
}

func TestALockThatIsUnlockedByHandIsTheNextOnes(t *testing.T) {
	halfway(t, func(f *fleet) {
		f.kube.SetLock(types.DrainLock{})
		time.Sleep(10 * time.Minute)
		f.agents["n2"].phase(types.PhaseGates, "1 of 3 etcd members would be Ready, which is no quorum: n1 is not")
		f.kube.ChangeNode("n1", func(n *types.Node) { n.EtcdVoter = types.ConditionFalse })
		f.goesOn(10 * time.Second)
		f.on("n1") // which was off on purpose, and takes nothing back
		f.ready("n1")
		time.Sleep(time.Minute)
		if l := f.kube.Lock(); l.Holder != "n2" {
			f.t.Errorf("the lock is %s's", l.Holder)
		}
		if n, _ := f.nodes.Get("n1"); n.Unschedulable {
			f.t.Error("n1 is still cordoned")
		}
	})
}

// copies shows a volume with healthy replicas on these nodes.
func (f *fleet) copies(nodes ...string) {
	v := types.Volume{Name: "v", State: "attached", Wanted: 3, Engine: "n3", Running: true}
	for _, n := range all {
		r := types.Replica{Name: n, Node: n, Running: true, Mode: "WO", Percent: 40}
		for _, healthy := range nodes {
			if n == healthy {
				r.Mode = "RW"
			}
		}
		v.Replicas = append(v.Replicas, r)
	}
	f.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v}})
}

func TestReplicasThatAreRebuiltAfterTheRebootHoldTheNextNode(t *testing.T) {
	fleetStory(t, func(f *fleet) {
		f.copies(all...)
		f.ask("n1")
		time.Sleep(5 * time.Second)
		f.ask("n2")
		f.off("n1")
		f.copies("n2", "n3")
		time.Sleep(time.Minute)
		f.on("n1")
		f.ready("n1")
		time.Sleep(15 * time.Minute)
		f.waits("n2", "volumes on node n1 have fewer healthy replicas than before its drain: v")
		if n, _ := f.nodes.Get("n1"); n.Unschedulable {
			f.t.Error("n1 is still cordoned")
		}
		f.copies(all...)
		f.goesOn(30 * time.Second)
	})
}

func TestAHolderThatEntersAgainKeepsWhatItRecordedFirst(t *testing.T) {
	fleetStory(t, func(f *fleet) {
		f.copies(all...)
		f.ask("n1")
		time.Sleep(5 * time.Second)
		f.off("n1")
		f.copies("n2", "n3")
		f.on("n1")
		f.ready("n1")
		time.Sleep(time.Minute)
		first := f.kube.Lock()
		f.ask("n1") // while its own volumes are not back
		time.Sleep(10 * time.Second)
		if l := f.kube.Lock(); l.Holder != "n1" || l.Volumes["v"] != 3 || !l.Since.Equal(first.Since) || l.BootID == first.BootID {
			f.t.Errorf("%+v, first %+v", l, first)
		}
		if c := f.complete(); len(c) != 1 {
			f.t.Errorf("complete: %v", c)
		}
	})
}

func TestAWithdrawnDrainLeavesTheLockOnlyOnceItsVolumesAreBack(t *testing.T) {
	fleetStory(t, func(f *fleet) {
		f.copies(all...)
		f.ask("n1")
		time.Sleep(5 * time.Second)
		f.copies("n2", "n3")
		_ = f.zedagent.Unpublish(types.Global)
		f.ask("n2")
		time.Sleep(time.Minute)
		f.waits("n2", "volumes on node n1")
		if l := f.kube.Lock(); l.Holder != "n1" || !l.Ended {
			f.t.Errorf("%+v", l)
		}
		f.copies(all...)
		f.goesOn(30 * time.Second)
	})
}

func TestNodesThatDrainAgainAndAgainTakeTurns(t *testing.T) {
	fleetStory(t, func(f *fleet) {
		f.ask("n2", "n3")
		time.Sleep(time.Second)
		f.ask("n1")
		turns := map[string]int{}
		for range 6000 {
			time.Sleep(100 * time.Millisecond)
			for _, name := range f.complete() {
				turns[name]++
				_ = f.agents[name].zedagent.Unpublish(types.Global)
				time.Sleep(20 * time.Millisecond)
				f.ask(name)
			}
		}
		for _, name := range all {
			if turns[name] < 60 { // 67 or 86, as the seconds in which the three look fall
				f.t.Errorf("drains in ten minutes: %v", turns)
			}
		}
	})
}
