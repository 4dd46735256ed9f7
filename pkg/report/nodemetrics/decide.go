package nodemetrics

import (
	"time"

	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/types"
)

const (
	// often is while someone watches. While nobody does it is seldom, and on a node with more
	// than manyPods rarely: a look at 100 pods costs this process some 20 ms, and the kubelet
	// more (docs/performance.md, "Measurements of pods").
	often    = 5 * time.Second
	seldom   = 30 * time.Second
	rarely   = time.Minute
	manyPods = 100
	// tellEvery is how often they are published while nobody watches.
	tellEvery = time.Minute
	// maxOften and maxSeldom are how far apart the looks become that fail.
	maxOften  = 20 * time.Second
	maxSeldom = 5 * time.Minute
	// unknownFor is until a look whether the own node is known by now.
	unknownFor = 10 * time.Second
)

// answer is what came of one look.
type answer struct {
	node       string
	watched    bool // when it began
	stats      types.KubeletStats
	containers map[types.ContainerID]types.ContainerSample
	err        error // of stats
	partial    error // of containers
}

// facts is everything decide may look at.
type facts struct {
	now     time.Time     // the wall clock, to be shown only
	uptime  time.Duration // what everything is measured with
	node    types.Node
	known   bool // the own node is
	looks   map[string]types.MetricsLook
	lookers samples.Lookers
	kept    types.KubeNodeMetrics // all samples; zero for nothing
	told    *time.Duration        // when the look began that was published last, nil for none
	asked   *time.Duration        // when the last look began, nil for never
	asking  bool                  // one is under way
	fails   int                   // looks that failed in a row
	answer  *answer               // of the look that has ended, nil for none
}

// action is everything decide may ask for.
type action struct {
	lookers samples.Lookers
	fails   int
	ask     bool
	watched bool
	keep    *types.KubeNodeMetrics // nil: nothing new
	publish *types.KubeNodeMetrics // what of it is published; nil for nothing now
	again   time.Duration
}

// decide says when to look, and what is known.
func decide(f facts) action {
	a := action{lookers: f.lookers.Now(f.looks, f.uptime), fails: f.fails}
	a.watched = a.lookers.Watch(f.uptime)
	pods := len(f.kept.Pods)
	if f.answer != nil {
		if f.answer.err == nil {
			a.fails = 0
		} else {
			a.fails++
		}
		kept := result(f, *f.answer)
		a.keep, pods = &kept, len(kept.Pods)
		if f.answer.watched || f.told == nil || f.asked != nil && *f.asked-*f.told >= tellEvery || kept.Stale != f.kept.Stale {
			published := brief(kept, f.answer.watched)
			a.publish = &published
		}
	}
	switch {
	case f.asking:
		a.again = seldom
	case !f.known || f.node.InternalIP == "":
		a.again = unknownFor
	case f.asked == nil:
		a.ask, a.again = true, seldom
	default:
		a.again = *f.asked + pause(a.watched, a.fails, pods) - f.uptime
		if a.again <= 0 {
			a.ask, a.again = true, seldom
		}
	}
	return a
}

// pause is how long after the beginning of a look at so many pods the next one is due.
func pause(watched bool, fails, pods int) time.Duration {
	fails = min(fails, 8) // so that nothing overflows
	switch {
	case watched:
		return min(often<<fails, maxOften)
	case fails > 0:
		return min(rarely<<(fails-1), maxSeldom)
	case pods > manyPods:
		return rarely
	}
	return seldom
}

// result is what is known after a look.
func result(f facts, a answer) types.KubeNodeMetrics {
	node := f.node
	node.Name = a.node
	out := samples.Next(f.kept, node, a.stats, a.containers, a.err, f.now)
	out.Every = tellEvery
	if a.watched {
		out.Every = often
	}
	return out
}
