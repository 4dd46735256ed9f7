package joinplan

import (
	"cmp"
	"slices"
	"time"
)

const (
	// etcd complains in its log about peers that are further apart.
	clockFine = time.Second
	// Beyond this a node that lives looks dead to others, by the times that it
	// writes.
	clockBad = 20 * time.Second
	// Two clocks of one machine cannot differ; what they tell may, by the
	// seconds they are rounded to.
	clockDoubt = 3 * time.Second
)

// clock is how far apart the clocks are.
func clock(all *findings, p Peer) {
	if len(p.Clocks) == 0 {
		all.add("clock", Unknown, "", "The clock of %s could not be read.", p.Address)
		return
	}
	best := slices.MinFunc(p.Clocks, func(a, b Clock) int { return cmp.Compare(a.Within, b.Within) })
	for _, c := range p.Clocks {
		if apart := (c.Ahead - best.Ahead).Abs() - c.Within - best.Within; apart > clockDoubt {
			all.add("clock", Warn, "check the clock there", "%s and %s of %s tell times that are %s apart: one of them is wrong.", upper(best.Source), c.Source, p.Address, apart.Round(time.Second))
			return
		}
	}
	side := "behind"
	if best.Ahead < 0 {
		side = "ahead of"
	}
	skew := best.Ahead.Abs()
	sure := skew - best.Within // at least so much
	const remedy = "set the clocks: is NTP configured, and does it answer?"
	switch {
	case sure > clockBad:
		all.add("clock", Blocks, remedy, "The clock of this device is %s %s that of %s: certificates would not be valid yet, or proofs be refused, and nodes look dead to each other.", length(skew), side, p.Address)
	case sure > clockFine:
		all.add("clock", Warn, remedy, "The clock of this device is %s %s that of %s: etcd complains beyond 1s.", length(skew), side, p.Address)
	default:
		all.add("clock", OK, "", "The clocks of this device and %s agree within %s.", p.Address, (max(skew, best.Within) + 99*time.Millisecond).Truncate(100*time.Millisecond))
	}
}

// length is a time for people.
func length(d time.Duration) string {
	switch {
	case d > 10*365*24*time.Hour:
		return "over 10 years"
	case d > 10*time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
