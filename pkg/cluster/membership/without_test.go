package membership

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// operations is the record of what was done.
type operations struct {
	mu   sync.Mutex
	done []string
	said func() // is called before each
}

func (o *operations) Begin(op types.Operation) func(types.OperationOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = append(o.done, op.Op)
	if o.said != nil {
		o.said()
	}
	return func(types.OperationOutcome, error) {}
}

// alone is an operator's request to leave without the cluster, proved.
func (s *stage) alone() {
	s.cluster.SetFault(kubetest.Refused)
	at := time.Now()
	_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{
		RequestedAt: at, WithoutCluster: &types.LeaveWithoutCluster{Dead: []string{"n2", "n3"}}, Consent: &types.LeaveConsent{BootID: "boot-1"},
	})
	synctest.Wait()
	s.is(types.MembershipMember)
	_ = s.without.Publish(types.Global, types.WithoutCluster{RequestedAt: at, State: types.WithoutProved, Proved: s.uptime()})
	synctest.Wait()
}

func (s *stage) undo() {
	_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: time.Now(), Undo: true})
	synctest.Wait()
}

var elsewhere = uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")

func TestAProvedRequestLeavesAgainstAValidConfiguration(t *testing.T) {
	play(t, func(s *stage) {
		s.record.said = func() {
			if s.membershipNow().State != types.MembershipMember {
				t.Error("something was done before it was on record")
			}
			s.record.said = nil
		}
		s.alone()
		s.is(types.MembershipLeaving)
		if m := s.membershipNow(); m.Config == nil || !m.WithoutIt(config().ClusterID.UUID) || m.Without.Consent == nil {
			t.Errorf("it is %+v", m)
		}
		s.sleep(undoFor - time.Second)
		s.is(types.MembershipLeaving)
		s.sleep(time.Second)
		s.is(types.MembershipLeft)
		for _, c := range []types.EdgeNodeClusterConfig{config(), config(renamed)} { // whatever changes in it
			s.setConfig(c)
			s.sleep(24 * time.Hour)
			s.is(types.MembershipLeft)
		}
		s.restart()
		s.reboot()
		s.reached(types.ConfigGetSuccess)
		s.setConfig(config())
		s.cluster.SetFault(kubetest.None) // of the node on its own
		s.sleep(24 * time.Hour)
		s.is(types.MembershipLeft)
	})
}

func TestADecidedLeaveWithoutTheClusterIsToldOnceWhereItAnswersAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.cluster.SetLatency(5 * time.Millisecond)
		s.cluster.SetFault(kubetest.None)
		before := len(s.cluster.Calls("stamp"))
		s.sleep(undoFor / 2)
		s.is(types.MembershipLeaving)
		if n := len(s.cluster.Calls("stamp")) - before; n != 1 || !s.stamp().Leaving || len(s.shown()) > 0 {
			t.Errorf("%d stamps, the last is %+v", n, s.stamp())
		}
	})
}

func TestADecidedLeaveWithoutTheClusterEndsByAnotherCluster(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.sleep(time.Hour)
		s.is(types.MembershipLeft)
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = elsewhere }))
		s.is(types.MembershipMember)
		if s.membershipNow().Without != nil {
			t.Error("the decision stands")
		}
	})
}

func TestADecidedLeaveWithoutTheClusterEndsByAWithdrawnConfiguration(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.sleep(time.Hour)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.sleep(5*time.Minute - time.Second)
		s.setConfig(config()) // it did not parse for a while
		s.is(types.MembershipLeft)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.sleep(5 * time.Minute)
		s.is(types.MembershipLeft)
		if s.membershipNow().Without != nil {
			t.Error("the decision stands")
		}
		s.setConfig(config()) // it is to join again
		s.is(types.MembershipMember)
	})
}

func TestADecidedLeaveWithoutTheClusterCanBeTakenBackForAMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.sleep(undoFor - time.Second)
		s.undo()
		s.is(types.MembershipMember)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipMember)
	})
	play(t, func(s *stage) {
		s.alone()
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.undo()
		s.is(types.MembershipDoubtful)
	})
	play(t, func(s *stage) {
		s.alone()
		s.sleep(undoFor)
		s.undo()
		s.sleep(time.Hour)
		s.is(types.MembershipLeft)
	})
}

func TestADecidedLeaveWithoutTheClusterOutlastsARebootInItsMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.sleep(undoFor / 2)
		s.reboot()
		s.is(types.MembershipLeaving)
		s.sleep(undoFor)
		s.is(types.MembershipLeft)
	})
}

func TestWithoutAFreshProofNothingIsLeft(t *testing.T) {
	for name, change := range map[string]func(*types.WithoutCluster){
		"still looking":      func(w *types.WithoutCluster) { w.State = types.WithoutLooking },
		"refused":            func(w *types.WithoutCluster) { w.State = types.WithoutRefused },
		"of another request": func(w *types.WithoutCluster) { w.RequestedAt = w.RequestedAt.Add(-time.Second) },
		"old":                func(w *types.WithoutCluster) { w.Proved -= 2 * types.ProofFor },
		"of the future":      func(w *types.WithoutCluster) { w.Proved += time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.sleep(time.Hour)
				s.cluster.SetFault(kubetest.Refused)
				at := time.Now()
				w := types.WithoutCluster{RequestedAt: at, State: types.WithoutProved, Proved: s.uptime()}
				change(&w)
				_ = s.without.Publish(types.Global, w)
				_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: at, WithoutCluster: &types.LeaveWithoutCluster{}})
				s.sleep(time.Minute)
				s.is(types.MembershipMember)
			})
		})
	}
}

func TestARequestToLeaveWithoutTheClusterIsNoRequestToLeave(t *testing.T) {
	for _, r := range []types.ClusterLeaveRequest{{WithoutCluster: &types.LeaveWithoutCluster{}}, {Undo: true}} {
		play(t, func(s *stage) {
			s.invalidate()
			r.RequestedAt = time.Now()
			_ = s.leave.Publish(types.Global, r)
			s.sleep(30 * time.Minute)
			s.is(types.MembershipDoubtful)
		})
	}
}
