package drain

import (
	"reflect"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// A lock in the own name of which the journal knows nothing: etcd was restored
// from a snapshot, or a write came long after it had been given up.
func TestALockOfOursThatTheJournalDoesNotKnowIsFreed(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		time.Sleep(time.Minute)
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1"})
		time.Sleep(time.Minute)
		if lock := s.kube.Lock(); lock.Holder != "" {
			t.Errorf("held after a minute: %+v", lock)
		}
		stop()
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1"})
		defer s.run()()
		time.Sleep(time.Minute)
		if lock := s.kube.Lock(); lock.Holder != "" {
			t.Errorf("held a minute after the start: %+v", lock)
		}
		looks := len(s.kube.Calls("lock"))
		time.Sleep(time.Hour)
		if n := len(s.kube.Calls("lock")) - looks; n > 0 {
			t.Errorf("%d looks at a lock that nobody holds", n)
		}
	})
}

func TestALockForTheRemovalOfAMemberIsNotTheDrains(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1", Task: types.TaskMembers})
		time.Sleep(10 * time.Minute)
		if lock := s.kube.Lock(); lock.Holder != "n1" {
			t.Errorf("the lock is %+v", lock)
		}
		if n := len(s.kube.Calls("lock")); n > 5 {
			t.Errorf("%d looks at a lock that did not change", n)
		}
	})
}

// k3s may never come back after its restart: what helps then is a reboot, which this drain permits.
func TestALockForARestartOfK3sBecomesThatOfTheOwnDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1", Task: types.TaskK3s, Since: time.Now()})
		time.Sleep(10 * time.Minute)
		if lock := s.kube.Lock(); lock.Task != types.TaskK3s {
			t.Errorf("without a drain the lock is %+v", lock)
		}
		s.request(&s.zedagent, deviceOp)
		time.Sleep(9 * time.Minute) // k3s may still restart, after the drain was cancelled too
		if lock := s.kube.Lock(); lock.Task != types.TaskK3s {
			t.Errorf("after 19 minutes the lock is %+v", lock)
		}
		time.Sleep(10 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if lock := s.kube.Lock(); lock.Holder != "n1" || lock.Task != "" {
			t.Errorf("the lock is %+v", lock)
		}
	})
}

// looksSeldomAtTheLock checks that a drain that is complete does.
func (s *stage) looksSeldomAtTheLock() {
	s.t.Helper()
	reads := len(s.kube.Calls("lock"))
	time.Sleep(10 * time.Minute)
	if n := len(s.kube.Calls("lock")) - reads; n > 2 {
		s.t.Errorf("%d looks at the lock of a drain that is complete", n)
	}
}

// A change that is stuck must not keep its own device from the reboot or the update that may help, and
// goes on after that: its lock stays what it is.
func TestADrainGoesUnderTheLockOfAChangeOfK3sThatDoesNotEnd(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		defer func() { stop() }()
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1", Task: types.TaskK3sChange, Since: time.Now()})
		s.changesK3s(types.K3sStepChange)
		lock := s.kube.Lock()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(59 * time.Minute)
		s.cordoned(false, false)
		time.Sleep(3 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		s.looksSeldomAtTheLock()
		stop() // the device reboots
		s.reboot("boot-2")
		s.ready()
		stop = s.run()
		time.Sleep(5 * time.Minute)
		s.cordoned(false, false)
		if got := s.kube.Lock(); !reflect.DeepEqual(got, lock) {
			t.Errorf("the lock is %+v, it was %+v", got, lock)
		}
	})
}

// The clock was ahead when the lock was taken. Then the lock counts since this agent has seen it, as a cordon does.
func TestALockForK3sDelaysADrainNoLongerWhereTheClockWasSetBack(t *testing.T) {
	for task, long := range map[string]time.Duration{types.TaskK3sChange: shareAfter, types.TaskK3s: takeOverAfter} {
		t.Run(task, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				lock := types.DrainLock{Holder: "n1", BootID: "boot-1", Task: task, Since: time.Now().Add(24 * time.Hour)}
				s.kube.SetLock(lock)
				s.changesK3s(types.K3sStepChange)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(long / 2)
				lock.Since = time.Now().Add(24 * time.Hour)
				s.kube.SetLock(lock)                                                              // for another restart or change
				s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "RW"}))) // made since
				time.Sleep(long - time.Minute)
				s.cordoned(false, false)
				time.Sleep(10 * time.Minute)
				s.is(types.DrainComplete, deviceOp)
				s.looksSeldomAtTheLock()
				if got := s.kube.Lock(); got.Volumes["pvc-1"] != 2 || task == types.TaskK3sChange && !got.Since.Equal(lock.Since) {
					t.Errorf("the lock is %+v, it was %+v", got, lock)
				}
			})
		})
	}
}

