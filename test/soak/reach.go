//go:build linux

package main

import (
	_ "embed" // the table
	"iter"
	"strings"
)

// reach has a line for each effect of the program: the effect, a tab, and the scene that
// reaches its two kill points, or "-" and why none does. The tests of this package compare it
// with the program's list.
//
//go:embed reach.txt
var reach string

// reachable are its lines: an effect, and the scene or why there is none.
func reachable() iter.Seq2[string, string] {
	return func(yield func(effect, by string) bool) {
		for line := range strings.Lines(reach) {
			effect, by, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if !yield(effect, by) {
				return
			}
		}
	}
}

// listed are the effects of the program.
func listed() (effects []string) {
	for effect := range reachable() {
		effects = append(effects, effect)
	}
	return effects
}

// reachedBy are the kill points that a scene reaches.
func reachedBy(scene string) (points []string) {
	for effect, by := range reachable() {
		if by == scene {
			points = append(points, effect+"/before", effect+"/after")
		}
	}
	return points
}
