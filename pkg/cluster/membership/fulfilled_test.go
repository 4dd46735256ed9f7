package membership

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// requests is where the operator's request is removed from.
type requests struct {
	of     *source[types.ClusterLeaveRequest]
	stands atomic.Bool // it cannot be removed
}

func (r *requests) Fulfilled(topic string) error {
	switch {
	case topic != "ClusterLeaveRequest":
		return fmt.Errorf("%s is no request to leave", topic)
	case r.stands.Load():
		return errors.New("read-only file system")
	}
	return r.of.Unpublish(types.Global)
}

func TestARequestToLeaveEndsWithTheLeave(t *testing.T) {
	play(t, func(s *stage) {
		asked := func(want bool, when string) {
			t.Helper()
			if _, ok := s.leave.Get(types.Global); ok != want {
				t.Errorf("%s: a request is there: %t", when, ok)
			}
		}
		s.ask()
		s.sleep(time.Minute)
		asked(true, "of a member, by which it is refused")
		s.invalidate()
		s.ask()
		s.is(types.MembershipLeaving)
		s.sleep(time.Hour)
		asked(true, "while it leaves")
		s.requests.stands.Store(true)
		s.drained(true)
		s.is(types.MembershipLeft)
		s.sleep(time.Minute)
		asked(true, "that cannot be removed")
		if logged := s.logs.LastEntry(); logged == nil || !strings.Contains(fmt.Sprint(logged.Data["error"], logged.Data["err"]), "read-only") {
			t.Errorf("the last line is %+v", logged)
		}
		s.requests.stands.Store(false)
		s.sleep(time.Minute)
		asked(false, "after the leave")

		s.drained(false)
		s.setConfig(config()) // a later cluster
		s.is(types.MembershipMember)
		s.invalidate()
		s.restart()
		s.sleep(30 * time.Minute)
		s.is(types.MembershipDoubtful)
	})
}

func TestARequestThatAnAgentDidNotLiveToRemoveIsRemovedByTheNext(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.ask()
		s.requests.stands.Store(true)
		s.drained(true)
		s.is(types.MembershipLeft)
		s.stop()
		s.requests.stands.Store(false)
		s.start()
		if r, ok := s.leave.Get(types.Global); ok {
			t.Errorf("it stands: %+v", r)
		}
	})
}

func TestARequestToLeaveWithoutTheClusterEndsWithTheLeave(t *testing.T) {
	play(t, func(s *stage) {
		s.alone()
		s.sleep(undoFor - time.Second)
		if _, ok := s.leave.Get(types.Global); !ok {
			t.Error("it is gone before its minute has passed")
		}
		s.sleep(time.Second)
		s.is(types.MembershipLeft)
		s.sleep(time.Minute)
		if r, ok := s.leave.Get(types.Global); ok {
			t.Errorf("it stands: %+v", r)
		}
		s.cluster.SetFault(kubetest.None)
		s.sleep(time.Hour)
		s.is(types.MembershipLeft)
	})
}
