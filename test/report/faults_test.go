//go:build linux

package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/seeds"
)

// deal returns every fault in turn, in an order of its own each time around.
func deal(rng *rand.Rand) func() devcluster.Fault {
	all := []devcluster.Fault{
		devcluster.Refused, devcluster.Hung, devcluster.Hung, devcluster.Status(500), devcluster.Status(429), "503=0.3", "429=0.5",
		devcluster.Slow(2 * time.Second), devcluster.Expired, "500,only=get", "403,only=get+watch", "reset=2000",
	}
	var mu sync.Mutex
	next := len(all)
	return func() devcluster.Fault {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			next = 0
		}
		next++
		return all[next-1]
	}
}

// sources are the resources that a report is made of.
var sources = []string{
	"nodes", "pods", "virtualmachineinstances", "persistentvolumeclaims", "volumes", "engines", "replicas", "snapshots", "daemonsets",
	"services", "ingresses",
}

// lacking is how long some lists fail in each round, with room for what reports may
// go on telling as new to become too old.
const lacking = bound + slack + 7*time.Second

// reigns is how long one who reports for the cluster does so at most without an
// answer, until another may (docs/wire.md, "Lease").
const reigns = 25 * time.Second

// trouble has the API servers fail and agents die for so long, half of the time in
// rounds in which nothing happens but that some lists fail, and else with the one that reports out of reach at first; then all
// is well.
func (s *stage) trouble(t *testing.T, rng *rand.Rand, r *reader, long time.Duration) {
	next := deal(seeds.Split(rng))
	for over := time.Now().Add(long); time.Now().Before(over) && t.Context().Err() == nil; {
		s.lack(t, rng)
		ctx, stop := context.WithTimeout(t.Context(), lacking)
		var working sync.WaitGroup
		hung := s.reporting(r)
		for i := range s.Cluster.Nodes {
			own := seeds.Split(rng)
			working.Go(func() {
				switch {
				case i == hung:
					s.fault(ctx, t, own, i, devcluster.Hung, reigns+slack)
				case i == heir(hung):
					s.fault(ctx, t, own, i, devcluster.Slow(200*time.Millisecond), reigns+slack)
				}
				s.faults(ctx, t, own, i, next)
			})
		}
		own := seeds.Split(rng)
		working.Go(func() { s.deaths(ctx, t, own, r, hung) })
		working.Wait()
		stop()
	}
}

// lack has some lists fail on every node, others on each.
func (s *stage) lack(t *testing.T, rng *rand.Rand) {
	for i := range s.Cluster.Nodes {
		rng.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		fault := devcluster.Fault(pick(rng, []string{"500", "403", "429"}) + ",of=" + strings.Join(sources[:4], "+"))
		s.Event(s.Name(i), "fault", string(fault))
		if err := s.Cluster.SetNodeFault(i, fault); err != nil {
			t.Error(err)
		}
		s.Cluster.CutWatches(i)
	}
	pause(t.Context(), lacking)
	for i := range s.Cluster.Nodes {
		s.Event(s.Name(i), "fault", "none")
		if err := s.Cluster.SetNodeFault(i, devcluster.None); err != nil {
			t.Error(err)
		}
	}
}

// faults come and go on one node.
func (s *stage) faults(ctx context.Context, t *testing.T, rng *rand.Rand, i int, next func() devcluster.Fault) {
	for ctx.Err() == nil {
		fault := next()
		long := time.Duration(3+rng.IntN(8)) * time.Second
		if fault == devcluster.Hung {
			long = time.Duration(15+rng.IntN(25)) * time.Second // longer than it goes unnoticed
		}
		s.fault(ctx, t, rng, i, fault, long)
		pause(ctx, time.Duration(1+rng.IntN(8))*time.Second)
	}
}

// fault is one, for so long. Watches end with every other one.
func (s *stage) fault(ctx context.Context, t *testing.T, rng *rand.Rand, i int, fault devcluster.Fault, long time.Duration) {
	s.Event(s.Name(i), "fault", fmt.Sprintf("%s for %s", fault, long))
	if err := s.Cluster.SetNodeFault(i, fault); err != nil {
		t.Error(err)
	}
	if rng.IntN(2) == 0 {
		s.Cluster.CutWatches(i)
	}
	pause(ctx, long)
	s.Event(s.Name(i), "fault", "none")
	if err := s.Cluster.SetNodeFault(i, devcluster.None); err != nil {
		t.Error(err)
	}
}

// heir is the node that nothing keeps from reporting after another.
func heir(of int) int { return (of + 1) % 3 }

// reporting is the node that reports, the first where none does.
func (s *stage) reporting(r *reader) int {
	for i, m := range s.Fleet.Members {
		if report, _ := r.current(m.Name, clusterTopic); report != nil {
			return i
		}
	}
	return 0
}

// deaths ends agents, mostly the one that reports, one way or another, and starts
// them again. The hung one is left alone, and its heir until it reports. All of
// them run when it is over.
func (s *stage) deaths(ctx context.Context, t *testing.T, rng *rand.Rand, r *reader, hung int) {
	for pause(ctx, time.Duration(4+rng.IntN(8))*time.Second) {
		i := s.reporting(r)
		if i == hung || rng.IntN(4) == 0 {
			i = heir(heir(hung))
		}
		m := s.Fleet.Members[i]
		if rng.IntN(2) == 0 {
			s.Event(m.Name, "death", "killed")
			m.KillProgram()
		} else {
			s.Event(m.Name, "death", "told to end")
			m.StopProgram()
		}
		r.agent(m.Name, false)
		pause(ctx, time.Duration(rng.IntN(6)*rng.IntN(6))*time.Second)
		r.agent(m.Name, true)
		if err := m.StartProgram(); err != nil {
			t.Error(err)
		}
		s.Event(m.Name, "death", "started again")
	}
}
