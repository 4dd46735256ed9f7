package kubeapi

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/test/seeds"
)

// truth fails the test as soon as somebody says that it leads whose name is not
// in the Lease: two who do cannot both be in it.
type truth struct {
	t     *testing.T
	seed  uint64
	nodes []*contender
	s     *leaseServer
}

// judge is called with the server's lock held.
func (tr *truth) judge(holder string) {
	for _, n := range tr.nodes {
		if _, leads, _ := n.word.last(); leads && n.name != holder {
			tr.t.Errorf("seed %d: %s says that it leads while the Lease is %q's", tr.seed, n.name, holder)
		}
	}
}

// hears lets a node say what it says, and judges it.
func (tr *truth) hears(w *word) func(string, bool) {
	return func(leader string, leads bool) {
		w.set(leader, leads)
		tr.s.mu.Lock()
		defer tr.s.mu.Unlock()
		tr.judge(tr.s.holderOf(leases.StatsLease))
	}
}

// befall lets one thing happen to a node.
func befall(t *testing.T, rng *rand.Rand, tr *truth, n *contender) {
	l := n.link
	seconds := func(most int) time.Duration { return time.Duration(rng.IntN(most*1000)) * time.Millisecond }
	switch rng.IntN(12) {
	case 0:
		l.set(func() { l.cut = true })
	case 1:
		l.set(func() { l.stuck = true })
	case 2:
		l.set(func() { l.deaf = true })
	case 3:
		l.set(func() { l.late = seconds(12) })
	case 4:
		l.set(func() { l.slow = seconds(12) })
	case 5:
		l.set(func() { l.ahead = seconds(1000*3600) - 500*time.Hour })
	case 6:
		l.set(func() { l.blind = !l.blind })
	case 7:
		_ = n.stop()
		time.Sleep(seconds(3))
		n.run(t, tr.hears(n.word))
	default:
		l.set(func() { l.heal() })
	}
}

func TestThereAreNeverTwoLeadersAndOneWhenAllIsWell(t *testing.T) {
	for seed := range seeds.Each(t, 8) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			tr := &truth{t: t, seed: seed, s: newLeaseServer()}
			tr.s.onWrite = func(_, holder string) { tr.judge(holder) }
			for _, name := range []string{"n1", "n2", "n3"} {
				n := &contender{name: name, word: &word{}}
				n.c, n.link, _ = seat(t, tr.s)
				tr.nodes = append(tr.nodes, n)
			}
			for _, n := range tr.nodes {
				n.run(t, tr.hears(n.word))
			}
			for range 5 {
				for range 50 {
					befall(t, rng, tr, tr.nodes[rng.IntN(len(tr.nodes))])
					time.Sleep(time.Duration(rng.IntN(15000)) * time.Millisecond)
				}
				for _, n := range tr.nodes {
					n.link.set(n.link.heal)
				}
				time.Sleep(time.Minute)
				lease, _ := tr.s.get(leases.StatsLease)
				for _, n := range tr.nodes {
					n.word.is(t, fmt.Sprintf("seed %d: %s when all is well", seed, n.name), leases.Holder(lease), n.name == leases.Holder(lease))
				}
				if leases.Holder(lease) == "" {
					t.Errorf("seed %d: nobody leads when all is well", seed)
				}
			}
		})
	}
}
