//go:build linux

package report

import (
	"fmt"
	"time"

	"github.com/zedkube/zedkube/test/rig"
)

// oldest is the greatest age of anything that was told as up to date.
func oldest(h *history, reports []sighting, opinions []opinion, now time.Time) (age time.Duration, what string) {
	for _, r := range reports {
		for t, value := range r.facts {
			for _, b := range beliefs(opinions, r.node, t.section, r.span, now) {
				if !b.said || !b.StaleSince.IsZero() {
					continue
				}
				if a := ageAt(h.past(t)[value], b.to, now); a > age {
					age, what = a, fmt.Sprintf("%s of %s at %s", t.name, r.node, b.to.Format(rig.Clock))
				}
			}
		}
	}
	return age, what
}

// ageAt is how long ago a value was last true.
func ageAt(when []span, at, now time.Time) time.Duration {
	age := time.Duration(-1)
	for _, s := range when {
		if s.from.Add(-slack).After(at) {
			continue
		}
		a := max(0, at.Sub(s.ends(now)))
		if age < 0 || a < age {
			age = a
		}
	}
	return max(0, age)
}
