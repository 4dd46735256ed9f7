package history

import (
	"slices"
	"time"
)

// oneReport judges who publishes a report, whatever it says of itself: what an agent that is
// down has left on its disk counts for nothing until it is up again.
func oneReport(v *verdict, events []Event) {
	c, reports, long := newCluster(), map[string]bool{}, newStreaks()
	back, restored := newRevived(), map[string]time.Duration{} // as of the node's last term
	for _, e := range events {
		c.see(e)
		if e.Kind == Leader && e.On {
			restored[e.Node] = back.at(e.Node, e.At)
		}
		back.see(e)
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
		two := len(by) > 1
		for _, node := range by { // as with the terms: until the Lease of the former one would have run out
			two = two && (restored[node] == 0 || e.At >= restored[node]+leaseDuration+v.Late)
		}
		if slices.Sort(by); long.tooLong("reports", two, e.At, v.Late) {
			v.wrong(e.At, e.Node, "reports are published by %v for more than %s", by, v.Late)
		}
	}
}
