package audit

import (
	"cmp"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// What a line says at most, in bytes. An error may quote a whole answer.
const (
	opText     = 64
	targetText = 512
	byText     = 128
	fromText   = 256
	whyText    = 1024
	errorText  = 1024
)

const maxChains = 1024 // bounds what is remembered of operations: more than a node has pods

type operationKey struct{ component, op, target string }

func keyOf(o types.Operation) operationKey { return operationKey{o.Component, o.Op, o.Target} }

// chain is the last time that something was done, and what was tried again just
// so since. It is counted and not rewritten each time: a drain may try the
// same eviction for days, and what was done before has to stay. What went well
// is counted only where nothing else was done to its target in between: who
// cordoned a node last has to be seen.
type chain struct {
	is      types.Operation // with the outcome, once ended
	ended   bool
	first   time.Time // of the tries; these are of the monotonic clock
	last    time.Time
	written time.Time
	behind  bool // is counts more than was written
}

// due is when a count that is behind is to be written.
func (l *chain) due() time.Time { return nextCount(l.first, l.written) }

// Begin implements types.OperationLog.
func (r *Record) Begin(o types.Operation) func(types.OperationOutcome, error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.complete(o, now)
	l := r.last[keyOf(o)]
	countRepeat := l != nil && l.countRepeat(o, now) && (l.is.Outcome != types.OperationOK || r.latest[o.Target] == l)
	if countRepeat {
		r.latest[o.Target] = l
	} else {
		l = r.follow(o, now)
		r.put(o)
	}
	done := false
	return func(outcome types.OperationOutcome, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if done {
			return
		}
		done = true
		ended := o
		ended.Outcome, ended.Took = outcome, max(time.Since(now), 1)
		if err != nil {
			ended.Error = text(err.Error(), errorText)
		}
		r.end(l, ended, countRepeat)
	}
}

// end notes that an operation, which repeats that of l or is it, ended so. It is
// called with mu held.
func (r *Record) end(l *chain, o types.Operation, countRepeat bool) {
	now := time.Now()
	present := r.last[keyOf(o)] == l
	counts := o.Outcome != types.OperationOK || r.latest[o.Target] == l
	switch {
	case countRepeat && present && counts && l.is.Outcome == o.Outcome && l.is.Error == o.Error:
		l.is.Times, l.is.Last, l.is.Took = max(1, l.is.Times)+1, o.At, o.Took
		l.last, l.behind = now, true
		if !l.due().After(now) {
			r.writeCount(l, now)
		}
		return
	case countRepeat && present: // it ended otherwise, for once
		l = r.follow(o, now)
	}
	l.is, l.ended, l.last, l.written = o, true, now, now
	r.put(o)
}

// countRepeat reports that o is tried again.
func (l *chain) countRepeat(o types.Operation, now time.Time) bool {
	w := l.is
	return l.ended && now.Sub(l.last) < within && w.By == o.By && w.From == o.From && w.Why == o.Why && w.Node == o.Node
}

// follow makes o the last of its kind. It is called with mu held.
func (r *Record) follow(o types.Operation, now time.Time) *chain {
	if old := r.last[keyOf(o)]; old != nil && old.behind {
		r.writeCount(old, now)
	}
	if len(r.last) >= maxChains {
		r.forget(now, 0)
	}
	if r.last == nil {
		r.last, r.latest = map[operationKey]*chain{}, map[string]*chain{}
	}
	l := &chain{is: o, first: now, last: now, written: now}
	r.last[keyOf(o)], r.latest[o.Target] = l, l
	return l
}

func (r *Record) writeCount(l *chain, now time.Time) {
	l.behind, l.written = false, now
	r.put(l.is)
}

func (r *Record) writeCounts(all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, l := range r.last {
		if l.behind && (all || !l.due().After(now)) {
			r.writeCount(l, now)
		}
	}
}

// forget forgets what was last done so long ago, and what it still had to say it
// writes. It is called with mu held.
func (r *Record) forget(now time.Time, after time.Duration) {
	for of, l := range r.last {
		if now.Sub(l.last) < after || !l.ended && after > 0 {
			continue
		}
		if l.behind {
			r.writeCount(l, now)
		}
		delete(r.last, of)
		if r.latest[of.target] == l {
			delete(r.latest, of.target)
		}
	}
}

// complete fills in what the record knows by itself. It is called with mu held.
func (r *Record) complete(o types.Operation, now time.Time) types.Operation {
	if r.source == "" {
		r.source = strings.ToLower(rand.Text()[:10])
	}
	r.count++
	o.ID = cmp.Or(o.ID, r.source+"-"+strconv.Itoa(r.count))
	if o.At.IsZero() {
		o.At = now
	}
	o.At = o.At.UTC().Round(time.Millisecond)
	if o.Node == "" {
		if info, ok := r.Info.Get(types.Global); ok {
			o.Node = info.NodeName()
		}
	}
	o.Op, o.Target, o.By, o.Why = text(o.Op, opText), text(o.Target, targetText), text(o.By, byText), text(o.Why, whyText)
	o.From = text(cmp.Or(o.From, r.From), fromText)
	return o
}

// text is s within its bound.
func text(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
