package auditcmd

import (
	"time"

	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// document is what programs get. What begins with a small letter is what it was before, of which
// took is in nanoseconds.
type document struct {
	Items    []audited
	Problems struct { // in the files: lines that are no operation, and such that were never written
		Torn int `json:",omitzero"`
		Lost int `json:",omitzero"`
	} `json:",omitzero"`
	Remarks []string `json:",omitempty"`

	OldItems    []types.Operation `json:"operations"`
	OldProblems audit.Problems    `json:"problems,omitzero"`
	OldRemarks  []string          `json:"remarks,omitempty"`
}

// audited is an operation in the style of all documents.
type audited struct {
	ID          string
	At          time.Time
	Node        string `json:",omitzero"`
	Component   string `json:",omitzero"`
	Op          string
	Target      string                 `json:",omitzero"`
	By          string                 `json:",omitzero"`
	From        string                 `json:",omitzero"`
	Why         string                 `json:",omitzero"`
	Outcome     types.OperationOutcome `json:",omitzero"`
	TookSeconds float64                `json:",omitzero"`
	Error       string                 `json:",omitzero"`
	Times       int                    `json:",omitzero"`
	Last        time.Time              `json:",omitzero"`
}

func auditedOf(o types.Operation) audited {
	return audited{o.ID, o.At, o.Node, o.Component, o.Op, o.Target, o.By, o.From, o.Why, o.Outcome, o.Took.Seconds(), o.Error, o.Times, o.Last}
}

func documentOf(l auditLook) document {
	d := document{Items: make([]audited, 0, len(l.Operations)), Remarks: l.Remarks, OldItems: l.Operations, OldProblems: l.Problems, OldRemarks: l.Remarks}
	d.Problems.Torn, d.Problems.Lost = l.Problems.Torn, l.Problems.Lost
	for _, o := range l.Operations {
		d.Items = append(d.Items, auditedOf(o))
	}
	return d
}

// operation is one that is new or has changed, with the names of before.
func operation(o types.Operation) any {
	type before = types.Operation
	return struct {
		audited
		before
	}{auditedOf(o), o}
}
