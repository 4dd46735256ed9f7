package drain

import (
	"os"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestCompleteThatIsNotUsed(t *testing.T) {
	stays := did{phase: completed, s: complete9, by: deviceOp}
	failed := did{phase: notEmpty, s: failedDrain, by: deviceOp, stop: true, why: "has not: the drain is undone"}
	table(t, []row{
		{"for an hour nothing is said of it", calm(completed, unusedFor(59*time.Minute)), stays},
		{"then it is reported", calm(completed, unusedFor(time.Hour)), did{phase: completed, s: complete9, by: deviceOp, why: "has not for more than 1h0m0s: after 24h0m0s of this"}},
		{"after a day it fails", calm(completed, unusedFor(24*time.Hour)), failed},
		{"an update's as well", calm(completed, who(byUpdate), says(complete9, osUpdate), toldOf(osUpdate), unusedFor(24*time.Hour)), did{phase: notEmpty, s: failedDrain, by: osUpdate, stop: true}},
		{"also where a dead API gave it", calm(completed, deadEnd, silent(25*time.Hour), unusedFor(24*time.Hour)), failed},
		{"also where the force file did", calm(completed, kept, unusedFor(24*time.Hour)), failed},
		{"also where the request was changed meanwhile", calm(completed, asksAgain(byDeviceOp), unusedFor(24*time.Hour)), failed},
		{"not while the device goes down", calm(completed, inUse, unusedFor(25*time.Hour)), did{phase: completed, s: complete9, by: deviceOp, why: "has not for more than 1h0m0s: nodeagent says that the device reboots"}},
		{"an operator's drain stands for as long as it takes", calm(completed, who(byOperator), says(notRequested, nobody), unusedFor(100*time.Hour)), did{phase: completed, s: notRequested, by: nobody}},
		{"so does one that an operator asks for as well", calm(completed, who(byDeviceOp, byOperator), unusedFor(100*time.Hour)), did{phase: completed, s: complete9, by: deviceOp, why: "has not for more than 1h0m0s"}},
		{"so does one that k3s needs", calm(completed, who(byDeviceOp, byK3s), unusedFor(100*time.Hour)), did{phase: completed, s: complete9, by: deviceOp, why: "has not for more than 1h0m0s"}},
		{"what could not be said nobody can use", calm(completed, unusedFor(100*time.Hour), func(f *facts) { f.notPublished = true }), stays},
	})
}

func TestWhatAnUnusedDrainHolds(t *testing.T) {
	unused := func(f *facts) { f.rec.Unused = true }
	holds := did{phase: notEmpty, s: failedDrain, by: deviceOp}
	table(t, []row{
		{"it is kept for a minute", calm(notEmpty, unused, ourCordon, lockOurs, unusedFor(50*time.Second)), did{phase: notEmpty, s: failedDrain, by: deviceOp, again: 10 * time.Second}},
		{"then the cordon goes", calm(notEmpty, unused, ourCordon, lockOurs, unusedFor(time.Minute)), did{phase: notEmpty, s: failedDrain, by: deviceOp, verb: uncordon}},
		{"and the lock", calm(notEmpty, unused, lockOurs, unusedFor(time.Minute)), did{phase: notEmpty, s: failedDrain, by: deviceOp, verb: release}},
		{"not while the device goes down", calm(notEmpty, unused, ourCordon, lockOurs, inUse, unusedFor(time.Hour)), did{phase: notEmpty, s: failedDrain, by: deviceOp, why: "the device reboots"}},
		{"not while nobody has heard of it", calm(notEmpty, unused, ourCordon, unusedFor(time.Hour), func(f *facts) { f.notPublished = true }), holds},
		{"the same request starts nothing", calm(notEmpty, unused, unusedFor(time.Hour)), holds},
		{"another one does", calm(notEmpty, unused, ourCordon, lockOurs, unusedFor(0), asksAgain(byDeviceOp)), did{phase: inGates, s: requested, by: deviceOp}},
		{"a withdrawn one does not hurry it", calm(notEmpty, unused, who(), ourCordon, unusedFor(50*time.Second)), did{phase: notEmpty, s: failedDrain, by: deviceOp, again: 10 * time.Second}},
	})
}

// An update whose image fails to install: baseosmgr does not withdraw at COMPLETE.
func TestACompleteThatNobodyUsesIsGivenBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.baseos, osUpdate)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, osUpdate)
		time.Sleep(59 * time.Minute)
		if s.logged("DrainNotUsed") {
			t.Error("reported within the hour")
		}
		time.Sleep(2 * time.Minute)
		if !s.logged("DrainNotUsed") {
			t.Error("not reported after an hour")
		}
		time.Sleep(22*time.Hour + 50*time.Minute)
		s.is(types.DrainComplete, osUpdate)
		for range 600 { // until the status says so
			if v, _ := s.status.Get(types.Global); v.Status == types.DrainFailedDrain {
				break
			}
			time.Sleep(2 * time.Second)
		}
		s.is(types.DrainFailedDrain, osUpdate)
		time.Sleep(50 * time.Second)
		s.cordoned(true, true)
		if s.kube.Lock().Holder != "n1" {
			t.Error("the lock went before the minute was over")
		}
		time.Sleep(time.Minute)
		s.cordoned(false, false)
		if lock := s.kube.Lock(); lock.Holder != "" {
			t.Errorf("the lock is %+v", lock)
		}
		evictions := len(s.kube.Calls("evict"))
		time.Sleep(48 * time.Hour)
		s.is(types.DrainFailedDrain, osUpdate)
		if n := len(s.kube.Calls("evict")); n != evictions {
			t.Error("the same request was drained for again")
		}
		_ = s.baseos.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.request(&s.baseos, osUpdate)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, osUpdate)
	})
}

