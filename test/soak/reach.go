//go:build linux

package main

import (
	_ "embed" // the table
	"strings"
)

// reach has a line for each effect of the program: the effect, a tab, and the scene that
// reaches its two kill points, or "-" and why none does. The tests of this package compare it
// with the program's list.
//
//go:embed reach.txt
var reach string

// listed are the effects of the program.
func listed() (effects []string) {
	for line := range strings.Lines(reach) {
		effect, _, _ := strings.Cut(line, "\t")
		effects = append(effects, effect)
	}
	return effects
}

// reachedBy are the kill points that a scene reaches.
func reachedBy(scene string) (points []string) {
	for line := range strings.Lines(reach) {
		if effect, by, _ := strings.Cut(strings.TrimSpace(line), "\t"); by == scene {
			points = append(points, effect+"/before", effect+"/after")
		}
	}
	return points
}
