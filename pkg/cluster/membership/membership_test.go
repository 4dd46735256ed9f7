package membership

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestARestartCountsAnewAndForgetsNoState(t *testing.T) {
	play(t, func(s *stage) {
		s.restart()
		s.is(types.MembershipMember)
		s.invalidate()
		since := s.membershipNow().InvalidSince
		s.told("n2", second)
		s.sleep(4 * time.Minute)
		s.restart()
		s.sleep(4 * time.Minute)
		s.is(types.MembershipDoubtful)
		if got := s.membershipNow().InvalidSince; !got.Equal(since) {
			t.Errorf("invalid since %s, before the restart since %s", got, since)
		}
		s.told("n2", second) // as each peer does every ten minutes
		s.sleep(time.Minute)
		s.is(types.MembershipLeaving)
		s.restart()
		s.is(types.MembershipLeaving)
		s.drained(true)
		s.restart()
		s.is(types.MembershipLeft)
	})
}

func TestARebootSaysNothingUntilZedagentSpeaks(t *testing.T) {
	play(t, func(s *stage) {
		silent := func(want types.Membership) {
			t.Helper()
			s.reboot()
			s.sleep(24 * time.Hour)
			s.is(want)
			s.config.silent.Store(false) // zedagent is up and has read no configuration yet
			_ = s.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{})
			s.sleep(24 * time.Hour)
			s.is(want)
			if n := len(s.logs.AllEntries()); n != 0 {
				t.Errorf("%s: %d lines in the log of a boot in which nothing changed", want, n)
			}
			s.reached(types.ConfigGetSuccess)
		}
		silent(types.MembershipMember)
		s.setConfig(config())
		s.invalidate()
		silent(types.MembershipDoubtful)
		s.invalidate()
		s.ask()
		s.is(types.MembershipLeaving)
		silent(types.MembershipLeaving)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.is(types.MembershipLeaving) // that the request went with /run takes nothing back
		s.drained(true)
		s.is(types.MembershipLeft)
		silent(types.MembershipLeft)
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.is(types.MembershipLeft)
	})
}

func TestAConfigurationThatZedagentTakesAwayIsGone(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.config.Unpublish(types.Global)
		synctest.Wait()
		s.is(types.MembershipDoubtful)
		s.setConfig(config())
		s.restart()
		_ = s.config.Unpublish(types.Global)
		synctest.Wait()
		s.is(types.MembershipDoubtful)
	})
}

func TestAWorkerLeavesWhenItsNodeIsDeletedAndNotByLists(t *testing.T) {
	play(t, func(s *stage) {
		s.setConfig(config(worker))
		s.invalidate()
		s.told("n2", second)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful)
		own, _ := s.nodes.Get("n1")
		_ = s.nodes.Unpublish("n1")
		_ = s.api.Publish(types.Global, types.APIStatus{}) // no own pods are watched without a Node
		s.sleep(59 * time.Second)
		_ = s.nodes.Publish("n1", own)
		s.sleep(time.Second)
		_ = s.nodes.Unpublish("n1")
		s.sleep(59 * time.Second)
		s.is(types.MembershipDoubtful)
		s.sleep(time.Second)
		s.is(types.MembershipLeaving)
	})
}

func TestANodeThatOthersDeletedDoesNotStopAServerFromLeaving(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Unpublish("n1")
		_ = s.api.Publish(types.Global, types.APIStatus{})
		s.invalidate()
		s.sleep(10 * time.Minute)
		s.told("n2", second, third)
		s.is(types.MembershipLeaving)
	})
}

func TestAnOperatorsRequestIsRefusedWhileTheControllerWantsTheNode(t *testing.T) {
	play(t, func(s *stage) {
		s.ask()
		s.is(types.MembershipMember)
		if got := s.membershipNow().Reason; !strings.Contains(got, "refused") {
			t.Errorf("the reason does not say so: %s", got)
		}
		s.sleep(time.Minute)
		s.invalidate() // a parse error must not make it true
		s.sleep(time.Minute)
		s.restart()
		s.sleep(time.Minute)
		s.is(types.MembershipDoubtful)
		s.ask()
		s.is(types.MembershipLeaving)
		if !s.membershipNow().ByOperator {
			t.Error("it does not say who wished it")
		}
		_ = s.leave.Unpublish(types.Global)
		synctest.Wait()
		s.is(types.MembershipDoubtful)
	})
}

func TestAValidConfigurationCancelsTheLeaveAndMakesAMemberAnewAfterIt(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.ask()
		s.is(types.MembershipLeaving)
		s.setConfig(config())
		s.is(types.MembershipMember)
		if got := s.shown(); len(got) != 3 {
			t.Errorf("its list is not stamped again: %v", got)
		}
		_ = s.leave.Unpublish(types.Global)
		s.invalidate()
		s.sleep(time.Minute)
		s.ask()
		s.drained(true)
		s.is(types.MembershipLeft)
		other := config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = second })
		s.setConfig(other)
		s.is(types.MembershipMember)
		s.invalidate()
		s.told("n2", second)
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful) // the drain still speaks of the last leave
		s.drained(false)
		s.is(types.MembershipLeaving)
		if d := cmp.Diff(&other, s.membershipNow().Config); d != "" {
			t.Error("want -, got +\n" + d)
		}
	})
}

func TestAConfigurationThatNamesNoClusterChangesNothing(t *testing.T) {
	play(t, func(s *stage) {
		before := s.membershipNow()
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = types.UUIDandVersion{} }))
		s.setConfig(types.EdgeNodeClusterConfig{}) // nor does one that is to be disregarded
		if d := cmp.Diff(before, s.membershipNow()); d != "" {
			t.Error(d)
		}
	})
}

func TestARequestFromBeforeTheStartIsNotHeededInTheDoubtAfterIt(t *testing.T) {
	for name, heard := range map[string]bool{"zedagent is heard at once": true, "zedagent is heard later": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.ask() // refused
				s.stop()
				_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
				if !heard {
					_ = s.config.Unpublish(types.Global)
					s.config.silent.Store(true)
				}
				s.start()
				s.sleep(time.Second)
				s.invalidate()
				s.sleep(time.Minute)
				s.is(types.MembershipDoubtful)
				s.ask()
				s.is(types.MembershipLeaving)
			})
		})
	}
}
