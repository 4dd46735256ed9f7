// Package joinplan says what would become of a node that joins a cluster, or
// leaves it: sentences, made of facts that someone else has gathered. It asks
// nobody and changes nothing.
package joinplan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what a finding means for the plan.
type Verdict string

// The verdicts, from the best to the worst.
const (
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // it could not be told, and the sentence says why
	Warn    Verdict = "warn"
	Blocks  Verdict = "blocks"
)

// rank orders verdicts, the worst last.
func (v Verdict) rank() int {
	return slices.Index([]Verdict{OK, Unknown, Warn, Blocks}, v)
}

// Finding is one thing that was looked at.
type Finding struct {
	Check   string // a word for it: address, cluster, ports, clock, ...
	Verdict Verdict
	What    string // a sentence
	Remedy  string // what to do; "" for nothing
}

// findings collects them.
type findings []Finding

func (f *findings) add(check string, v Verdict, remedy, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Verdict: v, What: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Plan is what would become of a join.
type Plan struct {
	Role     Role
	Made     time.Time
	Node     string // of the candidate; "" for unknown
	Address  string // of the candidate in the cluster's network; "" for unknown
	Cluster  string // UUID; "" for unknown
	Peers    []string
	Verdict  Verdict
	Summary  string    // a sentence
	Findings []Finding // the worst first
}

// sum is the worst of the findings, and how many there are of each kind.
func sum(all []Finding) (worst Verdict, counts map[Verdict]int) {
	worst, counts = OK, map[Verdict]int{}
	for _, f := range all {
		counts[f.Verdict]++
		if f.Verdict.rank() > worst.rank() {
			worst = f.Verdict
		}
	}
	return worst, counts
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// and lists things in a sentence.
func and[T any](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
