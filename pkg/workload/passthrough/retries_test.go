package passthrough

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAPortIsRetriedAndToldOnceWhileMultusIsNotInstalled(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("nads", fmt.Errorf("list network attachments: %w", types.ErrNotInstalled))
		a := s.start("n1")
		s.after(time.Hour)
		if n := a.said("level=error"); n != 0 {
			t.Errorf("%d errors although nobody needs one", n)
		}
		before := len(s.cluster.Calls(""))
		a.app("app-a", "eth1")
		s.after(time.Hour)
		if n := a.said("level=error"); n != 1 {
			t.Errorf("%d errors", n)
		}
		if n := len(s.cluster.Calls("")) - before; n > 70 {
			t.Errorf("%d calls in an hour", n)
		}
		s.cluster.FailVerb("nads", nil)
		s.after(time.Minute)
		s.want("eth1", "n1")
		if a.host.is("eth1") != "up" {
			t.Error("the link did not wait for that")
		}
	})
}

func TestAWriteThatFailsIsRetriedWithoutAStorm(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		for _, verb := range []string{"ensurenad", "releasenad"} {
			s.cluster.FailVerb(verb, errors.New("in trouble"))
			if verb == "ensurenad" {
				a.app("app-a", "eth1")
			} else {
				a.app("app-a")
			}
			s.after(10 * time.Minute)
			if n := len(s.cluster.Calls(verb)); n < 5 || n > 20 {
				t.Errorf("%s was tried %d times", verb, n)
			}
			s.cluster.FailVerb(verb, nil)
			s.after(time.Minute)
			s.want("eth1", map[string]string{"ensurenad": "n1", "releasenad": "-"}[verb])
		}
		if n := a.said("in trouble"); n != 2 {
			t.Errorf("that was said %d times", n)
		}
	})
}

func TestAfterAnOutageTheAttachmentsAreLookedAtAtOnce(t *testing.T) {
	for _, fault := range []kubetest.Fault{kubetest.Refused, kubetest.Hung} {
		play(t, func(s *stage) {
			a := s.start("n1")
			s.cluster.SetFault(fault)
			a.app("app-a", "eth1")
			s.after(3 * time.Minute)
			s.want("eth1", "-")
			if a.host.is("eth1") != "up" {
				t.Error("the link waits for the API server")
			}
			s.cluster.SetFault(kubetest.None)
			s.after(time.Second)
			s.want("eth1", "n1")
			s.cluster.SetFault(fault)
			s.after(time.Second)
			s.cluster.SetNAD("eth1", nil)
			s.cluster.SetFault(kubetest.None)
			s.after(time.Second)
			s.want("eth1", "n1")
		})
	}
}

func TestAWishThatChangesDuringACallWins(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.cluster.SetLatency(5 * time.Second)
		for range 10 {
			a.app("app-a", "eth1")
			s.after(3 * time.Second)
			a.app("app-a", "eth2")
			s.after(4 * time.Second)
		}
		s.after(time.Minute)
		s.want("eth1", "-")
		s.want("eth2", "n1")
		if n := a.said("level=error"); n > 0 {
			t.Errorf("%d errors", n)
		}
	})
}

func TestAWishOfAMomentLeavesNothingBehind(t *testing.T) {
	play(t, func(s *stage) {
		a := s.told("n1")
		a.app("app-a", "eth1")
		s.want("eth1", "n1")
		s.cluster.SetLatency(time.Second)
		a.app("app-b", "eth2")
		s.after(1500 * time.Millisecond)
		s.cluster.SetLatency(time.Second)
		s.cluster.LoseAnswer("ensurenad")
		s.after(500 * time.Millisecond)
		a.app("app-b")
		s.after(10 * time.Second)
		s.want("eth2", "-")
		s.want("eth1", "n1")
	})
}
