package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestNothingIsWrittenBeforeTheSettingsAreKnown(t *testing.T) {
	play(t, func(s *stage) {
		s.reserve("n1", 0)
		s.cluster.EditSetting(types.LonghornDrainPolicy, "always-allow")
		a := s.start("n1", true)
		a.stop()
		s.after(11 * time.Second)
		before := s.wrote()
		a.settings.waits.Store(true)
		s.start("n1", true)
		s.reserve("n1", 1)
		s.after(time.Hour)
		if n := s.wrote() - before; n != 0 || !strings.Contains(a.says().DrainPolicy.Why, "not known yet") {
			t.Errorf("%d requests, says %+v", n, a.says())
		}
		a.settings.waits.Store(false)
		a.say("other", number(1))
		if s.reserved("n1") != 2*gb {
			t.Errorf("reserved %d", s.reserved("n1"))
		}
		_ = a.settings.Unpublish(types.Global) // withdrawn
		s.after(time.Minute)
		s.reserve("n1", 0)
		s.after(time.Minute)
		if s.reserved("n1") != 0 {
			t.Error("written on settings that were withdrawn")
		}
	})
}

func TestWhatMakesNoSenseChangesNothingAndIsTold(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		a.say(types.SettingDiskReserved, number(5))
		s.after(time.Minute)
		before := s.wrote()
		a.say(types.SettingDiskReserved, number(1<<32-1))
		a.say(types.SettingSnapshotCron, words("61 * * * *"))
		a.say(types.SettingNodeDrainPolicy, words("never"))
		s.after(time.Hour)
		is := a.says()
		if n := s.wrote() - before; n != 0 || is.DiskReservation.Why == "" || is.SnapshotJob.Why == "" || is.DrainPolicy.Why == "" {
			t.Errorf("%d requests, says %+v", n, is)
		}
		if a.logged("does not match the settings") != 3 {
			t.Errorf("told %d times", a.logged("does not match the settings"))
		}
		if s.reserved("n1") != 5*gb || s.cron() != defaultCron || s.policy() != defaultPolicy {
			t.Error("what was good is gone")
		}
		a.say(types.SettingDiskReserved, number(101))
		s.after(time.Hour)
		if s.reserved("n1") != 5*gb || !strings.Contains(a.says().DiskReservation.Why, "disk disk has") {
			t.Errorf("reserved %d, says %+v", s.reserved("n1"), a.says().DiskReservation)
		}
		a.say(types.SettingDiskReserved, number(6))
		if s.reserved("n1") != 6*gb || a.says().DiskReservation.Why != "" || a.logged("again") != 1 {
			t.Errorf("reserved %d, says %+v", s.reserved("n1"), a.says().DiskReservation)
		}
	})
}

func TestASilenceOnlyPutsOffWhatIsToBeWritten(t *testing.T) {
	for _, fault := range []kubetest.Fault{kubetest.Refused, kubetest.Hung} {
		play(t, func(s *stage) {
			a := s.start("n1", true)
			s.after(time.Minute)
			s.fault(fault)
			a.say(types.SettingNodeDrainPolicy, words("always-allow"))
			a.say(types.SettingDiskReserved, number(3))
			s.after(time.Hour)
			if n := s.wrote(); n != 0 || !strings.Contains(a.says().DrainPolicy.Why, "silent") {
				t.Errorf("%d requests, says %+v", n, a.says())
			}
			s.fault(kubetest.None)
			if s.policy() != "always-allow" || s.reserved("n1") != 3*gb || a.logged("warning") != 0 {
				t.Errorf("policy %q, reserved %d", s.policy(), s.reserved("n1"))
			}
		})
	}
}

