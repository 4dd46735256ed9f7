package drain

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// stateRank orders the states of one drain.
var stateRank = map[types.DrainStatus]int{
	types.DrainRequested: 1, types.DrainStarting: 2, types.DrainCordoned: 3, types.DrainRetrying: 4,
	types.DrainFailedCordon: 5, types.DrainFailedDrain: 5, types.DrainComplete: 5,
}

// inOrder checks a history: no state of one drain is followed by an earlier
// one, NOTSUPPORTED never comes back, and a requester that is told the end has
// seen a drain under way for two seconds.
func inOrder(history []stamped) error {
	var last types.DrainStatus
	var standing time.Time
	var by types.DrainRequester
	for i, h := range history {
		s := h.v.Status
		switch {
		case i > 0 && s == types.DrainNotSupported:
			return fmt.Errorf("value %d: NOTSUPPORTED again", i)
		case s == types.DrainNotRequested:
		case s == types.DrainRequested && (last == types.DrainNotRequested || failed(last)):
		case stateRank[s] < stateRank[last] || last == types.DrainNotRequested:
			return fmt.Errorf("value %d: %v after %v", i, s, last)
		}
		if underWay(s) && (!underWay(last) || h.v.RequestedBy != by) {
			standing, by = h.at, h.v.RequestedBy
		}
		if final(s) && underWay(last) && (h.v.RequestedBy != by || h.at.Sub(standing) < edge) {
			return fmt.Errorf("value %d: %v told to %v after %s", i, s, h.v.RequestedBy, h.at.Sub(standing))
		}
		last = s
	}
	return nil
}

// countLies counts in n what a drain must not say: COMPLETE of a node that
// takes pods, or has some that did not come in this moment, while the API
// server was not dead; and a new state in the name of somebody who did not ask.
func (s *stage) countLies(n *int) {
	s.status.before = func(is types.NodeDrainStatus) {
		want := nobody
		if _, ok := s.baseos.Get(types.Global); ok {
			want = osUpdate
		}
		if _, ok := s.zedagent.Get(types.Global); ok {
			want = deviceOp
		}
		if is.RequestedBy != want {
			s.t.Errorf("%v for %v, want %v; history %s", is.Status, is.RequestedBy, want, s.status.path())
		}
		api, _ := s.api.Get(types.Global)
		// A write that got no answer had begun before the API server died.
		if is.Status != types.DrainComplete || !api.Answers() && time.Since(s.silent) >= defaultSkipSilence-callTimeout {
			return
		}
		if own, _ := s.nodes.Get("n1"); !own.Unschedulable {
			*n++
		}
		for _, p := range s.pods.All() {
			if p.Owner.Kind != "DaemonSet" && time.Since(p.Created) > 100*time.Millisecond {
				*n++
			}
		}
	}
}

// dies lets the API server be silent. Where it answered for less than muteFor that is the same silence.
func (s *stage) dies(f kubetest.Fault) {
	if !s.dead && (s.silent.IsZero() || time.Since(s.answered) > muteFor) {
		s.silent = time.Now()
	}
	s.dead = true
	s.kube.SetFault(f)
}

func (s *stage) lives() {
	if s.dead {
		s.answered = time.Now()
	}
	s.dead = false
	s.kube.SetFault(kubetest.None)
}

// events is what may happen to a drain.
func (s *stage) events(random *rand.Rand, restart func()) []func() {
	return []func(){
		func() { s.request(&s.zedagent, deviceOp) },
		func() { s.request(&s.baseos, osUpdate) },
		func() { s.request(&s.zedagent, deviceOp) },
		func() { _ = s.zedagent.Unpublish(types.Global) },
		func() { _ = s.baseos.Unpublish(types.Global) },
		func() { s.kube.Block(appZero, true) },
		func() { s.kube.Block(appZero, false) },
		func() { s.dies(kubetest.Hung) },
		func() { s.dies(kubetest.Refused) },
		s.lives,
		func() { s.kube.SetLatency(2 * time.Second) },
		func() { s.kube.SetLatency(0) },
		func() { s.kube.FailVerb("cordon", types.ErrRefused) },
		func() { s.kube.FailVerb("cordon", nil) },
		func() { s.kube.FailVerb("uncordon", types.ErrRefused) },
		func() { s.kube.FailVerb("uncordon", nil) },
		func() { _ = s.info.Unpublish(types.Global) },
		func() { _ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"}) },
		func() { s.peers(types.ConditionUnknown); time.Sleep(20 * time.Second); s.peers(types.ConditionTrue) },
		restart,
		s.schedulable,
		func() {
			p := types.Pod{
				Namespace: "a", Name: fmt.Sprint(random.Uint64()), UID: fmt.Sprint(random.Uint64()), NodeName: "n1", Created: time.Now(),
			}
			_ = s.pods.Publish(p.Key(), p)
		},
	}
}

func TestWhateverComesTheDrainKeepsItsWord(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Each(t, 100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			story(t, 5, func(s *stage) {
				random := rand.New(rand.NewPCG(seed, 1))
				lies := 0
				s.countLies(&lies)
				stop := s.run()
				defer func() { stop() }()
				events := s.events(random, func() { stop(); stop = s.run() })
				pauses := []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute, 4 * time.Minute}
				for range 60 {
					events[random.IntN(len(events))]()
					synctest.Wait() // what follows is news to the next step, not to the one that runs
					time.Sleep(pauses[random.IntN(len(pauses))] + time.Duration(random.IntN(1000)))
				}
				_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
				s.kube.FailVerb("uncordon", nil)
				s.kube.SetFault(kubetest.None)
				s.kube.SetLatency(0)
				_, _ = s.zedagent.Unpublish(types.Global), s.baseos.Unpublish(types.Global)
				time.Sleep(time.Minute)
				s.cordoned(false, false)
				if lies > 0 {
					t.Errorf("%d lies; history %s", lies, s.status.path())
				}
				if err := inOrder(s.status.seen); err != nil {
					t.Errorf("%v; history %s", err, s.status.path())
				}
			})
		})
	}
}
