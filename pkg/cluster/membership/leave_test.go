package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAParseErrorForThreeIntervalsLeavesNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", device, second)
		s.invalidate()
		s.told("n2", second) // even a list without us
		s.sleep(3 * time.Minute)
		s.is(types.MembershipDoubtful)
		s.setConfig(config(renamed))
		s.is(types.MembershipMember)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipMember)
		changed := config(renamed)
		if d := cmp.Diff(&changed, s.membershipNow().Config); d != "" || !s.membershipNow().InvalidSince.IsZero() {
			t.Errorf("want -, got +\n%s", d)
		}
	})
}

func TestARemovalThatAPeerWasToldOfIsALeave(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", device, second, third)
		s.invalidate()
		if got := s.shown(); len(got) != 0 {
			t.Errorf("the list was not withdrawn: %v", got)
		}
		s.sleep(time.Minute)
		s.told("n2", second, third)
		s.sleep(4*time.Minute - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
		kept := config()
		if d := cmp.Diff(&kept, s.membershipNow().Config); d != "" {
			t.Error("while it leaves: want -, got +\n" + d)
		}
		s.drained(true)
		s.is(types.MembershipLeft)
		if m := s.membershipNow(); m.Config != nil || m.ByOperator {
			t.Errorf("got %+v", m)
		}
	})
}

func TestAPeerThatIsToldOfUsVetoesBeyondTheHour(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", device, second)
		s.told("n3", second, third)
		s.sleep(5 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.told("n2", second, third)
		s.is(types.MembershipLeaving)
	})
}

func TestWhenNoPeerHasAListItTakesAnHour(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2") // an empty list says nothing
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestTheMastersOfAnotherClusterSendNobodyAway(t *testing.T) {
	elsewhere := uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")
	moved := func(s *stage, masters ...uuid.UUID) { // by the controller, while its Node is still here
		s.told("n2", masters...)
		s.cluster.ChangeNode("n2", func(n *types.Node) {
			stamp := *n.Agent
			stamp.Cluster = elsewhere
			n.Agent = &stamp
		})
		synctest.Wait()
	}
	play(t, func(s *stage) {
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = elsewhere }))
		if n, _ := s.nodes.Get("n1"); n.Agent.Cluster != elsewhere {
			t.Errorf("a stamp does not say of which cluster its masters are: %+v", n.Agent)
		}
		s.setConfig(config())
		s.invalidate()
		if n, _ := s.nodes.Get("n1"); n.Agent.Cluster != uuid.Nil {
			t.Errorf("a withdrawn stamp names a cluster: %+v", n.Agent)
		}
		moved(s, second)
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		moved(s, second, device)
		s.sleep(time.Hour) // who is wanted anywhere is not gone
		s.is(types.MembershipDoubtful)
		s.told("n2", second)
		s.is(types.MembershipLeaving)
	})
}

func TestOnlyAReadyPeersListCounts(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		s.told("n2", second, third)
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionTrue })
		synctest.Wait()
		s.is(types.MembershipLeaving)
	})
}

func TestAListWithoutUsThatWasStampedBeforeOursTurnedInvalidSaysNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", second, third)
		s.invalidate()
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestAListFromBetweenTwoDoubtsSaysNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.setConfig(config())
		s.told("n2", second)
		s.invalidate()
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
	})
}

func TestThePeersClockDoesNotMatter(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.sleep(time.Minute)
		s.cluster.ChangeNode("n2", func(n *types.Node) { // its API server is an hour behind
			n.Agent = &types.AgentStamp{Masters: []uuid.UUID{device, second}, Given: time.Now().Add(-time.Hour)}
			n.StampedAt = time.Now().Add(-time.Hour)
		})
		s.sleep(5 * time.Hour)
		s.is(types.MembershipDoubtful)
	})
}

func TestADeadAPIDecidesNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetFault(kubetest.Hung)
		s.invalidate()
		s.ask()
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful)
		_ = s.leave.Unpublish(types.Global)
		s.cluster.SetFault(kubetest.None)
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful) // peers get the time to be heard
		s.sleep(time.Minute)
		s.is(types.MembershipLeaving)
	})
}

func TestAnAPIThatDiesOnTheWayMakesTheHourBeginAnew(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.sleep(59 * time.Minute)
		s.cluster.SetFault(kubetest.Refused)
		s.sleep(2 * time.Minute)
		s.cluster.SetFault(kubetest.None)
		s.sleep(time.Hour - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestAControllerThatIsNotReachedMakesTheCountBeginAnew(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", second, third)
		s.sleep(5*time.Minute - time.Second)
		s.reached(types.ConfigGetFail)
		s.sleep(time.Second)
		s.reached(types.ConfigGetSuccess)
		s.sleep(5*time.Minute - time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestTheIntervalIsTakenOverAtRunTime(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", second)
		item := types.ConfigItemValue{ItemType: types.ConfigItemInt, IntValue: 10}
		_ = s.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{types.SettingConfigInterval: item}})
		s.sleep(50*time.Second - 1)
		s.is(types.MembershipDoubtful)
		s.sleep(1)
		s.is(types.MembershipLeaving)
	})
}

func TestAnHourOnTheWallClockIsNoHour(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.told("n2", second)
		s.asleep.Store(int64(time.Hour)) // the wall clock is set forward while the uptime stands
		s.sleep(time.Hour)
		s.is(types.MembershipDoubtful)
		s.sleep(5*time.Minute + period)
		s.is(types.MembershipLeaving)
	})
}

// A request ends with the boot, and until the topic has a directory nobody can say that it
// was withdrawn.
func TestADecidedLeaveIsWithdrawnAfterARebootByATopicWithoutARequest(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.ask()
		s.is(types.MembershipLeaving)
		s.reboot()
		s.reached(types.ConfigGetSuccess)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.sleep(time.Hour)
		s.is(types.MembershipLeaving)
		s.leave.silent.Store(false)
		s.sleep(time.Minute)
		s.is(types.MembershipDoubtful)
	})
}

// The drain of the leave goes on meanwhile.
func TestADecidedLeaveIsWithdrawnBeforeZedagentHasReadAConfiguration(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.ask()
		s.is(types.MembershipLeaving)
		s.reboot()
		s.leave.silent.Store(false) // as zedkube leave --cancel makes the topic
		s.sleep(time.Minute)
		s.is(types.MembershipDoubtful)
	})
}