// The silence is noticed later than the first write runs into it.
func TestAWriteThatHangsHoldsUpNoOtherLevelAndIsRepeated(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		s.cluster.SetFault(kubetest.Hung)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.after(3 * time.Second)
		if why := a.says().DrainPolicy.Why; why != beingSet {
			t.Errorf("says %q", why)
		}
		a.say(types.SettingDiskReserved, number(3))
		s.after(3 * time.Second)
		if s.wrote("setreserved") != 1 {
			t.Error("one write waits for the other")
		}
		s.after(30 * time.Second)
		s.cluster.SetFault(kubetest.None)
		s.after(25 * time.Second)
		if s.policy() != "always-allow" || s.reserved("n1") != 3*gb {
			t.Errorf("policy %q, reserved %d", s.policy(), s.reserved("n1"))
		}
	})
}

func TestWhatTheServerRefusesIsToldAndTriedLaterAndLater(t *testing.T) {
	play(t, func(s *stage) {
		no := fmt.Errorf("set node-drain-policy of Longhorn: %w: the webhook says no", types.ErrRefused)
		s.cluster.FailVerb("setsetting", no)
		a := s.start("n1", true)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.after(6 * time.Hour)
		if n := s.wrote("setsetting"); n < 36 || n > 45 {
			t.Errorf("%d tries in six hours", n)
		}
		if why := a.says().DrainPolicy.Why; why != no.Error() || a.logged("the webhook says no") != 1 {
			t.Errorf("says %q, told %d times", why, a.logged("the webhook says no"))
		}
		if a.news.Load() > 4 {
			t.Errorf("said %d times", a.news.Load())
		}
		s.cluster.FailVerb("setsetting", nil)
		s.after(maxPause)
		if s.policy() != "always-allow" || a.says().DrainPolicy.Why != "" {
			t.Errorf("policy %q, says %+v", s.policy(), a.says().DrainPolicy)
		}
	})
}

func TestWhereSomebodyElseWasFasterItIsLookedAtAnew(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("setsetting", types.ErrConflict)
		a := s.start("n1", true)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.after(5 * time.Minute)
		if n := s.wrote("setsetting"); n < 28 || n > 31 {
			t.Errorf("%d tries in five minutes", n)
		}
		s.cluster.FailVerb("setsetting", nil)
		s.after(minPause)
		if s.policy() != "always-allow" || a.logged("warning") != 0 {
			t.Errorf("policy %q", s.policy())
		}
	})
}

func TestALostAnswerCostsNothing(t *testing.T) {
	for _, verb := range []string{"setsetting", "setreserved", "ensurejob", "deletejob"} {
		play(t, func(s *stage) {
			s.cluster.LoseAnswer(verb)
			a := s.start("n1", true)
			a.say(types.SettingNodeDrainPolicy, words("always-allow"))
			a.say(types.SettingDiskReserved, number(3))
			a.say(types.SettingSnapshotCron, words(map[bool]string{true: "", false: "@daily"}[verb == "deletejob"]))
			s.after(time.Minute)
			is := a.says()
			if s.wrote() != 3 || is.DrainPolicy.Why+is.SnapshotJob.Why+is.DiskReservation.Why != "" {
				t.Errorf("%s: %d requests, says %+v", verb, s.wrote(), is)
			}
		})
	}
}

func TestAServerThatTakesItAndShowsSomethingElseIsTold(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		frozen := &frozenPolicy{}
		frozen.keep(s)
		a.stop()
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.start("n1", true)
		for range 60 {
			frozen.restore(s)
			s.after(time.Second)
		}
		if why := a.says().DrainPolicy.Why; why != contested || s.wrote("setsetting") > 4 {
			t.Errorf("says %q after %d writes", why, s.wrote("setsetting"))
		}
	})
}

// frozenPolicy is the policy as it was.
type frozenPolicy struct{ row types.LonghornSetting }

func (c *frozenPolicy) keep(s *stage)    { c.row, _ = s.settings.Get(types.LonghornDrainPolicy) }
func (c *frozenPolicy) restore(s *stage) { _ = s.settings.Publish(types.LonghornDrainPolicy, c.row) }

