//go:build linux

package applogs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/rig"
)

const (
	// oneBatch is what an agent that is killed may tell twice, in bytes (docs/wire.md,
	// "App log positions").
	oneBatch = 4096
	// near is how far the times of a mark may be from those of the lines beside it:
	// stdout and stderr overtake each other.
	near = 100 * time.Millisecond
)

// ledger is what is made of all that was told of one container on one device.
type ledger struct {
	lines, again, gaps, marks, runs int
	lost                            int      // gaps where the runtime has nothing either
	spans                           []string // of the marks
	wrongs                          []string
}

func (l *ledger) wrong(format string, args ...any) {
	if len(l.wrongs) < 10 {
		l.wrongs = append(l.wrongs, fmt.Sprintf(format, args...))
	}
}

func (l ledger) String() string {
	return fmt.Sprintf("%d lines of %d runs, %d told again, %d gaps under %d marks %v, %d of the runtime's", l.lines, l.runs, l.again, l.gaps, l.marks, l.spans, l.lost)
}

// judge goes through the lines of one container. stderr is as in devcluster.Prints;
// last is how many lines a run has, 0 for without an end.
func (b *book) judge(of source, stderr, last int) *ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &ledger{marks: len(b.marks[of])}
	for _, m := range b.marks[of] {
		l.spans = append(l.spans, m.from.Format(rig.Clock)+"+"+m.to.Sub(m.from).Round(time.Millisecond).String())
	}
	once := b.once(of, l)
	inOrder(once, stderr, l)
	slices.SortFunc(once, func(x, y telling) int {
		return cmp.Or(x.printed.Compare(y.printed), cmp.Compare(x.n, y.n))
	})
	for i, t := range once {
		before := telling{}
		if i > 0 {
			before = once[i-1]
		}
		switch {
		case i == 0 || t.n <= before.n:
			l.runs++
			if i > 0 && last > 0 && before.n != last {
				b.missing(of, l, before, t)
			}
			if t.n != 1 {
				b.missing(of, l, before, t)
			}
		case t.n != before.n+1:
			b.missing(of, l, before, t)
		}
	}
	return l
}

// once leaves out what was told again, where a kill allows for it.
func (b *book) once(of source, l *ledger) []telling {
	last := map[line]telling{}
	var once []telling
	for _, t := range b.lines[of] {
		was, again := last[t.line]
		last[t.line] = t
		if !again {
			once = append(once, t)
			continue
		}
		allowed := slices.ContainsFunc(b.kills, func(k int64) bool { return was.begin >= k-oneBatch && was.end <= k && t.begin >= k })
		if l.again++; !allowed {
			l.wrong("%v: line %d of %s was told twice", of, t.n, t.printed.Format(rig.Clock))
		}
	}
	l.lines = len(once)
	return once
}

// inOrder: what goes to one stream keeps its order, and its times do not fall.
func inOrder(once []telling, stderr int, l *ledger) {
	before := map[bool]telling{}
	for _, t := range once {
		stream := stderr > 0 && t.n%stderr == 0
		was := before[stream]
		if t.at.Before(was.at) || t.printed.Before(was.printed) || t.printed.Equal(was.printed) && t.n < was.n {
			l.wrong("line %d of %s was told after line %d of %s", t.n, t.at.Format(rig.Clock), was.n, was.at.Format(rig.Clock))
		}
		before[stream] = t
	}
}

// seen notes what the runtime has of a container.
func (b *book) seen(of source, disk map[line]time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.disk[of] == nil {
		b.disk[of] = map[line]bool{}
	}
	for l := range disk {
		b.disk[of][l] = true
	}
}

// neverTaken reports that the runtime has the lines on both sides and none between them: containerd loses what it takes
// from one stream of a container at the instant at which the other one's log is rotated (docs/commands.md, "zedkube logs").
func (b *book) neverTaken(of source, before, after telling) bool {
	disk := b.disk[of]
	if !disk[before.line] || !disk[after.line] || after.n <= before.n {
		return false
	}
	for l := range disk {
		if before.n < l.n && l.n < after.n && !l.printed.Before(before.printed) && !l.printed.After(after.printed) {
			return false
		}
	}
	return true
}

// missing: what is not there stands under a mark.
func (b *book) missing(of source, l *ledger, before, after telling) {
	l.gaps++
	if b.neverTaken(of, before, after) {
		l.lost++
		return
	}
	for _, m := range b.marks[of] {
		if !m.from.After(before.at.Add(near)) && !m.to.Before(after.at.Add(-near)) {
			return
		}
	}
	l.wrong("%v: between line %d of %s and line %d of %s some are missing, and nothing says so; the marks are %v",
		of, before.n, before.at.Format(rig.Clock), after.n, after.at.Format(rig.Clock), b.marks[of])
}

// toldRuns is how many runs of a container are accounted for.
func (b *book) toldRuns(of source, seen int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.marks[of] {
		seen += m.runs
	}
	return seen
}

// known are the lines that were told, and when the runtime took them.
func (b *book) known(of source) map[line]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[line]time.Time{}
	for _, t := range b.lines[of] {
		known[t.line] = t.at
	}
	return known
}

// covers says whether a mark tells of what the runtime took at that time.
func (b *book) covers(of source, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.marks[of], func(m mark) bool { return !m.from.After(at.Add(near)) && !m.to.Before(at.Add(-near)) })
}

// closed says whether a mark tells that from then on nothing more of a pod is to be
// had: what a container prints that outlives its pod, nobody can ask for.
func (b *book) closed(of source, from time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.marks[of], func(m mark) bool {
		return strings.Contains(m.text, "the pod is gone") && !m.from.After(from.Add(near)) && m.to.After(from)
	})
}

// latest is when the runtime took the last line that was told.
func (b *book) latest(of source) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	var last time.Time
	for _, t := range b.lines[of] {
		if t.at.After(last) {
			last = t.at
		}
	}
	return last
}

// count is how many lines of an application were told, marks not among them.
func (b *book) count(a *app) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for of, lines := range b.lines {
		if of.app == a.key() {
			n += len(lines)
		}
	}
	return n
}
