package types

import (
	"slices"
	"time"
)

// What more than one component judges is judged once. Here: certificates, who
// cordoned a node, clocks. The quorum of etcd is judged in node.go, and whether a
// device is proved to be off in reach.go.

// CertificateState is how a certificate is at a moment. The words are reasons in
// KubeNodeConditions (docs/wire.md).
type CertificateState string

// The states.
const (
	CertificateNotBegun    CertificateState = "NotBegun" // mostly a clock that has not been set after a boot
	CertificateExpired     CertificateState = "Ended"
	CertificateNotTrusted  CertificateState = "NotTrusted"
	CertificateExpiresSoon CertificateState = "EndsSoon"
	CertificateValid       CertificateState = "InForce"
)

// certificateWarning is how long before it expires that is reported: time for an
// operator to restart k3s, which renews those that expire within months.
const certificateWarning = 14 * 24 * time.Hour

// State judges the certificate.
func (c Certificate) State(now time.Time) CertificateState {
	left := c.NotAfter.Sub(now)
	switch {
	case now.Before(c.NotBefore):
		return CertificateNotBegun
	case left <= 0:
		return CertificateExpired
	case c.Unusable != "":
		return CertificateNotTrusted
	case left <= certificateWarning:
		return CertificateExpiresSoon
	}
	return CertificateValid
}

// Who cordoned a Node. The tie-breaker is cordoned for good, by any of them.
const (
	CordonedByZedkube  = "zedkube"
	CordonedKept       = "kept"     // by zedkube, and an operator keeps it so
	CordonedByOperator = "operator" // or another client of the API server
	CordonedDisabled   = "workloads disabled"
)

// Cordoner is who cordoned the Node, "" where it is schedulable.
func (n Node) Cordoner() string {
	switch {
	case !n.Unschedulable:
		return ""
	case n.CordonedBy == nil:
		return CordonedByOperator
	case n.CordonedBy.Kind == CordonWorkloads:
		return CordonedDisabled
	case n.CordonKept:
		return CordonedKept
	}
	return CordonedByZedkube
}

// LongCordon is longer than a drain and a reboot take as a rule.
const LongCordon = 24 * time.Hour

// How far clocks may be from each other that are read to some seconds.
const (
	clockDoubtful = 5 * time.Second  // more than the reading can be off
	clockApart    = 30 * time.Second // more, and what nodes tell one another by their clocks is wrong; far beyond what a busy node is late
)

// JudgeClock judges a clock that is ahead of the own one, or behind.
func JudgeClock(ahead time.Duration) Severity {
	switch {
	case ahead.Abs() > clockApart:
		return SeverityBad
	case ahead.Abs() > clockDoubtful:
		return SeverityWarn
	}
	return SeverityOK
}

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
	Anchor   string    // the heading that explains it, in docs/operations.md, runbook.md or files.md; "" for none
}

// Of is the finding about a subject, "" for this node, since a time, zero for
// unknown.
func (f Finding) Of(subject string, since time.Time) Finding {
	f.Subject, f.Since = subject, since
	return f
}
