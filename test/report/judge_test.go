//go:build linux

package report

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

const (
	// bound is how long a report may go on being told as new that is not, at
	// worst: a silence that nobody has noticed yet (docs/wire.md,
	// "KubeReportHealth").
	bound = 30 * time.Second
	// slack is how late this test may hear of a change, and how far two files that
	// are written one after the other may be apart.
	slack = 3 * time.Second
	// handover is how late it may hear that a report was withdrawn.
	handover = time.Second
)

// sighting is a report that stood in a file of a living agent for some time.
type sighting struct {
	node  string
	topic string
	span
	sections []string // that it tells
	facts    map[thing]string
	bytes    []byte
}

// opinion is a KubeReportHealth that stood there.
type opinion struct {
	node string
	span
	types.KubeReportHealth
}

// belief is what a node says of one of its sections, for some time; said is false
// while it says nothing of it.
type belief struct {
	span
	types.ReportSection
	said bool
}

// beliefs are those of a node on a section within a stretch of time.
func beliefs(all []opinion, node, section string, within span, now time.Time) []belief {
	var found []belief
	at, end := within.from, within.ends(now)
	for _, o := range all {
		if o.node != node || !o.ends(now).After(at) || !o.from.Before(end) {
			continue
		}
		if o.from.After(at) {
			found = append(found, belief{span: span{at, o.from}})
			at = o.from
		}
		b := belief{span: span{at, earlier(o.ends(now), end)}}
		b.ReportSection, b.said = saidOf(o.Sections, section)
		found = append(found, b)
		at = b.to
	}
	if at.Before(end) {
		found = append(found, belief{span: span{at, end}})
	}
	return found
}

// saidOf is what is said of a section. The bytes of volumes come from snapshots,
// and from volumes too.
func saidOf(all []types.ReportSection, name string) (said types.ReportSection, ok bool) {
	said, ok = find(all, name)
	volumes, _ := find(all, types.SectionStorage)
	if name == types.SectionAllocated && !volumes.StaleSince.IsZero() &&
		(said.StaleSince.IsZero() || volumes.StaleSince.Before(said.StaleSince)) {
		said.StaleSince = volumes.StaleSince
	}
	return said, ok
}

func find(all []types.ReportSection, name string) (types.ReportSection, bool) {
	for _, s := range all {
		if s.Name == name {
			return s, true
		}
	}
	return types.ReportSection{}, false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// lies are what reports said that had not been true within its stated age.
func lies(h *history, reports []sighting, opinions []opinion, now time.Time) []string {
	var found []string
	for _, r := range reports {
		for _, section := range r.sections {
			for _, b := range beliefs(opinions, r.node, section, r.span, now) {
				switch {
				case b.said:
					found = append(found, liesOf(h, r, section, b, now)...)
				case b.to.Sub(b.from) > slack: // two files are not written at once
					found = append(found, fmt.Sprintf("%s tells %s and says nothing of its health, %s", r.node, section, b.span))
				}
			}
		}
	}
	return found
}

// liesOf are those of one section while a node believes one thing of it.
func liesOf(h *history, r sighting, section string, b belief, now time.Time) []string {
	var found []string
	told := map[thing]bool{}
	for t := range r.facts {
		told[t] = t.section == section
	}
	for t := range h.all {
		if _, ok := told[t]; !ok {
			told[t] = t.section == section
		}
	}
	for t, is := range told {
		value := r.facts[t]
		if !is || !b.Known && (value == gone || section == types.SectionAllocated) {
			continue // what it has never seen it may leave out
		}
		if left := untrue(h.past(t)[value], b, now); left != nil {
			found = append(found, fmt.Sprintf("%s told %s, %s, that %s is %q (known %t, stale since %s), which it was %v",
				r.node, left, section, t.name, value, b.Known, b.StaleSince.Format(rig.Clock), h.past(t)[value]))
		}
	}
	slices.Sort(found)
	return found
}

// untrue returns the first stretch of what a node says in which no moment of its
// stated age was in any of the spans in which it was true; nil if there is none.
func untrue(when []span, b belief, now time.Time) *span {
	at := b.from
	for _, s := range when { // by time
		began, over := s.from.Add(-slack), s.ends(now).Add(bound+slack)
		if s.to.IsZero() {
			over = b.to
		}
		if !b.StaleSince.IsZero() {
			if s.ends(now).Before(b.StaleSince.Add(-bound - slack)) {
				continue
			}
			over = b.to // it says how old it is
		}
		if began.After(at) {
			break
		}
		if over.After(at) {
			at = over
		}
	}
	if at.Before(b.to) {
		return &span{at, b.to}
	}
	return nil
}

// overlaps are the reports on the cluster that two nodes made at a time.
func overlaps(reports []sighting, now time.Time) []string {
	var found []string
	for i, a := range reports {
		for _, b := range reports[:i] {
			if a.node == b.node || a.topic != b.topic {
				continue
			}
			from, to := a.from, earlier(a.ends(now), b.ends(now))
			if b.from.After(from) {
				from = b.from
			}
			if to.Sub(from) > handover {
				found = append(found, fmt.Sprintf("%s and %s both tell %s, %s", a.node, b.node, a.topic, span{from, to}))
			}
		}
	}
	return found
}

// repeats are the reports that were written again and said nothing new.
func repeats(reports []sighting) []string {
	var found []string
	last := map[[2]string]sighting{}
	for _, r := range reports {
		key := [2]string{r.node, r.topic}
		before, ok := last[key]
		if ok && before.to.Equal(r.from) && bytes.Equal(before.bytes, r.bytes) {
			found = append(found, fmt.Sprintf("%s wrote the same %s again at %s", r.node, r.topic, r.from.Format(rig.Clock)))
		}
		last[key] = r
	}
	return found
}

func (s span) String() string {
	if s.to.IsZero() {
		return "from " + s.from.Format(rig.Clock) + " on"
	}
	return s.from.Format(rig.Clock) + " to " + s.to.Format(rig.Clock)
}

// differs says how what is told differs from what is, "" for not at all.
func differs(facts, present map[thing]string, sections ...string) string {
	var found []string
	for t, is := range present {
		if slices.Contains(sections, t.section) && facts[t] != is {
			found = append(found, fmt.Sprintf("%s %s is %q and is told as %q", t.section, t.name, is, facts[t]))
		}
	}
	for t, told := range facts {
		if slices.Contains(sections, t.section) && present[t] == gone {
			found = append(found, fmt.Sprintf("%s %s is not there and is told as %q", t.section, t.name, told))
		}
	}
	slices.Sort(found)
	if len(found) > 5 {
		found = append(found[:5], fmt.Sprintf("and %d more", len(found)-5))
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("%d differences: %q", len(found), found)
}