func TestACompleteIsNotTakenBackWhileTheDeviceGoesDown(t *testing.T) {
	for name, show := range map[string]func(*stage) error{
		"reboot": func(s *stage) error {
			return s.agent.Publish(types.NodeAgentKey, types.NodeAgentStatus{DeviceReboot: true})
		},
		"shutdown": func(s *stage) error {
			return s.agent.Publish(types.NodeAgentKey, types.NodeAgentStatus{DeviceShutdown: true})
		},
		"power off": func(s *stage) error {
			return s.agent.Publish(types.NodeAgentKey, types.NodeAgentStatus{DevicePoweroff: true})
		},
		"update": func(s *stage) error {
			return s.agent.Publish(types.NodeAgentKey, types.NodeAgentStatus{UpdateInprogress: true})
		},
		"marker": func(s *stage) error { return os.WriteFile(s.marker+"-reboot", []byte("reboot"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Hour)
				if err := show(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(26 * time.Hour) // longer than it may stay unused
				s.is(types.DrainComplete, deviceOp)
				s.cordoned(true, true)
			})
		})
	}
}

// Markers are left by what went wrong before: only one that changes after COMPLETE
// was said is of this reboot, whatever its time says.
func TestAMarkerThatWasThereBeforeCompleteSaysNothing(t *testing.T) {
	for name, row := range map[string]struct {
		then  func(t *testing.T, marker string)
		start bool // another agent, in the middle
		used  bool
	}{
		"it stays as it is":            {func(*testing.T, string) {}, false, false},
		"also for an agent that comes": {func(*testing.T, string) {}, true, false},
		"it is written again":          {rewrite, false, true},
		"none was there":               {func(t *testing.T, marker string) { rewrite(t, marker) }, true, true},
		"it is dated back":             {func(t *testing.T, marker string) { rewrite(t, marker); _ = os.Chtimes(marker, wall0, wall0) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				marker := s.marker + "-reboot"
				if name != "none was there" {
					rewrite(t, marker)
				}
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Hour)
				s.is(types.DrainComplete, deviceOp)
				row.then(t, marker)
				if row.start {
					stop()
					stop = s.run()
				}
				defer stop()
				time.Sleep(26 * time.Hour)
				s.cordoned(row.used, row.used)
			})
		})
	}
}

// rewrite replaces the marker, so that even a coarse clock of the file system tells.
func rewrite(t *testing.T, marker string) {
	if err := os.WriteFile(marker+"-new", []byte("reboot by the controller"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(marker+"-new", marker); err != nil {
		t.Fatal(err)
	}
}

// A kill between the word and what it gives back loses nothing.
func TestAnAgentThatStartsAgainGivesAnUnusedDrainBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		s.request(&s.baseos, osUpdate)
		time.Sleep(24*time.Hour + 20*time.Second)
		s.is(types.DrainFailedDrain, osUpdate)
		stop()
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.cordoned(true, true)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainFailedDrain, osUpdate)
		s.cordoned(false, false)
	})
}

func TestTheTimeOfAnUnusedDrainIsASetting(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.setting(types.SettingDrainUnused, 2)
		defer s.run()()
		s.request(&s.baseos, osUpdate)
		time.Sleep(time.Hour + 55*time.Minute)
		s.is(types.DrainComplete, osUpdate)
		time.Sleep(10 * time.Minute)
		s.is(types.DrainFailedDrain, osUpdate)
		s.cordoned(false, false)
	})
}
