//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestAPointThatEarlierRunsDidNotHitIsTriedFromTheFirstStart(t *testing.T) {
	all := reachedBy("killpoints")
	slices.Sort(all)
	earlier := map[string]int{}
	for _, point := range all[2:] {
		earlier[point] = enough
	}
	earlier[all[1]] = enough - 1
	r := &Run{Earlier: Counts{Kills: earlier}, counts: newCounts()}
	k := &killing{drainRun: &drainRun{Stage: &Stage{Run: r}}}
	if got := k.lacking(nil); !slices.Equal(got, all[:2]) {
		t.Errorf("%q", got)
	}
	if got := k.lacking(all[:1]); !slices.Equal(got, all[1:2]) {
		t.Errorf("one that was passed is chosen by how often it was hit: %q", got)
	}
	r.Killed(all[1])
	if got := k.lacking(nil); !slices.Equal(got, all[:1]) {
		t.Errorf("one that was hit often enough by now: %q", got)
	}
	r.Earlier = newCounts()
	if got := k.lacking(nil); len(got) > 0 {
		t.Errorf("before the first run: %q", got)
	}
}

func TestAStateWhoseFaultsWereAllMetLeavesTheRestToOthers(t *testing.T) {
	hits := func(others int) map[string]int {
		all := map[string]int{}
		for _, point := range faultPoints() {
			if all[point.String()] = others; point.phase == types.DrainStarting {
				all[point.String()] = enough
			}
		}
		return all
	}
	for name, row := range map[string]struct {
		others          int
		starting, other bool
	}{
		"others lack hits":       {enough - 1, false, true},
		"all were hit so often":  {enough, true, true},
		"others were more often": {enough + 1, true, true},
	} {
		r := &Run{Earlier: Counts{Faults: hits(row.others)}, counts: newCounts()}
		p := &faulting{drainRun: &drainRun{Stage: &Stage{Run: r}}, rng: rand.New(rand.NewPCG(1, 1)), missed: map[faultPoint]int{}}
		if _, found := p.choose(types.DrainStarting); found != row.starting {
			t.Errorf("%s: one is found for a drain that waits for its turn: %t", name, found)
		}
		if _, found := p.choose(types.DrainCordoned); found != row.other {
			t.Errorf("%s: one is found for a drain that evicts: %t", name, found)
		}
	}
}
