package pubsub

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Reader is a table that can be looked at and that rings when it changes.
// What it hands out is shared: readers do not change it.
type Reader[T any] interface {
	// Get returns the row under key.
	Get(key string) (T, bool)
	// All returns the table as it is now; what changes afterwards is not in it.
	All() map[string]T
	// Notify makes every change ring bell from now on. A bell is a channel of
	// capacity 1; one that rings already is left alone.
	Notify(bell chan<- struct{})
}

// Source is a Reader that depends on someone else's word.
type Source[T any] interface {
	Reader[T]
	// Synced reports that the table has held a complete snapshot of its publisher
	// since start. Until then a missing row means "not known yet", not
	// "withdrawn". Ask it before Get: in between the table may become whole.
	Synced() bool
}

// Writer is the one place that may change a table. It can read what it wrote.
type Writer[T any] interface {
	Reader[T]
	// Publish stores v under key. An unchanged row writes nothing and rings
	// nothing. The caller does not change v afterwards.
	Publish(key string, v T) error
	// Unpublish removes the row under key; removing nothing is not an error.
	Unpublish(key string) error
}

// Table is a Writer in memory only. Its zero value is an empty table.
type Table[T any] struct {
	mu             sync.Mutex
	rows           map[string]T
	lent           bool // someone looks at this very map: it no longer changes
	bells          Bells
	picks          []*Pick[T]
	pendingChanges []*News[T]
}

// Get implements Reader.
func (t *Table[T]) Get(key string) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.rows[key]
	return v, ok
}

// All implements Reader.
func (t *Table[T]) All() map[string]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lent = true
	return t.rows
}

// Notify implements Reader.
func (t *Table[T]) Notify(bell chan<- struct{}) { t.bells.Notify(bell) }

// Publish implements Writer; it never fails.
func (t *Table[T]) Publish(key string, v T) error {
	if old, ok := t.Get(key); !ok || !reflect.DeepEqual(old, v) {
		t.set(key, v)
	}
	return nil
}

// Unpublish implements Writer; it never fails.
func (t *Table[T]) Unpublish(key string) error {
	t.remove(key)
	return nil
}

// Synced implements Source: a table in memory is always whole.
func (t *Table[T]) Synced() bool { return true }

// set stores v under key and rings, whatever was there.
func (t *Table[T]) set(key string, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own()
	t.rows[key] = v
	for _, p := range t.picks {
		p.changed(key, v)
	}
	t.note(key)
}

// remove removes the row under key and rings if there was one.
func (t *Table[T]) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.rows[key]; !ok {
		return
	}
	t.own()
	delete(t.rows, key)
	for _, p := range t.picks {
		p.rows.remove(key)
	}
	t.note(key)
}

// note makes a change of key known. Called with mu held.
func (t *Table[T]) note(key string) {
	t.noted(key)
	t.bells.Ring()
}

// noted is note without the bell.
func (t *Table[T]) noted(key string) {
	for _, n := range t.pendingChanges {
		n.keys[key] = struct{}{}
	}
}

// replace puts other rows in the place of all, and rings nothing.
func (t *Table[T]) replace(rows map[string]T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows, t.lent = rows, false
}

// own makes rows a map that can be changed. Called with mu held.
func (t *Table[T]) own() {
	switch {
	case t.rows == nil:
		t.rows = map[string]T{}
	case t.lent:
		t.rows = maps.Clone(t.rows)
	}
	t.lent = false
}

// wake rings without a change.
func (t *Table[T]) wake() { t.bells.Ring() }

// News is what has changed in a table since it was last asked for, for a reader
// that keeps a picture of a table of thousands. Its zero value is ready; one
// goroutine asks it.
type News[T any] struct {
	keys map[string]struct{} // that have changed; nil while nobody asks; guarded by the table
	last map[string]T        // of a Reader that is no Table
}

// Of returns the rows of from, always the same table, that have changed since
// the call before, and the keys of those that are gone. The first time, and
// after Drop, it is all rows.
func (n *News[T]) Of(from Reader[T]) (rows map[string]T, gone []string) {
	t, ok := from.(*Table[T])
	if !ok {
		return n.compared(from.All())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.keys == nil {
		n.keys = map[string]struct{}{}
		t.pendingChanges = append(t.pendingChanges, n)
		t.lent = true
		return t.rows, nil
	}
	rows = map[string]T{}
	for key := range n.keys {
		if row, ok := t.rows[key]; ok {
			rows[key] = row
		} else {
			gone = append(gone, key)
		}
	}
	clear(n.keys)
	return rows, gone
}

// compared takes all rows for changed.
func (n *News[T]) compared(rows map[string]T) (_ map[string]T, gone []string) {
	for key := range n.last {
		if _, ok := rows[key]; !ok {
			gone = append(gone, key)
		}
	}
	n.last = rows
	return rows, gone
}

// Drop forgets what is new, and what comes until the next Of.
func (n *News[T]) Drop(from Reader[T]) {
	n.last = nil
	if t, ok := from.(*Table[T]); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pendingChanges = slices.DeleteFunc(t.pendingChanges, func(other *News[T]) bool { return other == n })
		n.keys = nil
	}
}

// Pause says how long after their last message subscribers that were sent one
// value are left with it while there is another: 0 for not at all, less for until
// something else tells them.
type Pause[T any] func(last, now T) time.Duration

// NewPacedPublication is NewPublication for a topic whose consumers do something
// costly with every message: pause holds messages back. Table and file have every
// value at once, and a subscriber that connects gets the newest.
func NewPacedPublication[T any](bus *Bus, agent string, pause Pause[T], opts ...Option) *Publication[T] {
	p := NewPublication[T](bus, agent, opts...)
	p.pause, p.lastSent = pause, map[string]lastSent[T]{}
	return p
}

// lastSent is what the subscribers were last told of a key.
type lastSent[T any] struct {
	value T
	at    time.Time
	due   time.Time   // when they are told what was held back
	timer *time.Timer // until then; nil for nothing
}

// wait is how long v is to be held back: 0 for not at all, less for until
// something else is told. Called with mu held.
func (p *Publication[T]) wait(key string, v T) time.Duration {
	last, was := p.lastSent[key]
	if p.pause == nil || !was {
		return 0
	}
	pause := p.pause(last.value, v)
	if pause <= 0 {
		return pause
	}
	return max(0, pause-time.Since(last.at))
}

// hold notes that v was told, or will be after wait. Called with mu held.
func (p *Publication[T]) hold(key string, v T, wait time.Duration) {
	if p.pause == nil {
		return
	}
	last := p.lastSent[key]
	if last.timer != nil {
		last.timer.Stop()
		last.timer = nil
	}
	switch {
	case wait == 0:
		last.value, last.at = v, time.Now()
	case wait > 0:
		last.due = time.Now().Add(wait)
		last.timer = time.AfterFunc(wait, func() { p.tellNow(key) })
	}
	p.lastSent[key] = last
}

// tellNow tells what was held back, unless it was told or replaced while the timer
// that calls this was already running.
func (p *Publication[T]) tellNow(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.lastSent[key]
	if v, ok := p.rows.Get(key); ok && last.timer != nil && !time.Now().Before(last.due) {
		p.store.tell(key)
		p.hold(key, v, 0)
	}
}

// drop forgets what was sent for a key that is withdrawn. Called with mu held.
func (p *Publication[T]) drop(key string) {
	if timer := p.lastSent[key].timer; timer != nil {
		timer.Stop()
	}
	delete(p.lastSent, key)
}
