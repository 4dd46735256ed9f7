package history

import (
	"maps"
	"slices"
)

// oneReport judges who publishes a report, whatever it says of itself: an agent that is
// down has left its report on its disk, which counts for nothing.
func oneReport(v *verdict, events []Event) {
	c, reports, long := newCluster(), map[string]bool{}, newStreaks()
	for _, e := range events {
		c.see(e)
		if e.Kind == Reports && e.On && c.up[e.Node] {
			v.checked++
			reports[e.Node] = true
		} else if e.Kind == Reports || !c.up[e.Node] {
			delete(reports, e.Node)
		}
		if long.tooLong("reports", len(reports) > 1, e.At, v.Late) {
			v.wrong(e.At, e.Node, "reports are published by %v for more than %s", slices.Sorted(maps.Keys(reports)), v.Late)
		}
	}
}
