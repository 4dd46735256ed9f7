package drain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// upheavals is what may happen around a drain: to its Node, its lock, its disk,
// its settings, and by people.
func (s *stage) upheavals(random *rand.Rand) []func() {
	own, _ := s.nodes.Get("n1")
	again := func() {
		if _, ok := s.nodes.Get("n1"); !ok {
			own.UID = fmt.Sprint(random.Uint64())
			_ = s.nodes.Publish("n1", own)
		}
	}
	change := func(f func(*types.Node)) func() {
		return func() {
			if _, ok := s.nodes.Get("n1"); ok {
				s.kube.ChangeNode("n1", f)
			}
		}
	}
	return []func(){
		func() { _ = s.nodes.Unpublish("n1") }, again, again,
		func() {
			if s.kube.Lock().Holder == "" {
				s.held("n2")
			}
		},
		s.unlocked, s.unlocked,
		func() { s.request(&s.operator, nobody) },
		func() { _ = s.operator.Unpublish(types.Global) },
		func() { s.journal.full.Store(true) },
		func() { s.journal.full.Store(false) },
		func() { s.node("n3", types.ConditionUnknown) },
		func() { s.node("n3", types.ConditionTrue) },
		func() { s.hours(uint32(1 + random.IntN(2))) },
		func() { s.kube.LoseAnswer([]string{"cordon", "uncordon", "setlock", "freelock"}[random.IntN(4)]) },
		func() { s.write(s.force, fmt.Sprintf(`{"Status":%d}`, random.IntN(10))) },
		func() { _ = os.Remove(s.force); s.files.Ring() },
		change(func(n *types.Node) { n.CordonKept = n.CordonedBy != nil && n.Unschedulable }),
		change(func(n *types.Node) { n.Unschedulable, n.CordonedBy = false, nil }),
	}
}

// unlocked takes the lock from n2 that does not need it any more.
func (s *stage) unlocked() {
	if s.kube.Lock().Holder == "n2" {
		s.kube.SetLock(types.DrainLock{})
	}
}

// neverUnlocked checks that no drain gets complete without cordon and lock, but
// for the ends that say that they are. What is said again later, when a mask is
// taken off, was true at the end.
func (s *stage) neverUnlocked(is types.NodeDrainStatus) {
	p, _ := s.progress.Get(types.Global)
	excused := func(why string) bool { return strings.Contains(p.Reason, why) }
	if is.Status != types.DrainComplete || excused("has not answered for") || excused("not in the cluster's list") || excused("forced") || time.Since(p.Ended) > edge {
		return
	}
	if n, _ := s.nodes.Get("n1"); !n.Unschedulable || s.kube.Lock().Holder != "n1" {
		s.t.Errorf("complete, cordoned: %v, lock: %+v; %s; history %s", n.Unschedulable, s.kube.Lock(), p.Reason, s.status.path())
	}
}

func TestWhateverHappensAroundItTheDrainGivesTheNodeBack(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Each(t, 60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			story(t, 3, func(s *stage) {
				random := rand.New(rand.NewPCG(seed, 2))
				s.status.before = s.neverUnlocked
				stop := s.run()
				defer func() { stop() }()
				events := append(s.events(random, func() { stop(); stop = s.run() }), s.upheavals(random)...)
				pauses := []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute, 4 * time.Minute}
				for range 80 {
					events[random.IntN(len(events))]()
					synctest.Wait()
					time.Sleep(pauses[random.IntN(len(pauses))] + time.Duration(random.IntN(1000)))
				}
				s.calm()
				time.Sleep(3 * time.Minute)
				if n, _ := s.nodes.Get("n1"); n.Unschedulable && !n.CordonKept || s.kube.Lock().Holder != "" {
					t.Errorf("%+v, lock %+v; history %s", n, s.kube.Lock(), s.status.path())
				}
				s.request(&s.zedagent, deviceOp) // and the next drain is as any other
				time.Sleep(30 * time.Second)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

// calm ends every trouble and withdraws every request.
func (s *stage) calm() {
	_ = os.Remove(s.force)
	s.files.Ring()
	s.journal.full.Store(false)
	s.kube.SetFault(kubetest.None)
	s.kube.SetLatency(0)
	s.kube.FailVerb("cordon", nil)
	s.kube.FailVerb("uncordon", nil)
	s.kube.Block(appZero, false)
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	s.peers(types.ConditionTrue)
	if _, ok := s.nodes.Get("n1"); !ok {
		s.node("n1", types.ConditionTrue)
	}
	s.unlocked()
	_, _, _ = s.zedagent.Unpublish(types.Global), s.baseos.Unpublish(types.Global), s.operator.Unpublish(types.Global)
}
