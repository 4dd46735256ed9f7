package conditions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestACertificateRunsOutAndIsRenewed(t *testing.T) {
	tell(t, func(s *story) {
		const of = types.StateClientCertificate
		valid := s.now(of).Since
		c, _ := s.credentials.Get(types.Global)
		s.pass(time.Until(c.Client.NotAfter.Add(-14*day)) - time.Minute)
		s.is(of, types.ConditionTrue, "expires on")
		s.pass(2 * time.Minute)
		s.is(of, types.ConditionFalse, "in 13 days")
		warned := s.now(of).Since
		if !warned.After(valid) || !s.now(of).ExpiresAt.Equal(c.Client.NotAfter) {
			t.Errorf("%+v", s.now(of))
		}
		s.pass(day)
		s.is(of, types.ConditionFalse, "in 12 days")
		if got := s.now(of).Since; !got.Equal(warned) {
			t.Errorf("another day is no transition, but Since is %v instead of %v", got, warned)
		}
		s.is(types.StateCACertificate, types.ConditionTrue, "")

		c.Client.NotAfter = c.Client.NotAfter.Add(365 * day)
		put(s, &s.credentials, types.Global, c)
		s.pass(time.Second)
		s.is(of, types.ConditionTrue, "expires on")
		if got := s.now(of).Since; !got.After(warned) {
			t.Errorf("renewed at %v", got)
		}
		if lines := s.said(); len(lines) != 2 || !strings.HasPrefix(lines[0], "warning The client certificate") || !strings.HasPrefix(lines[1], "info The client certificate") {
			t.Errorf("it logged %q", lines)
		}
	})
}

func TestACertificateThatIsRotatedUnderOurHandsDoesNotFlap(t *testing.T) {
	tell(t, func(s *story) {
		was, _ := s.out.Get(types.Global)
		c, _ := s.credentials.Get(types.Global)
		put(s, &s.credentials, types.Global, types.Credentials{Client: c.Client}) // another kubeconfig, nothing proved yet
		s.pass(30 * time.Second)
		put(s, &s.credentials, types.Global, c)
		s.pass(10 * time.Minute)
		is, _ := s.out.Get(types.Global)
		if !slices.Equal(was.Conditions, is.Conditions) {
			t.Errorf("%+v\nbecame %+v", was.Conditions, is.Conditions)
		}
		put(s, &s.credentials, types.Global, types.Credentials{Client: c.Client})
		s.pass(3 * time.Minute)
		s.is(types.StateServerCertificate, types.ConditionUnknown, "not presented a certificate yet")
		s.is(types.StateClientCertificate, types.ConditionTrue, "")
	})
}

func TestAnOperatorCordonsAndUncordons(t *testing.T) {
	tell(t, func(s *story) {
		s.change("n1", func(n *types.Node) {
			n.Unschedulable = true
			n.Writers = []types.FieldWriter{{Field: types.FieldCordon, Manager: "kubectl", At: t0}}
		})
		s.pass(time.Second)
		s.is(types.StateCordon, types.ConditionFalse, "by field manager kubectl at 2026-08-22 10:00:00Z")
		at := s.now(types.StateCordon).Since
		s.pass(time.Hour)
		if got := s.now(types.StateCordon).Since; !got.Equal(at) {
			t.Errorf("cordoned at %v, later %v", at, got)
		}
		s.change("n1", func(n *types.Node) { n.Unschedulable, n.Writers = false, nil })
		s.pass(time.Second)
		s.is(types.StateCordon, types.ConditionTrue, "not cordoned")
	})
}

func TestALabelThatSomebodyRemovesIsMissedAfterTwoMinutes(t *testing.T) {
	tell(t, func(s *story) {
		s.change("n1", func(n *types.Node) { n.UUID = "" })
		s.pass(time.Minute)
		s.is(types.StateLabels, types.ConditionTrue, "")
		s.pass(2 * time.Minute)
		s.is(types.StateLabels, types.ConditionFalse, "node-uuid is missing")
		s.change("n1", func(n *types.Node) { n.UUID = ownID.String() })
		s.pass(time.Second)
		s.is(types.StateLabels, types.ConditionTrue, "")
	})
}

