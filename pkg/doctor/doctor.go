// Package doctor examines the preconditions of a healthy node. It judges what it
// finds in files, on sockets and at the API server; what cannot be known is unknown,
// not bad.
package doctor

import (
	"context"
	"time"
)

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown"
)

// Finding is what one check found.
type Finding struct {
	Check    string  `json:"check"`
	Verdict  Verdict `json:"verdict"`
	Evidence string  `json:"evidence"` // a sentence
	Remedy   string  `json:"remedy,omitempty"`
}

// Check is one precondition.
type Check struct {
	Name string
	What string // the precondition, a sentence
	Look func(ctx context.Context) Finding
}

// Patience is how long one check may take.
const Patience = 2 * time.Second
