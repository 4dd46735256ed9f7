package passthrough

import (
	"context"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAnApplicationGetsItsPortAtOnceAndLeavesNothingBehind(t *testing.T) {
	play(t, func(s *stage) {
		a := s.told("n1")
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
		a, b := s.told("n1"), s.told("n2")
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
		a := s.told("n1")
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
		s.after(10 * time.Minute)
		s.want("eth1", "-")
		s.want("eth2", "n1")
	})
}

func TestAfterABootNothingIsReleasedBeforeZedagentHasReadAConfiguration(t *testing.T) {
	rows := map[string]func(*stage, *agent){
		"the controller answers, and the configuration is parsed for a while": func(s *stage, a *agent) {
			a.fetched(types.ConfigGetSuccess)
			s.after(3 * time.Minute)
			s.want("eth1", "n1")
			s.want("eth2", "n1")
		},
		"it has saved one": func(_ *stage, a *agent) { a.fetched(types.ConfigGetReadSaved) },
		"it has saved one, and fetches in vain then": func(s *stage, a *agent) {
			a.fetched(types.ConfigGetReadSaved)
			s.after(time.Second)
			a.fetched(types.ConfigGetFail)
		},
	}
	for row, read := range rows {
		t.Run(row, func(t *testing.T) {
			play(t, func(s *stage) {
				a := s.start("n1")
				a.app("app-a", "eth1")
				a.app("app-b", "eth2")
				s.want("eth2", "n1")
				a.stop()
				a.app("app-a")
				a.app("app-b")
				a.fetched(types.ConfigGetUnset)
				s.start("n1")
				s.after(time.Hour)
				a.fetched(types.ConfigGetFail)
				s.after(time.Hour)
				s.want("eth1", "n1")
				s.want("eth2", "n1")
				read(s, a)
				s.after(time.Second)
				a.app("app-a", "eth1")
				s.after(10 * time.Minute)
				s.want("eth1", "n1")
				s.want("eth2", "-")
				a.app("app-a")
				s.want("eth1", "-")
			})
		})
	}
}

func TestAZedagentThatBeginsAgainReleasesNothing(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		a.app("app-a", "eth1")
		s.after(time.Hour)
		s.want("eth1", "n1")
		_ = a.word.Unpublish(types.ZedAgentKey)
		a.app("app-a")
		s.after(time.Hour)
		s.want("eth1", "n1")
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
		a := s.told("n1")
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

func TestAListWithNobodyInItTakesNobodysAttachment(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetNAD("eth1", &kubetest.NAD{Ours: true, Owners: map[string]string{"n2": "uid-n2"}})
		a := s.start("n1")
		a.stop()
		a.kube = lateTable{Cluster: s.cluster}
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
