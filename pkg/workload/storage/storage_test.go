package storage

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsAsItShouldBeIsLeftAloneAndSaidOnce(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1", true), s.start("n2", false)
		s.after(time.Hour)
		if n := s.wrote(); n != 0 {
			t.Errorf("%d requests", n)
		}
		if a.news.Load() != 1 || b.news.Load() != 1 || len(a.log.AllEntries()) != 0 {
			t.Errorf("said %d and %d times, %d lines logged", a.news.Load(), b.news.Load(), len(a.log.AllEntries()))
		}
		is, other := a.says(), b.says()
		if !is.DiskReservation.Kept || !is.SnapshotJob.Kept || !is.DrainPolicy.Kept || is.DiskReservation.Actual != "2147483648" || is.DrainPolicy.Why != "" {
			t.Errorf("the leader says %+v", is)
		}
		if !other.DiskReservation.Kept || other.SnapshotJob.Kept || other.DrainPolicy.Kept {
			t.Errorf("the other says %+v", other)
		}
	})
}

func TestASettingIsCarriedOutAtOnceByWhoeverItFallsTo(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1", true), s.start("n2", false)
		for _, x := range []*agent{a, b} {
			x.say(types.SettingDiskReserved, number(5))
			x.say(types.SettingSnapshotCron, words("30 2 * * *"))
			x.say(types.SettingNodeDrainPolicy, words("always-allow"))
		}
		if s.reserved("n1") != 5*gb || s.reserved("n2") != 5*gb || s.cron() != "30 2 * * *" || s.policy() != "always-allow" {
			t.Errorf("reserved %d and %d, cron %q, policy %q", s.reserved("n1"), s.reserved("n2"), s.cron(), s.policy())
		}
		if n := s.wrote(); n != 4 {
			t.Errorf("%d requests", n)
		}
		if is := a.says(); is.DrainPolicy.Actual != "always-allow" || is.DrainPolicy.Why != "" || is.SnapshotJob.Why != "" {
			t.Errorf("says %+v", is)
		}
		s.after(11 * time.Second)
		a.say(types.SettingSnapshotCron, words(""))
		if s.cron() != "-" {
			t.Errorf("the job is still there at %q", s.cron())
		}
		s.after(11 * time.Second)
		a.say(types.SettingSnapshotCron, words("@daily"))
		s.after(0)
		if j, _ := s.jobs.Get(types.SnapshotJobName); j.Cron != "@daily" || j.Retain != 3 || j.Task != "snapshot" {
			t.Errorf("the job is %+v", j)
		}
	})
}

func TestAnOperatorsEditIsPutBackAndNothingElseIsTouched(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		s.after(time.Hour)
		s.cluster.EditSetting(types.LonghornDrainPolicy, "always-allow")
		s.reserve("n1", 0)
		s.reserve("n2", 0)
		s.cluster.EditJob(func(j *types.SnapshotJob) *types.SnapshotJob { j.Cron, j.Retain = "0 3 * * *", 7; return j })
		if s.policy() != defaultPolicy || s.reserved("n1") != 2*gb || s.reserved("n2") != 0 {
			t.Errorf("policy %q, reserved %d and %d", s.policy(), s.reserved("n1"), s.reserved("n2"))
		}
		if j, _ := s.jobs.Get(types.SnapshotJobName); j.Cron != defaultCron || j.Retain != 7 {
			t.Errorf("the job is %+v", j)
		}
		if n := a.logged("was changed by someone else"); n != 3 {
			t.Errorf("told %d times", n)
		}
		s.after(time.Hour)
		s.cluster.EditJob(func(*types.SnapshotJob) *types.SnapshotJob { return nil })
		if s.cron() != defaultCron {
			t.Errorf("a job that was deleted is now at %q", s.cron())
		}
	})
}

func TestAnEditLongAfterTheOwnWriteIsTheFirstOne(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		a.say(types.SettingNodeDrainPolicy, words("always-allow"))
		for edits := 1; edits <= 3; edits++ {
			s.after(time.Hour)
			s.cluster.EditSetting(types.LonghornDrainPolicy, defaultPolicy)
			if s.policy() != "always-allow" || a.says().DrainPolicy.Why != "" || a.logged("was changed by someone else") != edits {
				t.Errorf("policy %q, says %+v, told %d times", s.policy(), a.says().DrainPolicy, a.logged("was changed"))
			}
		}
		s.after(time.Minute)
		s.cluster.EditSetting(types.LonghornDrainPolicy, defaultPolicy)
		if s.policy() != "always-allow" || a.says().DrainPolicy.Why != contested {
			t.Errorf("policy %q, says %+v", s.policy(), a.says().DrainPolicy)
		}
	})
}