func TestOneNodeIsUpgradedAfterTheOther(t *testing.T) {
	tell(t, func(s *story) {
		for i, name := range []string{"n2", "n3", "n1"} {
			s.change(name, func(n *types.Node) { n.KubeletVersion = "v1.35.0+k3s1" })
			s.pass(10 * time.Minute)
			if i < 2 {
				s.is(types.StateVersion, types.ConditionFalse, "n2 runs v1.35.0+k3s1")
			}
		}
		s.is(types.StateVersion, types.ConditionTrue, "v1.35.0+k3s1")
		if lines := s.said(); len(lines) != 2 {
			t.Errorf("it logged %q", lines)
		}
	})
}

func TestClocksFiveMinutesApart(t *testing.T) {
	tell(t, func(s *story) {
		put(s, &s.clocks, "n2", types.NodeClock{Node: "n2", Ahead: -5 * time.Minute})
		s.pass(time.Minute)
		s.is(types.StateClock, types.ConditionTrue, "")
		s.pass(2 * time.Minute)
		s.is(types.StateClock, types.ConditionFalse, "the clock of n2 is 5m0s behind")
		put(s, &s.clocks, "n2", types.NodeClock{Node: "n2"})
		s.pass(time.Second)
		s.is(types.StateClock, types.ConditionTrue, "")
	})
}

func TestAHandoverOfTheLeaderIsNoTransition(t *testing.T) {
	tell(t, func(s *story) {
		since := s.now(types.StateLeader).Since
		in := types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true}
		put(s, &s.leader, types.Global, in)
		s.pass(40 * time.Second)
		s.is(types.StateLeader, types.ConditionTrue, "This node")
		in.LeaderIdentity = "n2"
		put(s, &s.leader, types.Global, in)
		s.pass(10 * time.Minute)
		s.is(types.StateLeader, types.ConditionTrue, "Node n2")
		if got := s.now(types.StateLeader).Since; !got.Equal(since) {
			t.Errorf("leader since %v, then %v", since, got)
		}
		in.LeaderIdentity = ""
		put(s, &s.leader, types.Global, in)
		s.pass(3 * time.Minute)
		s.is(types.StateLeader, types.ConditionFalse, "No node reports")
	})
}

func TestWhatWasNotSeenDoesNotCountForWhatIsBad(t *testing.T) {
	tell(t, func(s *story) {
		put(s, &s.leader, types.Global, types.KubeLeaderElectInfo{}) // no word of the controller
		s.pass(90 * time.Second)
		put(s, &s.leader, types.Global, types.KubeLeaderElectInfo{InLeaderElection: true})
		s.pass(time.Minute)
		s.is(types.StateLeader, types.ConditionTrue, "This node")
		s.pass(2 * time.Minute)
		s.is(types.StateLeader, types.ConditionFalse, "No node reports")
	})
}

// TestWhatIsBadAndUnseenInTurnIsNotGoodForEver is about an API server that answers for a minute and a half and is
// silent for a minute, again and again, so that nobody can hold the Lease.
func TestWhatIsBadAndUnseenInTurnIsNotGoodForEver(t *testing.T) {
	tell(t, func(s *story) {
		put(s, &s.leader, types.Global, types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true})
		said := types.ConditionTrue
		for range 10 {
			put(s, &s.api, types.Global, types.APIStatus{Synced: true})
			put(s, &s.tables, types.TableNodes, types.TableStatus{Complete: true})
			s.pass(90 * time.Second)
			s.is(types.StateLeader, said, "") // False has to last for two minutes
			put(s, &s.api, types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "connection refused"})
			put(s, &s.tables, types.TableNodes, types.TableStatus{})
			s.pass(time.Minute)
			said = types.ConditionUnknown
			s.is(types.StateLeader, said, "")
			s.is(types.StateVersion, types.ConditionTrue, "") // it is not bad in between
		}
	})
}

