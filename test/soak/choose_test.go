//go:build linux

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/zedkube/zedkube/types"
)

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
