package types

import (
	"slices"
	"time"
)

// Severity is how bad a finding is.
type Severity string

// The severities, from the best to the worst.
const (
	SeverityOK      Severity = "ok"
	SeverityUnknown Severity = "unknown" // it could not be looked at, or does not apply
	SeverityWarn    Severity = "warn"    // it works, but not for long, or not as it should
	SeverityBad     Severity = "bad"     // something does not work, or data is at stake
)

// Rank orders severities, the worst highest.
func (s Severity) Rank() int {
	return slices.Index([]Severity{SeverityOK, SeverityUnknown, SeverityWarn, SeverityBad}, s)
}

// Word is the severity in the words of a command that has its own for bad: a
// check fails, and a finding blocks a plan.
func (s Severity) Word(bad string) string {
	if s == SeverityBad {
		return bad
	}
	return string(s)
}

// Finding is what one rule finds about one subject. In JSON it has the names
// that `zedkube status` gives to problems. Texts are as their writers left them:
// the command or page that shows them cleans or escapes them.
type Finding struct {
	Rule     string `json:"Name"` // its name, for programs
	Severity Severity
	Subject  string    `json:"About,omitzero"` // the application, node, volume or file; "" for this node
	Evidence string    `json:"What"`           // a sentence
	Since    time.Time `json:",omitzero"`      // zero for unknown
	Remedy   string    // what somebody may do, a sentence or a command; "" for nothing
	Anchor   string    // the heading in docs/operations.md; "" for none
}

// Of is the finding about a subject, "" for this node, since a time, zero for
// unknown.
func (f Finding) Of(subject string, since time.Time) Finding {
	f.Subject, f.Since = subject, since
	return f
}
