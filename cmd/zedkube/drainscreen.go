package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// style is how a line looks where there is colour.
type style string

// The styles of a line.
const (
	plain  style = ""
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// screen collects lines that fit a width. Texts have to be clean.
type screen struct {
	width  int
	colour bool
	lines  []string
}

// labelWidth is the column in which the values of fields begin.
const labelWidth = 14

// put adds a text, broken to the width, at an indent; more lines of it hang by
// two columns.
func (s *screen) put(indent int, look style, text string) {
	s.hang(strings.Repeat(" ", indent), indent+2, look, text)
}

// field adds a labelled value.
func (s *screen) field(label string, look style, text string) {
	s.hang(fmt.Sprintf("  %-*s", labelWidth-2, label), labelWidth, look, text)
}

// hang adds a text after a head; more lines of it begin at the indent.
func (s *screen) hang(head string, indent int, look style, text string) {
	for i, line := range wrapped(text, max(s.width-1-indent, 16)) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		line = strings.TrimRight(head+line, " ")
		if s.colour && look != plain {
			line = "\x1b[" + string(look) + "m" + line + "\x1b[0m"
		}
		s.lines = append(s.lines, line)
	}
}

// gap adds an empty line.
func (s *screen) gap() { s.lines = append(s.lines, "") }

// shownItems bounds each list of the screen.
const shownItems = 50

// drainLines is the record as a screen.
func drainLines(r drainRecord, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	putHead(s, r)
	if p := r.Progress; p != nil {
		putCourse(s, r, *p)
		putHolders(s, r, *p)
	}
	putTold(s, r)
	if p := r.Progress; p != nil {
		putBlockers(s, r, *p)
		putVolumes(s, r, *p)
		putStranded(s, *p)
	}
	if len(r.Advice) > 0 {
		s.gap()
		s.put(0, bold, "What you can do")
		for _, a := range r.Advice {
			s.put(2, plain, a.Command)
			s.put(6, plain, a.Why)
		}
	}
	return s.lines
}

// putHead says what the drain does, or that nobody knows.
func putHead(s *screen, r drainRecord) {
	of := "Drain of " + cmp.Or(clean(r.Node), "this node") + ": "
	switch {
	case r.Progress == nil && r.Status == nil:
		s.put(0, red, of+"there is no record of one")
	case r.Progress == nil:
		s.put(0, yellow, of+"only NodeDrainStatus tells; there is no NodeDrainProgress")
	default:
		look, text := phaseText(*r.Progress)
		s.put(0, look, of+text)
	}
	if !r.Agent.Runs {
		s.field("agent", red, "does NOT run: "+clean(r.Agent.Why)+". What follows is what it last said"+written(r)+".")
	}
	for _, problem := range r.Problems {
		s.field("unreadable", red, clean(problem))
	}
}

func written(r drainRecord) string {
	if r.WrittenAt.IsZero() {
		return ""
	}
	return ", " + stamp(r.WrittenAt, r.ReadAt)
}

// phaseText is a phase in words.
func phaseText(p types.NodeDrainProgress) (style, string) {
	attempt := ""
	if p.Attempt > 0 {
		attempt = fmt.Sprintf(", attempt %d of %d", p.Attempt, p.Attempts)
	}
	switch {
	case p.Left:
		return green, "this node has left its cluster"
	case p.Phase == types.PhaseIdle:
		return green, "Idle, no drain"
	case p.Phase == types.PhaseGates:
		return yellow, "Gates, waits for its turn; nothing is evicted yet"
	case p.Phase == types.PhaseEmptying:
		return yellow, "Emptying, cordoned, the pods are leaving" + attempt
	case p.Phase == types.PhaseComplete:
		return green, "Complete, the device may go down"
	case p.Phase == types.PhaseNoCordon:
		return red, "NoCordon, FAILED: the node could not be cordoned"
	case p.Phase == types.PhaseNotEmpty:
		return red, "NotEmpty, FAILED: the deadline has passed" + attempt
	}
	return red, "in a phase that this command does not know: " + clean(string(p.Phase))
}

