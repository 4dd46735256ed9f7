package passthrough

import (
	"errors"
	"testing"
	"time"
)

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
		// Someone who keeps setting it down is not fought with.
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
		if n := a.said("level=error"); n > 0 || a.said("has disappeared from the host") != 1 {
			t.Errorf("%d errors, told %d times", n, a.said("has disappeared from the host"))
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
		if n := a.said("not a valid name of a Kubernetes object"); n != 1 {
			t.Errorf("told %d times", n)
		}
		s.want("eth1", "n1")
	})
}
