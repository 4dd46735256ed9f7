package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// toldBoth checks that both requesters were told of the end, at least two
// seconds apart, the device first unless it came when the update knew already.
func (s *stage) toldBoth(end types.DrainStatus, since time.Time) {
	s.t.Helper()
	time.Sleep(edge)
	device := s.status.when(since, types.NodeDrainStatus{Status: end, RequestedBy: deviceOp})
	update := s.status.when(since, types.NodeDrainStatus{Status: end, RequestedBy: osUpdate})
	asked, _ := s.zedagent.Get(types.Global)
	late := update >= 0 && since.Add(update).Before(asked.RequestedAt)
	if device < 0 || update < 0 || !late && update-device < edge {
		s.t.Errorf("told after %s and %s; history %s", device, update, s.status.path())
	}
}

func TestTwoRequestersInAnyOrderAndAtAnyTimeAreBothTold(t *testing.T) {
	type ask struct {
		from *source
		by   types.DrainRequester
	}
	for _, first := range []types.DrainRequester{deviceOp, osUpdate} {
		for _, apart := range []time.Duration{0, 1, 50, 900, 1500, 2050, 2500, 4000, 4500, 30000} {
			t.Run(fmt.Sprintf("%s first, %d ms apart", first, apart), func(t *testing.T) {
				story(t, 1, func(s *stage) {
					asks := []ask{{&s.zedagent, deviceOp}, {&s.baseos, osUpdate}}
					if first == osUpdate {
						asks[0], asks[1] = asks[1], asks[0]
					}
					defer s.run()()
					start := time.Now()
					s.request(asks[0].from, asks[0].by)
					time.Sleep(apart*time.Millisecond + time.Microsecond)
					s.request(asks[1].from, asks[1].by)
					time.Sleep(20 * time.Second)
					s.toldBoth(types.DrainComplete, start)
					if err := inOrder(s.status.seen); err != nil {
						t.Errorf("%v; history %s", err, s.status.path())
					}
					if n := len(s.kube.Calls("cordon")); n != 1 {
						t.Errorf("%d cordons", n)
					}
				})
			})
		}
	}
}

func TestBothRequestersAreToldOfAFailure(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		start := time.Now()
		s.request(&s.baseos, osUpdate)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.toldBoth(types.DrainFailedDrain, start)
		s.nothingLeft()
		s.kube.Block(appZero, false)
		start = time.Now()
		s.request(&s.baseos, osUpdate) // one of them tries again, and the other comes along
		time.Sleep(20 * time.Second)
		s.toldBoth(types.DrainComplete, start)
	})
}

func TestWithdrawingOneOfTwoChangesTheNameOnly(t *testing.T) {
	for name, from := range map[string]bool{"the device's": true, "the update's": false} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				defer s.run()()
				s.request(&s.baseos, osUpdate)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				want := deviceOp
				if from {
					want = osUpdate
					_ = s.zedagent.Unpublish(types.Global)
				} else {
					_ = s.baseos.Unpublish(types.Global)
				}
				time.Sleep(time.Second)
				s.is(types.DrainRetrying, want)
				s.kube.Block(appZero, false)
				time.Sleep(10 * time.Second)
				s.is(types.DrainComplete, want)
				if n := len(s.kube.Calls("cordon")); n != 1 || len(s.kube.Calls("uncordon")) != 0 {
					t.Errorf("%d cordons", n)
				}
			})
		})
	}
}

func TestARequestThatIsModifiedInMidDrainChangesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hours(1)
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Minute)
		r, _ := s.zedagent.Get(types.Global)
		r.RequestedAt, r.Context = r.RequestedAt.Add(-time.Hour), "update" // by a clock that jumped
		_ = s.zedagent.Publish(types.Global, r)
		time.Sleep(31 * time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.path("234578")
		time.Sleep(time.Hour) // and it was that request which failed
		s.path("234578")
	})
}

func TestAnOperatorsDrainShowsInTheProgressOnly(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.operator, nobody)
		time.Sleep(10 * time.Second)
		p := s.phase(types.PhaseEmptying, "")
		if len(p.Requesters) != 1 || p.Requesters[0] != byOperator {
			t.Errorf("for %v", p.Requesters)
		}
		_ = s.operator.Unpublish(types.Global)
		time.Sleep(30 * time.Second)
		s.path("2")
		s.nothingLeft()
	})
}