func TestWhoeverChangesItTimeAndAgainIsMetMoreAndMoreSeldom(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		s.after(time.Hour)
		end := time.Now().Add(6 * time.Hour)
		for time.Now().Before(end) {
			s.cluster.EditSetting(types.LonghornDrainPolicy, "always-allow")
			s.after(5 * time.Second)
		}
		calls := s.cluster.Calls("setsetting")
		var last time.Duration
		for i := 1; i < len(calls); i++ {
			gap := calls[i].At.Sub(calls[i-1].At)
			if gap < minPause || gap < last || gap > maxPause+5*time.Second {
				t.Errorf("write %d follows after %v, after %v before", i, gap, last)
			}
			last = gap
		}
		if n := len(calls); n < 36 || n > 45 {
			t.Errorf("%d writes in six hours", n)
		}
		if why := a.says().DrainPolicy.Why; why != contested {
			t.Errorf("says %q", why)
		}
		if n := a.logged(""); n > 3 {
			t.Errorf("%d lines logged", n)
		}
		s.after(20 * time.Minute) // nobody else any more
		if s.policy() != defaultPolicy || a.says().DrainPolicy.Why != "" || a.logged("matches the settings again") != 1 {
			t.Errorf("policy %q, says %+v", s.policy(), a.says().DrainPolicy)
		}
		s.cluster.EditSetting(types.LonghornDrainPolicy, "always-allow")
		if s.policy() != defaultPolicy {
			t.Error("the next edit is not the first one again")
		}
	})
}

func TestAFightNeverHoldsUpTheControllersNextWord(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		for range 600 {
			s.cluster.EditSetting(types.LonghornDrainPolicy, "always-allow")
			s.after(time.Second)
		}
		a.say(types.SettingNodeDrainPolicy, words("block-for-eviction"))
		s.after(minPause)
		if s.policy() != "block-for-eviction" {
			t.Errorf("policy %q", s.policy())
		}
	})
}

func TestASettingThatFlapsIsWrittenOnceInTenSeconds(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", true)
		for i := range 600 {
			a.say(types.SettingDiskReserved, number(uint32(i%7+1)))
			s.after(time.Second)
		}
		if n := s.wrote("setreserved"); n < 30 || n > 61 {
			t.Errorf("%d writes in ten minutes", n)
		}
		a.say(types.SettingDiskReserved, number(9))
		s.after(minPause)
		if s.reserved("n1") != 9*gb {
			t.Errorf("reserved %d", s.reserved("n1"))
		}
	})
}

func TestAnAgentWhoseSettingsDifferLeavesOtherNodesDisksAlone(t *testing.T) {
	play(t, func(s *stage) {
		a, b := s.start("n1", true), s.start("n2", false)
		a.say(types.SettingDiskReserved, number(5))
		b.say(types.SettingDiskReserved, number(1048576))
		s.reserve("n2", 7*gb)
		s.after(time.Hour)
		if s.reserved("n1") != 5*gb || s.reserved("n2") != 7*gb {
			t.Errorf("reserved %d and %d", s.reserved("n1"), s.reserved("n2"))
		}
	})
}

func TestATieBreakerIsReservedNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.reserve("n1", 0)
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", UUID: device("n1").String(), TieBreaker: true})
		a := s.start("n1", false)
		s.after(time.Hour)
		if s.reserved("n1") != 0 || a.says().DiskReservation.Kept {
			t.Errorf("reserved %d, says %+v", s.reserved("n1"), a.says())
		}
	})
}

func TestADiskThatComesLaterIsReservedAtOnceAndIsNobodysEdit(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", false)
		s.after(time.Hour)
		s.cluster.EditDisks("n1", func(n *types.LonghornNode) {
			n.Disks = append(n.Disks, types.LonghornDisk{Name: "more", Maximum: 10 * gb})
		})
		s.after(time.Second)
		if n, _ := s.disks.Get("n1"); n.Disks[1].Reserved != 2*gb || a.logged("somebody else") != 0 {
			t.Errorf("%+v, told %d times", n, a.logged("somebody else"))
		}
	})
}
