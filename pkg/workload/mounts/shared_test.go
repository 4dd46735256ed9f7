package mounts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const underChange = "under the drain lock of the change of k3s of this node, attempt 1 of 3"

// The change waits for the pod, and the pod for the restart.
func TestK3sIsRestartedUnderTheLockOfThisNodesChangeThatWaitsForPods(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		lock := a.stuckChange()
		s.start("n1")
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "k3s was restarted "+underChange)
		a.keeps(lock)
		if n := len(s.cluster.Calls("setlock")); n > 0 {
			t.Errorf("the lock is written %d times", n)
		}
		s.pass(4 * time.Minute)
		a.is(1, types.RepairWell, "")
		a.keeps(lock)
		s.pass(time.Hour)
		if a.keeps(lock); len(s.cluster.Calls("freelock")) > 0 {
			t.Error("it is the change that ends, and frees it")
		}
	})
}

// The drain ends with the change, the change with the pod, and that with the restart.
func TestK3sIsRestartedUnderTheLockOfTheDrainForThatChange(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		lock := a.stuckDrained()
		s.cluster.ChangeNode("n1", func(n *types.Node) { n.Unschedulable = true })
		s.start("n1")
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "k3s was restarted "+underChange)
		s.pass(4 * time.Minute)
		a.is(1, types.RepairWell, "")
		s.pass(time.Hour)
		if a.keeps(lock); len(s.cluster.Calls("setlock")) > 0 || len(s.cluster.Calls("freelock")) > 0 {
			t.Error("it is the drain that frees it")
		}
	})
}

func TestADrainThatIsNotForTheStuckChangeAloneIsWaitedFor(t *testing.T) {
	const notOver = "a drain of this node is requested or not over"
	for name, row := range map[string]struct {
		change func(*agent, *types.DrainLock)
		words  string
	}{
		"the update of EVE as well": {func(a *agent, _ *types.DrainLock) { a.drains(types.PhaseComplete, "UPDATE", types.RequestedByK3s) }, notOver},
		"an operator alone":         {func(a *agent, _ *types.DrainLock) { a.drains(types.PhaseComplete, "OPERATOR") }, notOver},
		"nobody any more":           {func(a *agent, _ *types.DrainLock) { a.drains(types.PhaseComplete) }, notOver},
		"the device has just asked": {func(a *agent, _ *types.DrainLock) { _ = a.device.Publish(types.Global, types.NodeDrainRequest{}) }, notOver},
		"it is not complete":        {func(a *agent, _ *types.DrainLock) { a.drains(types.PhaseEmptying, types.RequestedByK3s) }, notOver},
		"it failed":                 {func(a *agent, _ *types.DrainLock) { a.drains(types.PhaseNotEmpty, types.RequestedByK3s) }, notOver},
		"the change goes on": {func(a *agent, _ *types.DrainLock) {
			_ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleChanges})
		}, notOver},
		"the change lacks something else": {func(a *agent, _ *types.DrainLock) {
			_ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleStuck})
		}, notOver},
		"the lock is of a former boot":      {func(_ *agent, lock *types.DrainLock) { lock.BootID = "earlier" }, notOver},
		"the lock is for something else":    {func(_ *agent, lock *types.DrainLock) { lock.Task = types.TaskMembers }, notOver},
		"the lock is another node's":        {func(_ *agent, lock *types.DrainLock) { lock.Holder = "n2" }, notOver},
		"the lock was freed by an operator": {func(_ *agent, lock *types.DrainLock) { *lock = types.DrainLock{} }, notOver},
		"it has ended":                      {func(_ *agent, lock *types.DrainLock) { lock.Ended = true }, "The last attempt failed"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				lock := a.stuckDrained()
				row.change(a, &lock)
				s.cluster.SetLock(lock)
				s.start("n1")
				s.pass(10 * time.Minute)
				a.is(0, types.RepairWaits, row.words)
				a.keeps(lock)
			})
		})
	}
}

