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
		time.Sleep(renewsWithin + 2*lookEvery)
		s.is(types.DrainStarting, deviceOp)
		s.cordoned(false, false)
		s.phase(types.PhaseGates, "quorum")
		defer s.beats("n2", 0)()
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestARebuildOfAnyLengthEndsWhateverTheClocksSay(t *testing.T) {
	for name, off := range map[string]time.Duration{"in step": 0, "half a minute slow": -30 * time.Second, "an hour fast": time.Hour} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})))
				defer s.beats("n2", off)()
				defer s.beats("n3", off)()
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				for range 20 {
					time.Sleep(time.Minute)
					p := s.phase(types.PhaseEmptying, "pvc-1")
					if p.Quorum != "" || len(p.Volumes) != 1 || p.Volumes[0].Outlook != types.OutlookSlow {
						t.Fatalf("quorum %q, volumes %+v", p.Quorum, p.Volumes)
					}
				}
				s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "RW"})))
				time.Sleep(time.Minute)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestADeadPeerWithAFastClockDoesNotLookAlive(t *testing.T) {
	for name, row := range map[string]struct {
		ahead, dead time.Duration
		known       bool
	}{
		"a little fast":                     {15 * time.Second, 25 * time.Second, true},
		"half a minute fast":                {30 * time.Second, 25 * time.Second, true},
		"half a minute fast, a bit later":   {30 * time.Second, 45 * time.Second, true},
		"an hour fast":                      {time.Hour, 25 * time.Second, true},
		"by how much is not known":          {30 * time.Second, 15 * time.Second, false},
		"an hour, by how much nobody knows": {time.Hour, 25 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				stop := s.beats("n2", row.ahead)
				if row.known {
					_ = s.clocks.Publish("n2", types.NodeClock{Node: "n2", Ahead: row.ahead})
				}
				defer s.run()()
				time.Sleep(time.Minute)
				stop()
				time.Sleep(row.dead) // its condition is still True
				s.request(&s.zedagent, deviceOp)
				for range 30 {
					time.Sleep(time.Second)
					s.is(types.DrainStarting, deviceOp)
					s.cordoned(false, false)
				}
				s.phase(types.PhaseGates, "n2")
			})
		})
	}
}

func TestALivePeerWithAFastClockDelaysNothingOnceItsClockIsKnown(t *testing.T) {
	story(t, 1, func(s *stage) {
		for _, n := range []string{"n2", "n3"} {
			defer s.beats(n, time.Hour)()
			_ = s.clocks.Publish(n, types.NodeClock{Node: n, Ahead: time.Hour})
		}
		defer s.run()()
		time.Sleep(5 * time.Minute)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

// elsewhere is an API server of another cluster: its lists hold other nodes.
type elsewhere struct {
	Kube
	nodes []types.Node
}

func (e elsewhere) FreshNodes(context.Context) ([]types.Node, error) { return e.nodes, nil }

func TestAListWithoutTheOwnNodeOpensNoGate(t *testing.T) {
	for name, nodes := range map[string][]types.Node{
		"of nobody":         nil,
		"of other nodes":    {{Name: "x1", Ready: types.ConditionTrue}},
		"of the peers only": {{Name: "n2", Ready: types.ConditionTrue, Etcd: true}, {Name: "n3", Ready: types.ConditionTrue, Etcd: true}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.via = elsewhere{Kube: s.kube, nodes: nodes}
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Minute)
				s.is(types.DrainStarting, deviceOp)
				s.cordoned(false, false)
				s.phase(types.PhaseGates, "not in the list of nodes")
				if s.kube.Lock().Holder != "" {
					t.Error("the lock was taken")
				}
			})
		})
	}
}
