package drain

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAForced9EndsADrainInWhateverPhaseAndKeepsTheCordonUntilTheWithdrawal(t *testing.T) {
	for name, until := range phasesOf {
		if name == "after FAILEDDRAIN" {
			continue // its agent is another one
		}
		for which := range 2 {
			t.Run(fmt.Sprint(name, ", file ", which), func(t *testing.T) {
				story(t, 1, func(s *stage) {
					path := []string{s.force, s.otherForce()}[which]
					stop := s.run()
					until(s)
					s.write(path, `{"Status":"complete"}`)
					time.Sleep(3 * time.Second)
					s.is(types.DrainComplete, deviceOp)
					if _, err := os.Lstat(path); err == nil {
						t.Error("the file was not used up")
					}
					time.Sleep(time.Hour)
					s.is(types.DrainComplete, deviceOp)
					s.cordoned(true, true)
					stop()
					defer s.run()()
					time.Sleep(time.Minute)
					s.is(types.DrainComplete, deviceOp)
					s.cordoned(true, true)
					_ = s.zedagent.Unpublish(types.Global)
					if s.kube.Lock().Holder == "n2" {
						s.kube.SetLock(types.DrainLock{})
					}
					time.Sleep(40 * time.Second)
					s.is(types.DrainNotRequested, nobody)
					s.nothingLeft()
				})
			})
		}
	}
}

func TestAForced9LastsUntilTheBoot(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(5 * time.Second)
		stop()
		s.reboot("boot-2")
		s.ready()
		defer s.run()()
		time.Sleep(40 * time.Second)
		s.path("2")
		s.nothingLeft()
	})
}

func TestForced0To2StopADrainInWhateverPhase(t *testing.T) {
	for forced := range types.DrainRequested {
		for name, until := range phasesOf {
			if name == "after FAILEDDRAIN" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", forced, name), func(t *testing.T) {
				story(t, 1, func(s *stage) {
					defer s.run()()
					until(s)
					s.write(s.force, fmt.Sprintf(`{"Status":%d}`, forced))
					time.Sleep(time.Second)
					s.is(forced, deviceOp)
					if s.kube.Lock().Holder == "n2" {
						s.kube.SetLock(types.DrainLock{})
					}
					time.Sleep(40 * time.Second)
					s.nothingLeft()
					s.phase(types.PhaseIdle, "force file")
					s.kube.Block(appZero, false)
					s.remove(s.force)
					time.Sleep(15 * time.Second)
					s.is(types.DrainComplete, deviceOp) // the request stands
				})
			})
		}
	}
}

func TestForced3To8MaskTheStatusAndStopNothing(t *testing.T) {
	for forced := types.DrainRequested; forced < types.DrainComplete; forced++ {
		t.Run(forced.String(), func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				s.write(s.otherForce(), fmt.Sprintf(`{"Status":%q,"RequestedBy":3}`, forced))
				time.Sleep(time.Second)
				s.is(forced, osUpdate)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				s.is(forced, osUpdate)
				s.phase(types.PhaseComplete, "")
				s.write(s.force, `{"Status":2,"RequestedBy":1}`) // the user's card wins
				time.Sleep(time.Second)
				s.is(types.DrainNotRequested, deviceOp)
				s.remove(s.force)
				s.remove(s.otherForce())
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

// The file's time and the wall clock say nothing: a device without a battery for
// its clock begins in the past, and the clock is set while the agent is down.
func TestOnlyTheFirstStartOfABootRemovesForceFiles(t *testing.T) {
	for name, age := range map[string]time.Duration{"that looks new": -time.Hour, "that looks old": 100 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				old := func(path string) {
					s.write(path, `{"Status":1}`)
					at := s.booted.Add(-age)
					if err := os.Chtimes(path, at, at); err != nil {
						t.Fatal(err)
					}
				}
				s.run()()
				old(s.force)
				stop := s.run() // the same boot
				time.Sleep(time.Second)
				s.is(types.DrainNotSupported, nobody)
				stop()
				s.reboot("boot-2")
				old(s.otherForce())
				defer s.run()()
				time.Sleep(time.Second)
				s.is(types.DrainNotRequested, nobody)
				for _, path := range []string{s.force, s.otherForce()} {
					if _, err := os.Lstat(path); err == nil {
						t.Errorf("%s is still there", path)
					}
				}
			})
		})
	}
}

// A mount point cannot be removed, by root neither; nor can a file on a file
// system that has become read-only.
func TestAForceFileThatCannotBeRemovedHasOneEffect(t *testing.T) {
	story(t, 1, func(s *stage) {
		stuck := s.busyForce()
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		stuck(`{"Status":9}`)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		stop()
		stop = s.run()
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		stuck(`{"Status":9} `)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		stop()

		stuck(`{"Status":1}`)
		s.reboot("boot-2")
		s.ready()
		defer s.run()()
		time.Sleep(time.Minute)
		s.is(types.DrainNotRequested, nobody)
	})
}

// busyForce has the agent's force file be one that cannot be removed, and returns
// what writes it.
func (s *stage) busyForce() func(text string) {
	s.t.Helper()
	if os.Geteuid() != 0 {
		s.t.Skip("needs root to mount")
	}
	s.write(s.force, "")
	if err := syscall.Mount(s.force, s.force, "", syscall.MS_BIND, ""); err != nil {
		s.t.Fatalf("mount: %v", err)
	}
	s.t.Cleanup(func() {
		if err := syscall.Unmount(s.force, syscall.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
	return func(text string) { s.write(s.force, text) }
}

func TestAForced9WithoutADrainIsRemovedAndDoesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		time.Sleep(3 * time.Minute)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(time.Second)
		s.path("2")
		if _, err := os.Lstat(s.force); err == nil || !s.logged("there is no drain to complete") {
			t.Error("the file is still there, or nobody was told")
		}
		s.cordoned(false, false)
	})
}

func TestAForceFileThatIsHalfWrittenIsTriedAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.write(s.force, `{"Stat`)
		time.Sleep(20 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}