func TestTheAPIServerIsAwayForAWhile(t *testing.T) {
	tell(t, func(s *story) {
		was, _ := s.out.Get(types.Global)
		away := types.APIStatus{SilentSince: time.Now(), Reason: "connection refused"}
		put(s, &s.api, types.Global, away)
		put(s, &s.tables, types.TableNodes, types.TableStatus{})
		s.pass(time.Minute)
		put(s, &s.api, types.Global, types.APIStatus{Synced: true})
		put(s, &s.tables, types.TableNodes, types.TableStatus{Complete: true})
		s.pass(5 * time.Minute)
		if is, _ := s.out.Get(types.Global); !slices.Equal(was.Conditions, is.Conditions) {
			t.Errorf("%+v\nbecame %+v", was.Conditions, is.Conditions)
		}
		put(s, &s.api, types.Global, away)
		s.pass(5 * time.Minute)
		s.is(types.StateCordon, types.ConditionUnknown, "connection refused")
		s.is(types.StateServerCertificate, types.ConditionTrue, "")
		s.is(types.StateClock, types.ConditionTrue, "")
	})
}

func TestTransitionTimesSurviveARestart(t *testing.T) {
	tell(t, func(s *story) {
		s.change("n1", func(n *types.Node) { n.Unschedulable = true })
		s.pass(time.Minute)
		was, _ := s.out.Get(types.Global)
		s.stop()
		c, _ := s.credentials.Get(types.Global)
		nodes := s.nodes.All()
		_, _ = s.credentials.Unpublish(types.Global), s.tables.Unpublish(types.TableNodes)
		_, _ = s.api.Unpublish(types.Global), s.leader.Unpublish(types.Global)
		for name := range nodes {
			_ = s.nodes.Unpublish(name)
		}
		s.pass(time.Hour)
		s.start()
		s.pass(30 * time.Second)
		f := healthy()
		put(s, &s.credentials, types.Global, c)
		put(s, &s.api, types.Global, f.api)
		put(s, &s.tables, types.TableNodes, types.TableStatus{Complete: true})
		put(s, &s.leader, types.Global, f.leader)
		for name, n := range nodes {
			put(s, &s.nodes, name, n)
		}
		s.pass(10 * time.Minute)
		if is, _ := s.out.Get(types.Global); !slices.Equal(was.Conditions, is.Conditions) {
			t.Errorf("%+v\nbecame %+v", was.Conditions, is.Conditions)
		}
		if lines := s.said(); len(lines) > 0 {
			t.Errorf("after the restart it logged %q", lines)
		}
	})
}

func TestAMasterThatIsReplacedInTimeIsNotMissed(t *testing.T) {
	tell(t, func(s *story) {
		m, _ := s.membership.Get(types.Global)
		cfg := *m.Config
		fourth := uuid.MustParse("b3e2f1a0-0000-4000-8000-000000000004")
		cfg.MasterNodeIDs = []uuid.UUID{ownID, otherID, fourth}
		m.Config = &cfg
		put(s, &s.membership, types.Global, m)
		s.pass(4 * time.Minute)
		_ = s.nodes.Unpublish("n3")
		put(s, &s.nodes, "n4", node("n4", fourth))
		s.pass(10 * time.Minute)
		s.is(types.StateMembers, types.ConditionTrue, "3 masters")
		_ = s.nodes.Unpublish("n4")
		s.pass(6 * time.Minute)
		s.is(types.StateMembers, types.ConditionFalse, fourth.String())
	})
}

func TestWhatChangesNothingIsNotPublished(t *testing.T) {
	tell(t, func(s *story) {
		bell := make(chan struct{}, 1)
		s.out.Notify(bell)
		select {
		case <-bell: // it may ring as it is hung up
		default:
		}
		for i := range 60 {
			s.change("n2", func(n *types.Node) { n.Memory = int64(i) })
			s.pass(time.Minute)
		}
		select {
		case <-bell:
			t.Error("an hour of healthy news was published")
		default:
		}
	})
}