func TestWhoJoinsTheDrainBeforeTheRestartPreventsIt(t *testing.T) {
	joins := func(a *agent) { a.drains(types.PhaseComplete, "DEVICEOP", types.RequestedByK3s) }
	for name, at := range map[string]func(*agent, *Component){
		"under the lock": func(a *agent, c *Component) { c.Kube = &meanwhile{a.cluster, func() { joins(a) }} },
		"when the restart is published": func(a *agent, c *Component) {
			c.Recovery = &published{&a.recovery, func(m types.MountRecovery) {
				if m.Attempts > 0 {
					joins(a)
				}
			}}
		},
		"the change ends then": func(a *agent, c *Component) {
			c.Recovery = &published{&a.recovery, func(m types.MountRecovery) {
				if m.Attempts > 0 {
					_ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleIdle})
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				lock := a.stuckDrained()
				c := s.component("n1")
				at(a, c)
				s.runs(a, c)
				s.pass(10 * time.Minute)
				if m := a.says(); a.told() > 0 || m.Attempts > 0 || m.Last > 0 {
					t.Errorf("%d restarts, it says %+v", a.told(), m)
				}
				a.keeps(lock)
			})
		})
	}
}

func TestThatIsSoAfterAReboot(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		s.cluster.ChangeNode("n1", func(n *types.Node) { n.K3s = &types.K3sStamp{Step: types.K3sStepChange} })
		lock := a.stuckChange()
		lock.BootID = "earlier"
		s.cluster.SetLock(lock)
		s.start("n1")
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "k3s was restarted "+underChange)
		a.keeps(lock)
	})
}

func TestAsManyAttemptsAreMadeUnderTheLockOfTheChange(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.cures = false
		lock := a.stuckChange()
		s.start("n1")
		s.pass(3 * time.Hour)
		a.is(3, types.RepairGaveUp, "k3s was restarted 3 times without success; an operator must investigate.")
		for i := 1; i < len(a.restarts); i++ {
			if d := a.restarts[i].Sub(a.restarts[i-1]); d < apart {
				t.Errorf("restart %d comes %s after the one before", i+1, d)
			}
		}
		a.keeps(lock)
	})
}

func TestTheLockOfAChangeThatLacksMoreIsWaitedFor(t *testing.T) {
	for name, change := range map[string]func(*agent, *types.DrainLock, *types.KubeLifecycle){
		"it goes on":              func(_ *agent, _ *types.DrainLock, l *types.KubeLifecycle) { l.Phase = types.LifecycleChanges },
		"it lacks something else": func(_ *agent, _ *types.DrainLock, l *types.KubeLifecycle) { l.NotBack = nil },
		"it is another node's":    func(_ *agent, lock *types.DrainLock, _ *types.KubeLifecycle) { lock.Holder = "n2" },
		"it is a drain's":         func(_ *agent, lock *types.DrainLock, _ *types.KubeLifecycle) { lock.Task = "" },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				lock, is := a.stuckChange(), a.change()
				change(a, &lock, &is)
				s.cluster.SetLock(lock)
				_ = a.lifecycle.Publish(types.Global, is)
				s.start("n1")
				s.pass(time.Hour)
				a.is(0, types.RepairWaits, "k3s is restarted after node "+lock.Holder+" has released the drain lock.")
				a.keeps(lock)
			})
		})
	}
}