func TestADeviceJoinsAnOperatorsDrain(t *testing.T) {
	for name, row := range map[string]struct {
		blocked bool
		after   time.Duration
		want    string
	}{
		"just begun":     {false, time.Millisecond, "234579"},
		"while pods go":  {true, 10 * time.Second, "234579"},
		"which is empty": {false, 10 * time.Second, "234579"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, row.blocked)
				defer s.run()()
				s.request(&s.operator, nobody)
				time.Sleep(row.after)
				start := time.Now()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Second)
				s.kube.Block(appZero, false)
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path(row.want)
				if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainRequested, RequestedBy: deviceOp}); d < 0 || d > 100*time.Millisecond {
					t.Errorf("REQUESTED after %s", d)
				}
				if err := inOrder(s.status.seen); err != nil {
					t.Error(err)
				}
				_ = s.zedagent.Unpublish(types.Global) // the operator's goes on
				time.Sleep(time.Minute)
				s.is(types.DrainNotRequested, nobody)
				s.cordoned(true, true)
				_ = s.operator.Unpublish(types.Global)
				time.Sleep(40 * time.Second)
				s.nothingLeft()
				if n := len(s.kube.Calls("cordon")); n != 1 {
					t.Errorf("%d cordons", n)
				}
			})
		})
	}
}

func TestADeviceThatJoinsAnEmptyNodeIsNotToldOfWhatCameSince(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.operator, nobody)
		time.Sleep(10 * time.Second)
		late := types.Pod{Namespace: "a", Name: "late", UID: "late", NodeName: "n1"} // tolerates the cordon
		_ = s.pods.Publish(late.Key(), late)
		time.Sleep(10 * time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if _, ok := s.pods.Get(late.Key()); ok {
			t.Error("complete with a pod left")
		}
	})
}

// wants has the change of k3s ask for a drain, or no longer.
func (s *stage) wants(at time.Time) {
	_ = s.k3s.Publish(types.Global, types.KubeLifecycle{Drain: types.NodeDrainRequest{RequestedAt: at, RequestedBy: nobody, Context: "k3s changes to v1.35.1+k3s1"}})
}

func TestADrainForK3sEndsWhenItIsNoLongerNeeded(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		s.wants(time.Now())
		time.Sleep(20 * time.Second)
		p := s.phase(types.PhaseComplete, "")
		if len(p.Requesters) != 1 || p.Requesters[0] != byK3s || !p.Lock.Mine {
			t.Errorf("%+v", p)
		}
		s.cordoned(true, true)
		stop()
		defer s.run()() // another agent, while k3s changes
		time.Sleep(25 * time.Hour)
		s.phase(types.PhaseComplete, "")
		s.cordoned(true, true)
		s.wants(time.Time{})
		time.Sleep(30 * time.Second)
		s.path("2")
		s.nothingLeft()
	})
}

func TestADrainForK3sThatAnOperatorWantsAsWellIsNotEnded(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.wants(time.Now())
		time.Sleep(20 * time.Second)
		s.request(&s.operator, nobody)
		time.Sleep(time.Minute)
		s.wants(time.Time{})
		time.Sleep(time.Hour)
		if p := s.phase(types.PhaseComplete, ""); len(p.Requesters) != 1 || p.Requesters[0] != byOperator {
			t.Errorf("for %v", p.Requesters)
		}
		s.cordoned(true, true)
		_ = s.operator.Unpublish(types.Global)
		time.Sleep(30 * time.Second)
		s.nothingLeft()
	})
}

func TestADrainForK3sThatFailedIsTriedAgainAnHourLater(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		s.wants(time.Now())
		time.Sleep(time.Minute)
		s.phase(types.PhaseNotEmpty, "")
		s.nothingLeft()
		s.kube.Block(appZero, false)
		time.Sleep(58 * time.Minute)
		s.phase(types.PhaseNotEmpty, "")
		time.Sleep(2 * time.Minute)
		s.phase(types.PhaseComplete, "")
		s.path("2")
	})
}

func TestAnOperatorsFailureIsTriedAgainOnANewRequestOnly(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.operator, nobody)
		time.Sleep(time.Minute)
		s.phase(types.PhaseNotEmpty, "")
		s.nothingLeft()
		time.Sleep(time.Hour)
		s.phase(types.PhaseNotEmpty, "")
		s.kube.Block(appZero, false)
		s.request(&s.operator, nobody)
		time.Sleep(20 * time.Second)
		s.phase(types.PhaseComplete, "")
		s.path("2")
	})
}
