package drain

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestTheCordonThatAFailureUndoesWasNotLostToSomebody(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.cordoned(false, false)
		if s.logged("CordonLost") {
			t.Error("its own uncordon is taken for somebody else's")
		}
	})
}

func TestANodeThatIsMadeAnewAfterCompleteGetsLockAndCordonAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		_ = s.nodes.Unpublish("n1")
		s.kube.SetLock(types.DrainLock{}) // which nobody needed any more
		time.Sleep(70 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.node("n1", types.ConditionTrue)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if l := s.kube.Lock(); l.Holder != "n1" {
			t.Errorf("the lock is %q's", l.Holder)
		}
	})
}

func TestANodeThatIsMadeAnewInMidDrainIsDrained(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		_ = s.nodes.Unpublish("n1")
		s.kube.SetLock(types.DrainLock{})
		time.Sleep(30 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", UID: "another", Ready: types.ConditionTrue, BootID: "boot-1", Etcd: true, Agent: &types.AgentStamp{}})
		s.kube.Block(appZero, false)
		time.Sleep(30 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if l := s.kube.Lock(); l.Holder != "n1" {
			t.Errorf("the lock is %q's", l.Holder)
		}
		s.path("234579")
	})
}

func TestATieBreakerByTheConfigurationAloneKeepsNoLockByItsCordon(t *testing.T) {
	story(t, 1, func(s *stage) {
		id := uuid.New()
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true, TieBreakerNodeID: types.UUIDandVersion{UUID: id}})
		s.kube.ChangeNode("n2", func(n *types.Node) {
			n.UUID, n.BootID, n.Unschedulable, n.CordonedBy = id.String(), "boot-2", true, &types.Cordon{By: "zedkube"}
		})
		s.held("n2") // since before its reboot
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestVolumesThatNobodyCanListDelayNoCordonThatIsMadeUpFor(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetFault(kubetest.Refused)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(310 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.kube.FailVerb("storage", errors.New("longhorn: 500"))
		s.kube.SetFault(kubetest.None)
		time.Sleep(20 * time.Second)
		s.cordoned(true, true)
		s.kube.FailVerb("storage", nil)
		time.Sleep(20 * time.Second)
		if l := s.kube.Lock(); l.Holder != "n1" {
			t.Errorf("the lock is %q's", l.Holder)
		}
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(40 * time.Second)
		s.nothingLeft()
	})
}

func TestARequestWithoutATimeFailsOnce(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		_ = s.zedagent.Publish(types.Global, types.NodeDrainRequest{RequestedBy: deviceOp, Context: "reboot"})
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.kube.Block(appZero, false)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestOfTwoThatWereToldTheOneThatStaysIsNamed(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		s.request(&s.baseos, osUpdate)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, osUpdate)
		_ = s.baseos.Unpublish(types.Global)
		time.Sleep(time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.request(&s.baseos, osUpdate)
		time.Sleep(3 * time.Second)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Second)
		s.is(types.DrainComplete, osUpdate)
	})
}

// fullRun is /run without room: nobody hears what is published there.
type fullRun struct {
	*recorder
	full atomic.Bool
}

func (r *fullRun) Publish(key string, v types.NodeDrainStatus) error {
	if r.full.Load() {
		return errors.New("no space left on device")
	}
	return r.recorder.Publish(key, v)
}

func TestNoStateIsSkippedWhereNothingCouldBePublished(t *testing.T) {
	story(t, 1, func(s *stage) {
		c := s.component()
		run := &fullRun{recorder: &s.status}
		c.Status = run
		writes := 0
		s.journal.before = func() { writes++ }
		defer s.start(c)()
		run.full.Store(true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.path("2")
		if looks := s.status.looks.Load(); writes > 15 || looks > 500 {
			t.Errorf("%d writes of the journal, %d steps", writes, looks)
		}
		run.full.Store(false)
		start := time.Now()
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp}) -
			s.status.when(start, types.NodeDrainStatus{Status: types.DrainRequested, RequestedBy: deviceOp}); d < edge {
			t.Errorf("COMPLETE %s after REQUESTED", d)
		}
	})
}
