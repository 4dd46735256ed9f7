package passthrough

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAnApplicationGetsItsPortAtOnceAndLeavesNothingBehind(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.want("eth1", "n1")
		if a.host.is("eth1") != "up" || a.host.is("eth2") != "down" {
			t.Errorf("eth1 is %s, eth2 is %s", a.host.is("eth1"), a.host.is("eth2"))
		}
		a.app("app-a", "eth1", "eth2")
		s.want("eth2", "n1")
		a.app("app-a", "eth2")
		s.want("eth1", "-")
		a.app("app-a")
		s.want("eth2", "-")
	})
}

func TestAnAttachmentStaysWhileOneApplicationNeedsIt(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1"), s.start("n2")
		a.app("app-a", "eth1")
		a.app("app-b", "eth1")
		b.app("app-b", "eth1")
		s.want("eth1", "n1 n2")
		a.app("app-a")
		s.want("eth1", "n1 n2")
		a.app("app-b")
		s.want("eth1", "n2")
		b.app("app-b")
		s.want("eth1", "-")
	})
}

func TestASingleNodeNeedsNoStampAndNoClusterConfiguration(t *testing.T) {
	play(t, func(s *stage) {
		_, _ = s.nodes.Unpublish("n2"), s.nodes.Unpublish("n3")
		_ = s.nodes.Publish("n1", node("n1", unstamped))
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.want("eth1", "n1")
		a.app("app-a")
		s.want("eth1", "-")
	})
}

func TestWhatWentWhileTheAgentWasDownIsReleased(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		a.app("app-b", "eth2")
		s.want("eth1", "n1")
		a.stop()
		a.app("app-a")
		s.start("n1")
		s.want("eth1", "-")
		s.want("eth2", "n1")
	})
}

func TestAnIdleNodeAsksOnceInFiveMinutes(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.after(time.Minute)
		before := len(s.cluster.Calls(""))
		s.after(time.Hour)
		if n := len(s.cluster.Calls("")) - before; n < 11 || n > 13 {
			t.Errorf("%d calls in an hour", n)
		}
	})
}

func TestAnAttachmentThatSomebodyDeletesOrAltersIsPutBack(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.want("eth1", "n1")
		s.cluster.SetNAD("eth1", nil)
		s.after(5 * time.Minute)
		s.want("eth1", "n1")
		s.cluster.SetNAD("eth1", &kubetest.NAD{Ours: true, Other: true, Owners: map[string]string{"n2": "uid-n2"}})
		s.after(5 * time.Minute)
		s.want("eth1", "n1 n2")
		if nad, _ := s.cluster.NAD("eth1"); nad.Other {
			t.Error("it still says something else")
		}
	})
}

func TestOneOfEVEsOwnZedkubeIsAdoptedAndAStrangersIsNot(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetNAD("eth1", &kubetest.NAD{})
		s.cluster.SetNAD("eth2", &kubetest.NAD{Other: true})
		a := s.start("n1")
		a.app("app-a", "eth1", "eth2")
		s.want("eth1", "n1")
		if nad, _ := s.cluster.NAD("eth2"); nad.Ours || nad.Owners != nil {
			t.Errorf("a stranger's attachment became %+v", nad)
		}
		s.after(time.Hour)
		if n := a.said("not zedkube's"); n != 1 {
			t.Errorf("that was said %d times", n)
		}
		a.app("app-a")
		s.want("eth1", "-")
		if _, ok := s.cluster.NAD("eth2"); !ok {
			t.Error("a stranger's attachment was removed")
		}
	})
}

func TestBesideEVEsOwnZedkubeNothingIsRemoved(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", unstamped))
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.want("eth1", "n1")
		a.app("app-a")
		s.want("eth1", "")
		_ = s.nodes.Publish("n3", node("n3"))
		s.want("eth1", "-")
	})
}

func TestANodeThatIsGoneHoldsNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.start("n1")
		b := s.start("n2")
		b.app("app-a", "eth1")
		s.want("eth1", "n2")
		b.stop()
		_ = s.nodes.Unpublish("n2")
		s.want("eth1", "-")
	})
}

// lateTable shows fewer nodes than there are.
type lateTable struct {
	*kubetest.Cluster
	all []types.Node
}

