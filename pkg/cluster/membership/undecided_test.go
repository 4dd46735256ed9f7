package membership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestAnHourInWhichTheControllerIsNotReachedIsNone(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.sleep(10 * time.Minute)
		s.reached(types.ConfigGetFail)
		s.sleep(24 * time.Hour)
		s.reached(types.ConfigGetSuccess)
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestNodesThatAreNotAllSeenDecideNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		_ = s.api.Publish(types.Global, types.APIStatus{}) // it answers, and lists are under way
		s.told("n2", second)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful)
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		s.told("n2", second)
		s.is(types.MembershipLeaving)
	})
}

func TestOnAFullDiskNothingIsDecidedAndNothingForgotten(t *testing.T) {
	play(t, func(s *stage) {
		before := s.membershipNow()
		s.membership.full.Store(true)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.ask()
		s.told("n2", second)
		s.sleep(24 * time.Hour)
		if d := cmp.Diff(before, s.membershipNow()); d != "" {
			t.Error(d)
		}
		if got := s.shown(); len(got) != 3 {
			t.Errorf("a list is withdrawn for a doubt that is not written down: %v", got)
		}
		_ = s.leave.Unpublish(types.Global)
		s.membership.full.Store(false)
		s.sleep(2 * period) // a step may fail between the two lines above, and pauses then before the next one
		s.is(types.MembershipDoubtful)
		s.told("n2", second)
		s.is(types.MembershipLeaving)
	})
}

func TestAConfigurationThatCannotBeReadIsNotGone(t *testing.T) {
	play(t, func(s *stage) {
		s.stop()
		_ = s.config.Unpublish(types.Global) // half a file, of an agent that has died
		s.config.silent.Store(true)
		s.start()
		s.reached(types.ConfigGetSuccess)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipMember)
	})
}
