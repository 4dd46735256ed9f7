package history

import "slices"

// oneReport judges who publishes a report, whatever it says of itself: what an agent that is
// down has left on its disk counts for nothing until it is up again.
func oneReport(v *verdict, events []Event) {
	c, reports, long := newCluster(), map[string]bool{}, newStreaks()
	for _, e := range events {
		c.see(e)
		if e.Kind == Reports {
			v.checked++
			reports[e.Node] = e.On
		}
		var by []string
		for node, is := range reports {
			if is && c.up[node] {
				by = append(by, node)
			}
		}
		if slices.Sort(by); long.tooLong("reports", len(by) > 1, e.At, v.Late) {
			v.wrong(e.At, e.Node, "reports are published by %v for more than %s", by, v.Late)
		}
	}
}