// putCourse is the drain in time and numbers.
func putCourse(s *screen, r drainRecord, p types.NodeDrainProgress) {
	now := r.ReadAt
	if p.Reason != "" {
		s.field("why", plain, clean(p.Reason))
	}
	if !p.Since.IsZero() {
		s.field("since", plain, stamp(p.Since, now))
	}
	if len(p.Requesters) > 0 {
		s.field("asked by", plain, listed(p.Requesters))
	}
	if !p.Started.IsZero() && p.Phase != types.PhaseIdle {
		s.field("started", plain, stamp(p.Started, now))
	}
	switch {
	case !p.Ended.IsZero() && !r.underWay():
		s.field("ended", plain, stamp(p.Ended, now))
	case !p.Deadline.IsZero() && r.underWay() && p.Deadline.Before(now):
		s.field("deadline", red, stamp(p.Deadline, now)+", has passed")
	case !p.Deadline.IsZero() && r.underWay():
		s.field("deadline", plain, stamp(p.Deadline, now))
	}
	if p.Pods != (types.DrainPods{}) {
		s.field("pods", plain, bar(p.Pods.Evicted, p.Pods.Total, min(30, s.width-labelWidth-4))+" "+podsText(p.Pods))
	}
}

// podsText is how many of a drain's pods are gone, and what the others do.
func podsText(p types.DrainPods) string {
	return fmt.Sprintf("%d of %d gone, %d terminating, %d waiting", p.Evicted, p.Total, p.Terminating, p.Waiting)
}

// listed joins names, at most shownItems of them.
func listed(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == shownItems:
			fmt.Fprintf(&b, ", and %d more", len(names)-i)
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(clean(name))
	}
	return b.String()
}

// putHolders is who holds the lock, the quorum and the cordon.
func putHolders(s *screen, r drainRecord, p types.NodeDrainProgress) {
	lock := p.Lock
	label := "lock"
	if text := lockText(lock, r.ReadAt); text != "" {
		s.field(label, plain, text)
		label = ""
	}
	switch {
	case lock.Waits != "" && lock.Mine: // an agent that knows no lock may be draining as well
		s.field(label, yellow, "but "+clean(lock.Waits))
	case lock.Waits != "":
		s.field(label, yellow, "not given to us: "+clean(lock.Waits))
	}
	if p.Quorum != "" {
		s.field("quorum", yellow, clean(p.Quorum))
	}
	cordon := map[string]string{
		"":            "",
		"zedkube":     "by zedkube, for this drain; undone by itself",
		"operator":    "by somebody else; zedkube leaves it alone",
		"tie-breaker": "a tie-breaker stays cordoned",
		"kept":        "kept for the operator, until the next drain begins or ends",
	}
	if text, known := cordon[p.Cordon]; !known {
		s.field("cordon", plain, clean(p.Cordon))
	} else if text != "" {
		s.field("cordon", plain, text)
	}
	putWarnings(s, p.Warnings)
}

// putWarnings are what holds nothing up and is to be known.
func putWarnings(s *screen, list []string) {
	for _, w := range list {
		s.field("warning", yellow, clean(w))
	}
}

func lockText(lock types.DrainLockView, now time.Time) string {
	holder := clean(lock.Holder)
	switch {
	case lock.Mine:
		holder = "held by this node"
	case lock.Holder == "":
		return ""
	default:
		holder = "held by " + holder
	}
	if lock.Since.IsZero() {
		return holder
	}
	return holder + " since " + stamp(lock.Since, now)
}

// putTold is what EVE's agents are told.
func putTold(s *screen, r drainRecord) {
	if r.Status == nil {
		return
	}
	by := clean(r.Status.RequestedBy.String())
	s.field("EVE is told", plain, fmt.Sprintf("%d %s, for %s", r.Status.Status, clean(r.Status.Status.String()), by))
	if r.Forced {
		s.field("force file", yellow, "is there: it decides what EVE is told")
	}
}