func (l lateTable) FreshNodes(context.Context) ([]types.Node, error) { return l.all, nil }

func TestANodeThatIsOnlyMissingInTheTableIsNotGone(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetNAD("eth1", &kubetest.NAD{Ours: true, Owners: map[string]string{"n2": "uid-n2"}})
		a := s.start("n1")
		a.stop()
		a.kube = lateTable{Cluster: s.cluster, all: []types.Node{node("n1"), node("n2"), node("n3")}}
		_ = s.nodes.Unpublish("n2")
		s.start("n1")
		s.after(time.Hour)
		s.want("eth1", "n2")
	})
}

func TestANodeThatCameBackUnderItsNameClaimsAnew(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n2")
		a.app("app-a", "eth1")
		_ = s.nodes.Unpublish("n2")
		_ = s.nodes.Publish("n2", node("n2", func(n *types.Node) { n.UID = "second" }))
		s.want("eth1", "n2")
		if nad, _ := s.cluster.NAD("eth1"); nad.Owners["n2"] != "second" {
			t.Errorf("noted is %v", nad.Owners)
		}
		// What is late for the former one takes nothing from this one.
		_ = s.cluster.ReleaseNAD(t.Context(), "eth1", map[string]string{"n2": "uid-n2"}, false)
		s.want("eth1", "n2")
	})
}

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
		a := s.start("n1")
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

func TestALinkThatGoesDownIsSetUpAgain(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		if a.host.followed() {
			t.Error("links are followed although nobody needs one")
		}
		a.app("app-a", "eth1")
		s.after(time.Minute)
		a.host.set("eth1", "down")
		s.after(0)
		if a.host.is("eth1") != "up" {
			t.Error("it stays down")
		}
		// Somebody who keeps setting it down is not fought with.
		before := a.host.looks()
		for range 600 {
			a.host.set("eth1", "down")
			s.after(100 * time.Millisecond)
		}
		if n := a.host.looks() - before; n > 8 {
			t.Errorf("%d looks in a minute", n)
		}
		if n := a.said("set up"); n > 3 {
			t.Errorf("told %d times", n)
		}
		a.app("app-a")
		s.after(time.Second)
		if a.host.followed() {
			t.Error("links are followed although nobody needs one any more")
		}
	})
}

func TestAPortThatAnApplicationHasIsNotMissed(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1", "eth9")
		s.after(time.Hour)
		if n := a.said("the host has no such network interface"); n != 1 {
			t.Errorf("the port that does not exist was told %d times", n)
		}
		a.host.set("eth1", "absent") // it is in the pod now
		s.after(time.Hour)
		if n := a.said("level=error"); n > 0 || a.said("has left the host") != 1 {
			t.Errorf("%d errors, told %d times", n, a.said("has left the host"))
		}
		a.host.set("eth1", "down") // the pod has ended
		s.after(0)
		if a.host.is("eth1") != "up" {
			t.Error("it is not set up again")
		}
		s.want("eth1", "n1")
	})
}

func TestLinksAreStillLookedAtWhenTheyCannotBeFollowed(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.after(time.Second)
		a.host.lost <- errors.New("no buffer space")
		s.after(0)
		if a.said("no buffer space") != 1 || a.host.followed() {
			t.Error("nobody was told, or they are followed at once")
		}
		s.after(30 * time.Second)
		a.host.set("eth1", "down")
		s.after(time.Minute)
		if a.host.is("eth1") != "up" || !a.host.followed() {
			t.Errorf("it is %s, followed %v", a.host.is("eth1"), a.host.followed())
		}
	})
}

func TestALinkThatCannotBeSetUpIsAnErrorThatHindersNothingElse(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.host.fails = errors.New("no such driver")
		a.app("app-a", "eth1")
		s.after(time.Hour)
		if n := a.said("no such driver"); n != 1 {
			t.Errorf("told %d times", n)
		}
		s.want("eth1", "n1")
	})
}

func TestAnAdapterThatCannotHaveAnAttachmentIsToldOnce(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "Eth_1", "eth1")
		s.after(time.Hour)
		if n := a.said("no name of a Kubernetes object"); n != 1 {
			t.Errorf("told %d times", n)
		}
		s.want("eth1", "n1")
	})
}