// Everything else that a restart must not meet it must not meet there, either.
func TestOtherReasonsHoldUnderTheLockOfAChange(t *testing.T) {
	for words, change := range map[string]func(*stage, *agent){
		"a drain of this node is requested": func(_ *stage, a *agent) { _ = a.device.Publish(types.Global, types.NodeDrainRequest{}) },
		"without this node": func(s *stage, _ *agent) {
			s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		},
		"is cordoned and may be draining": func(s *stage, _ *agent) {
			s.cluster.ChangeNode("n2", func(n *types.Node) { n.Unschedulable, n.Agent = true, nil })
		},
		"until volumes on node n1 are rebuilt: pv-other": func(s *stage, _ *agent) {
			lock := s.cluster.Lock()
			lock.Volumes = map[string]int{"pv-other": 2}
			s.cluster.SetLock(lock)
			storage, _ := s.cluster.Storage(s.Context(), "")
			storage.Longhorn = true
			storage.Volumes = append(storage.Volumes, types.Volume{Name: "pv-other", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n3", Mode: "RW"}}})
			s.cluster.SetStorage(storage)
		},
	} {
		t.Run(words, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				a.stuckChange()
				change(s, a)
				lock := s.cluster.Lock()
				s.start("n1")
				s.pass(time.Hour)
				a.is(0, types.RepairWaits, words)
				a.keeps(lock)
			})
		})
	}
}

func TestATryThatFailsLeavesTheLockToTheChange(t *testing.T) {
	for name, row := range map[string]struct {
		fails func(*agent)
		words string
	}{
		"nothing was done to k3s": {func(a *agent) { a.fails = errNoK3s }, "The last attempt failed: nothing was done"},
		"this node is not Ready":  {func(a *agent) { a.cluster.SetRenewed("n1", a.began) }, "The last attempt failed: this node is not Ready"},
		"the lock is taken away": {func(a *agent) {
			a.kube = &meanwhile{a.cluster, func() {
				lock := a.cluster.Lock()
				a.cluster.SetLock(types.DrainLock{Holder: "n2"})
				a.cluster.SetLock(lock) // once more
			}}
		}, "The last attempt failed: the drain lock was taken away meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				lock := a.stuckChange()
				row.fails(a)
				s.start("n1")
				s.pass(10 * time.Minute)
				a.is(0, types.RepairWaits, row.words)
				if m := a.says(); m.Attempts > 0 || m.Last > 0 || len(s.cluster.Calls("freelock")) > 0 {
					t.Errorf("it says %+v", m)
				}
				a.keeps(lock)
			})
		})
	}
}

// meanwhile is a cluster in which something happens while the volumes are looked at.
type meanwhile struct {
	*kubetest.Cluster
	then func()
}

func (m *meanwhile) Storage(ctx context.Context, node string) (types.Storage, error) {
	m.then()
	return m.Cluster.Storage(ctx, node)
}

// published is MountRecovery, at whose publication something happens.
type published struct {
	*disk
	then func(types.MountRecovery)
}

func (p *published) Publish(key string, m types.MountRecovery) error {
	err := p.disk.Publish(key, m)
	p.then(m)
	return err
}

// The change reads MountRecovery before it ends: whichever is published later sees the other.
func TestAChangeThatEndsBeforeTheRestartIsNotRestartedUnder(t *testing.T) {
	ends := func(a *agent) { _ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleIdle}) }
	for name, at := range map[string]func(*agent, *Component){
		"under the lock": func(a *agent, c *Component) { c.Kube = &meanwhile{a.cluster, func() { ends(a) }} },
		"when the restart is published": func(a *agent, c *Component) {
			c.Recovery = &published{&a.recovery, func(m types.MountRecovery) {
				if m.Attempts > 0 {
					ends(a)
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				a := s.agents["n1"]
				lock := a.stuckChange()
				c := s.component("n1")
				at(a, c)
				s.runs(a, c)
				s.pass(10 * time.Minute)
				if m := a.says(); a.told() > 0 || m.Attempts > 0 || m.Last > 0 || !strings.Contains(m.Reason, "has released the drain lock") {
					t.Errorf("%d restarts, it says %+v", a.told(), m)
				}
				a.keeps(lock)
				s.cluster.SetLock(types.DrainLock{}) // the change has freed it
				s.pass(10 * time.Minute)
				if a.told() != 1 || c.vain > 0 {
					t.Errorf("%d restarts, it says %+v", a.told(), a.says())
				}
			})
		})
	}
}
