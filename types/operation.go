package types

import (
	"context"
	"time"
)

// Operation is one thing that zedkube did, or tried, to the cluster or to the
// device: who asked for it, why, and what came of it (docs/wire.md, "Audit").
type Operation struct {
	ID        string           `json:"id"`
	At        time.Time        `json:"at"` // when it began, by the device's clock
	Node      string           `json:"node,omitempty"`
	Component string           `json:"component,omitempty"`
	Op        string           `json:"op"`               // the verb: cordon, evict, delete pod, ...
	Target    string           `json:"target,omitempty"` // kind/name or kind/namespace/name; file/path
	By        string           `json:"by,omitempty"`     // who asked: a requester of EVE, OPERATOR, a setting, a component
	From      string           `json:"from,omitempty"`   // which user asked, and from where, as the kernel tells; only for what a command asked
	Why       string           `json:"why,omitempty"`
	Outcome   OperationOutcome `json:"outcome,omitempty"`
	Took      time.Duration    `json:"took,omitempty"` // ns
	Error     string           `json:"error,omitempty"`
	Times     int              `json:"times,omitempty"` // how often it was tried, where that is more than once and each try ended so
	Last      time.Time        `json:"last,omitzero"`   // when it was tried for the last time, then
}

// OperationOutcome is how an operation ended.
type OperationOutcome string

// The outcomes.
const (
	OperationBegun      OperationOutcome = ""           // it is not known how it ended: it is under way, or the agent was killed
	OperationOK         OperationOutcome = "ok"         // done
	OperationRefused    OperationOutcome = "refused"    // the API server, or someone who was faster, said no
	OperationFailed     OperationOutcome = "failed"     // not done
	OperationUnanswered OperationOutcome = "unanswered" // it may have been done, or may yet be
)

// OperationLog records operations. Begin notes one that begins; its ID and At
// are filled in. The caller calls end once.
type OperationLog interface {
	Begin(o Operation) (end func(OperationOutcome, error))
}

// NoOperations records nothing.
type NoOperations struct{}

// Begin implements OperationLog.
func (NoOperations) Begin(Operation) func(OperationOutcome, error) {
	return func(OperationOutcome, error) {}
}

// Did records what was done a moment ago, or failed with err: op and target, and
// what ctx says of who acted and why.
func Did(ctx context.Context, log OperationLog, op, target string, err error) {
	o := Acting(ctx)
	o.Op, o.Target = op, target
	if err != nil {
		log.Begin(o)(OperationFailed, err)
		return
	}
	log.Begin(o)(OperationOK, nil)
}

// actor is what a context says of who acts and why.
type actor struct{ component, by, from, why string }

// actorKey is the key of the actor in a context.
type actorKey struct{}

func actorOf(ctx context.Context) actor {
	a, _ := ctx.Value(actorKey{}).(actor)
	return a
}

// ActAs notes in a context which component acts.
func ActAs(ctx context.Context, component string) context.Context {
	a := actorOf(ctx)
	a.component = component
	return context.WithValue(ctx, actorKey{}, a)
}

// Because notes in a context who asked for what is done under it, and why, a
// sentence or a part of one.
func Because(ctx context.Context, by, why string) context.Context {
	a := actorOf(ctx)
	a.by, a.why = by, why
	return context.WithValue(ctx, actorKey{}, a)
}

// AskedFrom notes in a context which user asked, as the kernel tells.
func AskedFrom(ctx context.Context, from string) context.Context {
	a := actorOf(ctx)
	a.from = from
	return context.WithValue(ctx, actorKey{}, a)
}

// Acting is what a context says of an operation under it: Component, By, From and Why.
// Where nobody else is named, the component asked.
func Acting(ctx context.Context) Operation {
	a := actorOf(ctx)
	if a.by == "" {
		a.by = a.component
	}
	return Operation{Component: a.component, By: a.by, From: a.from, Why: a.why}
}