// The eviction may be what ends a change: of a pod that did not run again. The change keeps its lock for the drain then.
func TestADrainUnderTheLockOfAFormerBootGoesOnWhenTheChangeHasEnded(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-0", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour)})
		s.changesK3s(types.K3sStepChange)
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		s.cordoned(true, true)
		s.changesK3s(types.K3sStepNone)
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if lock := s.kube.Lock(); lock.Holder != "n1" || lock.Task != "" || lock.BootID != "boot-1" {
			t.Errorf("the lock is %+v", lock)
		}
	})
}

func (s *stage) changesK3s(step types.K3sStep) {
	s.kube.ChangeNode("n1", func(n *types.Node) { n.K3s = &types.K3sStamp{Step: step} })
}

// A change that needs the drain comes after the one under whose lock an operator's drain has become complete.
func TestADrainForK3sTakesTheLockWhenThatOfTheChangeBeforeIsFreed(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour)})
		s.changesK3s(types.K3sStepChange)
		defer s.run()()
		s.request(&s.operator, nobody)
		time.Sleep(10 * time.Minute)
		s.phase(types.PhaseComplete, "")
		s.changesK3s(types.K3sStepNone)
		_ = s.k3s.Publish(types.Global, types.KubeLifecycle{Drain: types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: nobody}})
		_ = s.operator.Unpublish(types.Global)
		_ = s.kube.FreeDrainLock(t.Context(), s.kube.Lock())
		time.Sleep(time.Minute)
		if p, _ := s.progress.Get(types.Global); !p.Lock.Mine {
			t.Errorf("%s %v: %s; the lock is %+v", p.Phase, p.Requesters, p.Reason, s.kube.Lock())
		}
	})
}

func TestALockForARestartOfK3sElsewhereIsWaitedFor(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-1", Task: types.TaskK3s})
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		if lock := s.kube.Lock(); lock.Holder != "n2" {
			t.Errorf("the lock is %+v", lock)
		}
	})
}

func TestALockOfAnotherNodeIsLeftAlone(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-1"})
		time.Sleep(10 * time.Minute)
		if lock := s.kube.Lock(); lock.Holder != "n2" {
			t.Errorf("the lock is %+v", lock)
		}
		if n := len(s.kube.Calls("lock")); n > 5 {
			t.Errorf("%d looks at another node's lock", n)
		}
	})
}

func TestTheLockOfAChangeOfK3sIsTakenWhereItsHolderIsProvedOff(t *testing.T) {
	for name, row := range map[string]struct {
		task, alive string // alive is where n2's device answers n3
		silence     bool   // of the API server, after which the witnesses hang
		holder      string
		waits       string
	}{
		"it changes the version of k3s":              {types.TaskK3sChange, "", false, "n1", ""},
		"its device answers a witness":               {types.TaskK3sChange, "192.0.2.2:22", false, "n2", "node n2 changes the version of k3s; its agent has written nothing for 40s"},
		"it drains":                                  {"", "", false, "n2", "node n2 drains and has not rebooted yet"},
		"the witnesses said so before, not any more": {types.TaskK3sChange, "", true, "n2", "node n2 changes the version of k3s"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				s.kube.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-1", Task: row.task})
				s.kube.ChangeNode("n2", func(n *types.Node) {
					n.Ready, n.Etcd, n.K3s = types.ConditionUnknown, false, &types.K3sStamp{Step: types.K3sStepChange, Renewed: time.Now()}
				})
				s.request(&s.zedagent, deviceOp)
				for round := range int64(30) {
					if row.silence && round == 1 {
						s.kube.SetFault(kubetest.Refused)
					}
					for witness, alive := range map[string]string{"n1": "", "n3": row.alive} {
						if row.silence && round > 3 {
							break
						}
						s.kube.ChangeNode(witness, func(n *types.Node) {
							n.Witness = &types.Witness{Round: round, Sightings: []types.Sighting{{Node: "n2", UID: "n2", Alive: alive, Silent: 9}}}
						})
					}
					if row.silence && round == 3 {
						s.kube.SetFault(kubetest.None)
					}
					time.Sleep(10 * time.Second)
				}
				if lock := s.kube.Lock(); lock.Holder != row.holder {
					t.Errorf("the lock is %+v", lock)
				}
				if row.waits != "" && s.waited(row.waits) == 0 {
					t.Errorf("the drain does not say that %s", row.waits)
				}
			})
		})
	}
}
