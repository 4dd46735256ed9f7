package pubsub

import "slices"

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
