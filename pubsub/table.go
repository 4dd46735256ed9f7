package pubsub

import (
	"maps"
	"reflect"
	"slices"
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
	bells          Bells
	picks          []*Pick[T]
	pendingChanges []*News[T]
	filtered       []*Filtered[T]
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
	old, there := t.rows[key]
	t.rows[key] = v
	for _, p := range t.picks {
		p.changed(key, v)
	}
	for _, f := range t.filtered {
		if !there || !f.same(old, v) {
			f.bells.Ring()
		}
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
	t.ringFiltered()
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

// Replace puts rows in the place of all that the table holds, at once: no reader
// sees a part of the one and a part of the other. Only rows that differ are news,
// and the table rings once if there are any. It never fails. The caller does not
// change rows afterwards.
func (t *Table[T]) Replace(rows map[string]T) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := false
	for key, row := range rows {
		old, ok := t.rows[key]
		if ok && reflect.DeepEqual(old, row) {
			continue
		}
		changed = true
		for _, f := range t.filtered {
			if !ok || !f.same(old, row) {
				f.bells.Ring()
			}
		}
		for _, p := range t.picks {
			p.changed(key, row)
		}
		t.noted(key)
	}
	for key := range t.rows {
		if _, ok := rows[key]; ok {
			continue
		}
		changed = true
		for _, p := range t.picks {
			p.rows.remove(key)
		}
		t.ringFiltered()
		t.noted(key)
	}
	if changed {
		t.rows, t.lent = rows, true // the caller has it too
		t.bells.Ring()
	}
	return nil
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
	t.bells.Ring()
	t.ringFiltered()
}

// ringFiltered rings whatever the filters say. Called with mu held.
func (t *Table[T]) ringFiltered() {
	for _, f := range t.filtered {
		f.bells.Ring()
	}
}

// Filtered is a table for readers whom some changes do not concern: they do not ring.
// Its rows are those of the table, all of them as they are now.
type Filtered[T any] struct {
	of    *Table[T]
	name  string
	same  func(was, is T) bool
	bells Bells
}

// Filter returns t without the rings for changes of rows that are the same in what
// its readers look at. same must be quick, and touch no table; name is t's.
func (t *Table[T]) Filter(name string, same func(was, is T) bool) *Filtered[T] {
	f := &Filtered[T]{of: t, name: name, same: same}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filtered = append(t.filtered, f)
	return f
}

// Get implements Reader.
func (f *Filtered[T]) Get(key string) (T, bool) { return f.of.Get(key) }

// All implements Reader.
func (f *Filtered[T]) All() map[string]T { return f.of.All() }

// Notify implements Reader.
func (f *Filtered[T]) Notify(bell chan<- struct{}) { f.bells.Notify(bell) }

// String names the table.
func (f *Filtered[T]) String() string { return f.name }

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

// Pick is those rows of a table that its reader wants, kept while the table
// changes. In a table of thousands it costs what there is of them, and it rings
// for them alone. Its zero value is ready; one goroutine asks it.
type Pick[T any] struct {
	rows Table[T]
	keep func(T) bool // nil before it was asked; guarded by the table
	want any          // what keep goes by
}

// Of returns the rows of from, always the same table, that keep wants. The
// table is looked through when want, which is all that keep goes by, is not
// what it was; keep must be quick, and touch no table.
func (p *Pick[T]) Of(from Reader[T], want any, keep func(T) bool) map[string]T {
	t, ok := from.(*Table[T])
	if !ok {
		return p.through(from, keep)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.keep == nil {
		t.picks = append(t.picks, p)
	}
	if p.keep == nil || !reflect.DeepEqual(p.want, want) {
		p.keep, p.want = keep, want
		p.rows.replace(wanted(t.rows, keep))
	}
	return p.rows.All()
}

// through looks through all rows of a Reader that is no Table, each time.
func (p *Pick[T]) through(from Reader[T], keep func(T) bool) map[string]T {
	if p.keep == nil {
		p.keep = keep
		for _, bell := range p.rows.bells.all {
			from.Notify(bell)
		}
	}
	return wanted(from.All(), keep)
}

func wanted[T any](rows map[string]T, keep func(T) bool) map[string]T {
	kept := map[string]T{}
	for key, row := range rows {
		if keep(row) {
			kept[key] = row
		}
	}
	return kept
}

// Notify makes every change of a row that is wanted ring bell, from the first
// Of on.
func (p *Pick[T]) Notify(bell chan<- struct{}) { p.rows.Notify(bell) }

// changed takes over a row of the table, which is held.
func (p *Pick[T]) changed(key string, row T) {
	if p.keep(row) {
		p.rows.set(key, row)
	} else {
		p.rows.remove(key)
	}
}

// Joined is a topic and a table of this process, of that name, as one table. They share
// no key.
type Joined[T any] struct {
	Source[T]
	Here Reader[T]
	Name string
}

// Get implements Reader.
func (j Joined[T]) Get(key string) (T, bool) {
	if v, ok := j.Here.Get(key); ok {
		return v, true
	}
	return j.Source.Get(key)
}

// All implements Reader.
func (j Joined[T]) All() map[string]T {
	all := map[string]T{}
	maps.Copy(all, j.Source.All()) // an empty table is nil
	maps.Copy(all, j.Here.All())
	return all
}

// Notify implements Reader.
func (j Joined[T]) Notify(bell chan<- struct{}) {
	j.Source.Notify(bell)
	j.Here.Notify(bell)
}

// String names both.
func (j Joined[T]) String() string {
	if topic, ok := j.Source.(interface{ String() string }); ok {
		return topic.String() + ", " + j.Name
	}
	return j.Name
}

// Ring rings a bell, a channel of capacity 1. One that rings already is left alone,
// and nil is none.
func Ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Bells are those of all who want to hear of the same news. The zero value is ready.
type Bells struct {
	mu  sync.Mutex
	all []chan<- struct{}
}

// Notify makes the news ring bell from now on.
func (b *Bells) Notify(bell chan<- struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, bell)
}

// Ring rings all of them.
func (b *Bells) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bell := range b.all {
		Ring(bell)
	}
}