func TestTheNextLeaderGoesOnAndTheFormerOneStops(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1", true), s.start("n2", false)
		for _, x := range []*agent{a, b} {
			x.say(types.SettingNodeDrainPolicy, words("always-allow"))
			x.say(types.SettingSnapshotCron, words("@daily"))
		}
		s.after(time.Minute)
		before := s.wrote()
		a.lead(false)
		s.cluster.EditSetting(types.LonghornDrainPolicy, "block-for-eviction") // while nobody leads
		s.schedule("@weekly")
		s.after(time.Minute)
		if n := s.wrote() - before; n != 0 || a.says().DrainPolicy.Kept {
			t.Errorf("%d requests of nodes that do not lead", n)
		}
		b.lead(true)
		if s.policy() != "always-allow" || s.cron() != "@daily" || !b.says().DrainPolicy.Kept {
			t.Errorf("policy %q, cron %q", s.policy(), s.cron())
		}
	})
}

func TestAWriteEndsWithTheLead(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		s.cluster.SetLatency(5 * time.Second)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.after(time.Second)
		a.lead(false)
		s.after(time.Minute)
		if s.policy() != defaultPolicy || a.says().DrainPolicy.Why != "" || a.logged("warning") != 0 {
			t.Errorf("policy %q, says %+v", s.policy(), a.says().DrainPolicy)
		}
	})
}

func TestTwoLeadersOfOneMindDoNotFight(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1", false), s.start("n2", false)
		both := []*agent{a, b}
		for _, x := range both { // before they lead: else one may act by the new settings while the other has the older ones
			x.say(types.SettingNodeDrainPolicy, words("always-allow"))
			x.say(types.SettingSnapshotCron, words("@daily"))
		}
		for _, x := range both {
			x.lead(true)
		}
		s.after(time.Hour)
		if s.policy() != "always-allow" || s.cron() != "@daily" {
			t.Errorf("policy %q, cron %q", s.policy(), s.cron())
		}
		if n := s.wrote("setsetting", "ensurejob"); n > 6 || a.logged("warning")+b.logged("warning") != 0 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestLonghornThatComesLateGetsEverything(t *testing.T) {
	play(t, func(s *stage) {
		_, _, _ = s.disks.Unpublish("n1"), s.settings.Unpublish(types.LonghornDrainPolicy), s.jobs.Unpublish(types.SnapshotJobName)
		s.see(types.TableStatus{Complete: true, Absent: true})
		a := s.start("n1", true)
		s.after(time.Hour)
		if s.wrote() != 0 || a.says().SnapshotJob.Why != "Longhorn is not installed" || len(a.log.AllEntries()) != 0 {
			t.Errorf("%d requests, says %+v", s.wrote(), a.says())
		}
		s.see(types.TableStatus{Complete: true})
		if s.cron() != defaultCron {
			t.Errorf("cron %q", s.cron())
		}
		s.cluster.EditSetting(types.LonghornDrainPolicy, "block-if-contains-last-replica") // its manager makes it
		s.reserve("n1", 0)
		if s.policy() != defaultPolicy || s.reserved("n1") != 2*gb {
			t.Errorf("policy %q, reserved %d", s.policy(), s.reserved("n1"))
		}
		if a.logged("somebody else") != 0 {
			t.Error("Longhorn is taken for somebody who changed it")
		}
	})
}

func TestAnAgentThatStartsAnewGoesOn(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		s.after(time.Minute)
		since := a.says().DrainPolicy.Since
		a.stop()
		s.start("n1", true)
		s.after(time.Minute)
		if is := a.says(); !is.DrainPolicy.Since.Equal(since) || s.wrote() != 1 {
			t.Errorf("says %+v after %d writes", is.DrainPolicy, s.wrote())
		}
	})
}

func TestAnErrorThatIsNobodysRefusalIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("ensurejob", errors.New("something else"))
		a := s.start("n1", true)
		a.say(types.SettingSnapshotCron, words("@daily"))
		s.after(time.Second)
		if a.says().SnapshotJob.Why != "something else" {
			t.Errorf("says %+v", a.says().SnapshotJob)
		}
		s.cluster.FailVerb("ensurejob", nil)
		s.after(minPause)
		if s.cron() != "@daily" {
			t.Errorf("cron %q", s.cron())
		}
	})
}
