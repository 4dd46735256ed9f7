package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// consent asks for the leave, and consents to the loss of a volume.
func (s *stage) consent() {
	_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{
		RequestedAt: time.Now(), Consent: &types.LeaveConsent{BootID: "boot-1", Volumes: []types.LeaveVolume{{UID: "u1"}}},
	})
	synctest.Wait()
}

func (s *stage) consented(want bool) {
	s.Helper()
	if got := s.membershipNow().Consent != nil; got != want {
		s.Errorf("%+v: consented %v, want %v", s.membershipNow(), got, want)
	}
}

func TestAConsentStandsAsLongAsItsRequest(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", second, third)
		s.sleep(5 * time.Minute)
		s.is(types.MembershipLeaving)
		s.consented(false)
		s.consent() // to a leave that was decided before
		s.consented(true)
		s.restart()
		s.consented(true)
		s.ask() // a request without one takes its place
		s.consented(false)
		s.consent()
		_ = s.leave.Unpublish(types.Global)
		synctest.Wait()
		s.is(types.MembershipLeaving)
		s.consented(false)
	})
}

func TestAConsentAsksForTheLeave(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.consent()
		s.is(types.MembershipLeaving)
		s.consented(true)
		s.setConfig(config())
		s.is(types.MembershipMember)
		s.consented(false)
		s.invalidate() // the next doubt: the request was refused with its consent
		s.sleep(10 * time.Minute)
		s.is(types.MembershipDoubtful)
		s.consented(false)
	})
}

func TestAConsentDoesNotOutlastAReboot(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", second, third)
		s.sleep(5 * time.Minute)
		s.consent()
		s.reboot()
		s.is(types.MembershipLeaving)
		s.consented(false)
	})
}
