package pubsub

import (
	"maps"
	"reflect"
	"sync"
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
	bells          []chan<- struct{}
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
func (t *Table[T]) Notify(bell chan<- struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bells = append(t.bells, bell)
}

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
	t.ring()
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
func (t *Table[T]) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring()
}

// ring is called with mu held.
func (t *Table[T]) ring() {
	for _, bell := range t.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}
