package drain

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAValidConfigurationCancelsALeaveThatTheMembershipCannotTakeBack(t *testing.T) {
	valid := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: uuid.New()},
		ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 244, 244, 2), Mask: net.CIDRMask(28, 32)},
	}
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.leaves()
		time.Sleep(10 * time.Second)
		s.phase(types.PhaseEmptying, "")
		nameless := valid
		nameless.ClusterID = types.UUIDandVersion{}
		_ = s.config.Publish(types.Global, nameless) // which nobody can act on
		time.Sleep(10 * time.Second)
		s.phase(types.PhaseEmptying, "")
		_ = s.config.Publish(types.Global, valid) // the membership's disk is full
		time.Sleep(time.Second)
		s.phase(types.PhaseIdle, "")
		s.kube.Block(appZero, false)
		time.Sleep(time.Minute)
		s.left(false)
		s.nothingLeft()
		s.path("2")
	})
}

func TestAQuorumThatIsLostJustBeforeTheNodeIsDeletedHoldsThatBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.request(&s.zedagent, deviceOp) // complete, but there yet
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.node("n3", types.ConditionFalse)
		s.leaves()
		time.Sleep(time.Hour)
		s.left(false)
		s.is(types.DrainComplete, deviceOp)
		s.phase(types.PhaseComplete, "no quorum")
		s.node("n3", types.ConditionTrue)
		time.Sleep(time.Minute)
		s.left(true)
	})
}

func TestALeaveThatFailedIsTriedAgainAfterAnHour(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hours(1)
		s.kube.Block(appZero, true)
		defer s.run()()
		s.leaves()
		time.Sleep(2 * time.Hour)
		s.phase(types.PhaseNotEmpty, "eve-kube-app/app-0")
		s.cordoned(false, false)
		s.kube.Block(appZero, false)
		time.Sleep(time.Minute)
		s.left(true)
		s.path("2")
	})
}

func TestALeaveThatFailedWithADeviceWaitsForAnotherWord(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hours(1)
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		defer s.run()()
		s.leaves()
		time.Sleep(24 * time.Hour)
		s.is(types.DrainFailedDrain, deviceOp)
		s.phase(types.PhaseNotEmpty, "")
		s.kube.Block(appZero, false)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(2 * time.Hour)
		s.left(true)
	})
}

func TestADeletionThatGetsNoAnswerIsGivenUpAfterTheSkipTime(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("deletenode", types.ErrNoAnswer)
		defer s.run()()
		s.leaves()
		time.Sleep(defaultSkipSilence - time.Minute)
		if p, _ := s.progress.Get(types.Global); p.Left {
			t.Error("left too early")
		}
		time.Sleep(2 * time.Minute)
		if p, _ := s.progress.Get(types.Global); !p.Left {
			t.Errorf("not left: %s %s", p.Phase, p.Reason)
		}
	})
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("deletenode", types.ErrRefused) // no is an answer
		defer s.run()()
		s.leaves()
		time.Sleep(2 * defaultSkipSilence)
		s.left(false)
		s.kube.SetFault(kubetest.None)
	})
}

// finalized is a cluster in which something keeps a deleted Node.
type finalized struct {
	*kubetest.Cluster
	deletions atomic.Int32
}

func (f *finalized) DeleteNode(_ context.Context, node types.Node) error {
	f.deletions.Add(1)
	f.ChangeNode(node.Name, func(n *types.Node) {
		n.Deleted, n.Finalizers = time.Now(), []string{"wrangler.cattle.io/managed-etcd-controller"}
	})
	return nil
}

func TestANodeThatIsDeletedAndStillThereIsNotLeft(t *testing.T) {
	story(t, 1, func(s *stage) {
		kept := &finalized{Cluster: s.kube}
		s.via = kept
		defer s.run()()
		s.leaves()
		time.Sleep(24 * time.Hour)
		s.left(false)
		s.phase(types.PhaseComplete, "blocked by finalizers wrangler.cattle.io/managed-etcd-controller")
		if n := kept.deletions.Load(); n != 1 {
			t.Errorf("it was deleted %d times", n)
		}
		_ = s.nodes.Unpublish("n1")
		time.Sleep(time.Minute) // until the next look at the volumes
		s.left(true)
	})
}
