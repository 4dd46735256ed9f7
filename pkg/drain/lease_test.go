package drain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// beats lets the kubelet of a node renew its Lease by a clock of its own until
// the returned stop.
func (s *stage) beats(node string, off time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.kube.SetRenewed(node, time.Now().Add(off))
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
		}
	}()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func TestClocksThatAreAnHourApartDelayADrainBySecondsOnly(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour fast": time.Hour, "an hour slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.beats("n2", off)()
				defer s.beats("n3", off)()
				defer s.run()()
				time.Sleep(5 * time.Minute)
				start := time.Now()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Minute)
				s.is(types.DrainComplete, deviceOp)
				done := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
				if done > 25*time.Second {
					t.Errorf("COMPLETE after %s", done)
				}
			})
		})
	}
}

func TestAPeerWhoseLeaseIsOldIsNotReadyHoweverItWasSeenBefore(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.beats("n2", 0)
		defer s.run()()
		s.request(&s.zedagent, deviceOp) // looks at the Leases
		time.Sleep(5 * time.Second)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(10 * time.Minute)
		stop()
		time.Sleep(25 * time.Second) // its condition is still True
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Second)
		s.is(types.DrainStarting, deviceOp)
		s.cordoned(false, false)
		s.phase(types.PhaseGates, "quorum")
		defer s.beats("n2", 0)()
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}
