package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Bounds say how long something may take. They are for a busy machine; what
// takes longer is wrong on any.
type Bounds struct {
	Explains time.Duration // a drain ends, or says why not
	Runs     time.Duration // an application that can run does so again
	Settles  time.Duration // two nodes differ on who has an application
	Late     time.Duration // how late a change is heard of at worst
	Clocks   bool          // the agents' clocks are right: what they write counts
}

// Usual are the bounds of a run without anything special.
func Usual() Bounds {
	return Bounds{Explains: time.Minute, Runs: 2 * time.Minute, Settles: 20 * time.Second, Late: 5 * time.Second, Clocks: true}
}

// Rule is one thing that always holds.
type Rule struct {
	Name  string // what the report calls it
	Says  string
	judge func(*verdict, []Event)
}

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		{"complete", "never COMPLETE while a pod, a volume or the quorum needs the node", complete},
		{"order", "the states of a drain come in their order, and none that nobody asked for", order},
		{"one at a time", "never two nodes between cordon and return, unless both are alone", oneAtATime},
		{"locked", "a node that we have cordoned holds the lock", locked},
		{"one reporter", "never two nodes that report for the cluster", oneReporter},
		{"one copy", "no application is claimed or run twice, no volume attached twice", oneCopy},
		{"evicts", "no pod is evicted but by the agent of its own node, while a drain of that is asked for", evicts},
		{"cordons", "no cordon of ours is left behind, and none of others is removed or taken over", cordons},
		{"explained", "every drain ends or says why not within its bound", explained},
		{"runs again", "every application that can run does so again within its bound", runsAgain},
		{"waited for", "no reboot goes ahead without its drain", waitedFor},
		{"no crash", "no agent ends by itself, panics or races", noCrash},
	}
}

// Violation is a rule that was broken.
type Violation struct {
	At   time.Duration
	Rule string
	Node string
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("%.3f s, %s: %s [%s]", v.At.Seconds(), v.Node, v.Text, v.Rule)
}

// verdict is the judgement of one rule.
type verdict struct {
	Bounds
	rule    string
	checked int
	found   []Violation
}

func (v *verdict) wrong(at time.Duration, node, format string, args ...any) {
	v.found = append(v.found, Violation{at, v.rule, node, fmt.Sprintf(format, args...)})
}

// Check judges a history by all rules. checked counts, for each rule, how often
// there was something to judge.
func Check(events []Event, b Bounds) (found []Violation, checked map[string]int) {
	checked = map[string]int{}
	for _, r := range Rules() {
		v := &verdict{Bounds: b, rule: r.Name}
		r.judge(v, events)
		found = append(found, v.found...)
		checked[r.Name] = v.checked
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return found, checked
}

// streaks remembers since when something is so that may be so only for some time.
type streaks struct {
	since map[string]time.Duration
	told  map[string]bool
}

func newStreaks() streaks { return streaks{map[string]time.Duration{}, map[string]bool{}} }

// tooLong reports, once, that what has been so for longer than the limit.
func (s streaks) tooLong(what string, is bool, at, limit time.Duration) bool {
	if !is {
		delete(s.since, what)
		delete(s.told, what)
		return false
	}
	if _, known := s.since[what]; !known {
		s.since[what] = at
	}
	if at-s.since[what] <= limit || s.told[what] {
		return false
	}
	s.told[what] = true
	return true
}
