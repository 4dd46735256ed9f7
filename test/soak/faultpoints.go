//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/types"
)

// sent are the requests that agents send in each state of a drain, a verb and a resource
// each. NOTREQUESTED is after the join, while nodes are reported and one of them is
// elected, and the return from a drain.
var sent = []struct {
	phase    types.DrainStatus
	requests string
}{
	{types.DrainNotRequested, "get nodes, patch nodes, delete leases, update leases, get leases, watch nodes, watch pods, get configmaps"},
	{types.DrainRequested, "get leases, create leases, get nodes, create events"},
	{types.DrainStarting, "get leases, create leases, get nodes, patch nodes, create events"},
	{types.DrainCordoned, "get pods, create eviction, get nodes, patch nodes, create events, watch pods"},
	{types.DrainRetrying, "get pods, create eviction, get nodes, patch nodes, create events, watch pods"},
	{types.DrainComplete, "get nodes, patch nodes, create events, watch nodes"},
}

// answers are what may become of such a request. After reset=0 it was carried out, and
// nobody is told.
var answers = []devcluster.Fault{"403", "409", "429", "500", "503", "reset=0", devcluster.Expired, devcluster.Stalled}

// whole are what all requests of a node meet.
var whole = []devcluster.Fault{devcluster.Refused, devcluster.Hung, devcluster.Slow(2 * time.Second)}

// faultPoint is a request, the fault that it meets, and what the drain is doing.
type faultPoint struct {
	request string // a verb and a resource; "all requests"
	kind    devcluster.Fault
	phase   types.DrainStatus
}

func (p faultPoint) String() string { return fmt.Sprintf("%s %s %s", p.request, p.kind, p.phase) }

// fault is what the node's way to the API server is given for it.
func (p faultPoint) fault() devcluster.Fault {
	verb, resource, limited := strings.Cut(p.request, " ")
	if !limited || verb == "all" {
		return p.kind
	}
	return devcluster.Fault(fmt.Sprintf("%s,only=%s,of=%s", p.kind, verb, resource))
}

// faultPoints are all of them.
func faultPoints() (all []faultPoint) {
	for _, s := range sent {
		for request := range strings.SplitSeq(s.requests, ", ") {
			for _, kind := range answers {
				if kind != devcluster.Expired && kind != devcluster.Stalled || strings.HasPrefix(request, "watch ") {
					all = append(all, faultPoint{request, kind, s.phase})
				}
			}
		}
		for _, kind := range whole {
			all = append(all, faultPoint{"all requests", kind, s.phase})
		}
	}
	return all
}

func faultNames() (names []string) {
	for _, p := range faultPoints() {
		names = append(names, p.String())
	}
	return names
}

// faulty lets three devices drain again and again, as drains does, while what their agents
// ask of the API server meets one fault after the other, the one that was hit least first.
func faulty(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	most, end := 150, time.Now().Add(faultsFor)
	if r.Short {
		most = 30
	}
	x := &drainRun{Stage: s, more: func() bool { return s.faults() < most && time.Now().Before(end) }}
	during, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var failed [8]error
	for i := range s.Fleet.Members {
		p := &faulting{drainRun: x, i: i, rng: r.Rand(uint64(100 + i)), missed: map[faultPoint]int{}}
		all.Go(func() { failed[i] = p.giveFaults(during) })
	}
	err = x.run(ctx)
	stop()
	all.Wait()
	return errors.Join(append(failed[:], err)...)
}

// faults is how many there were so far.
func (r *Run) faults() (n int) {
	r.count(func(c *Counts) { n = total(c.Faults) })
	return n
}

// faulting gives the API server of one node faults.
type faulting struct {
	*drainRun
	i      int
	rng    *rand.Rand
	missed map[faultPoint]int // those that no request met in time
}

const (
	faultsFor = 10 * time.Minute // a run of some states alone takes long for its faults
	soonMet   = 5 * time.Second  // for which a fault waits for a request
)

func (p *faulting) giveFaults(ctx context.Context) error {
	m := p.Fleet.Members[p.i]
	for ctx.Err() == nil && p.goesOn() {
		is, _ := m.Watch.Drain.Get(types.Global)
		point, ok := p.choose(is.Status)
		if !ok {
			wait(ctx, 20*time.Millisecond)
			continue
		}
		met, err := p.meets(ctx, point)
		if err != nil {
			return err
		}
		if met {
			p.Faulted(point.String())
		} else {
			p.missed[point]++
		}
		wait(ctx, soon(p.rng, 2*time.Second))
	}
	return nil
}

// meets gives the node's API server that fault for a moment. It reports whether the agent met it.
func (p *faulting) meets(ctx context.Context, point faultPoint) (met bool, err error) {
	m := p.Fleet.Members[p.i]
	p.History.Add(history.Event{Kind: history.Fault, Node: m.Name, Text: point.fault().String()})
	before := p.Cluster.NodeTraffic(p.i)
	if err := p.Cluster.SetNodeFault(p.i, point.fault()); err != nil {
		return false, err
	}
	if strings.HasPrefix(point.request, "watch ") {
		p.Cluster.CutWatches(p.i)
	}
	seen := func(is func(now devcluster.Traffic) bool) {
		for end := time.Now().Add(soonMet); !met && ctx.Err() == nil && time.Now().Before(end); wait(ctx, 10*time.Millisecond) {
			met = is(p.Cluster.NodeTraffic(p.i))
		}
	}
	switch point.kind {
	case devcluster.Refused: // its connections are gone, and nobody sees its attempts
	case devcluster.Hung: // what it sends is held up
		seen(func(now devcluster.Traffic) bool { return now.Sent > before.Sent })
	case devcluster.Slow(2 * time.Second):
		seen(func(now devcluster.Traffic) bool { return now.Requests > before.Requests })
	default:
		seen(func(now devcluster.Traffic) bool { return now.Faulted > before.Faulted })
	}
	wait(ctx, soon(p.rng, time.Second)) // the agent tries again
	p.History.Add(history.Event{Kind: history.Fault, Node: m.Name, Text: devcluster.None.String()})
	if err := p.Cluster.SetNodeFault(p.i, devcluster.None); err != nil {
		return false, err
	}
	if point.kind == devcluster.Refused { // who lost its connections makes others
		seen(func(now devcluster.Traffic) bool { return now.Connections > before.Connections })
	}
	return met, nil
}

// choose is one of the fault points of a state, of those that were hit least one that was missed least.
// It is none where all of that state were hit often enough and some of others were not: a drain that
// waits for its turn does so for long, and would have nearly all faults.
func (p *faulting) choose(phase types.DrainStatus) (best faultPoint, found bool) {
	all := faultPoints()
	p.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	least, often, others := 0, false, false
	p.count(func(c *Counts) {
		for _, point := range all {
			hit := p.Earlier.Faults[point.String()] + c.Faults[point.String()]
			switch n := 2*hit + p.missed[point]; {
			case point.phase != phase:
				others = others || hit < enough
			case !found || n < least:
				best, least, often, found = point, n, hit >= enough, true
			}
		}
	})
	return best, found && !(often && others)
}
