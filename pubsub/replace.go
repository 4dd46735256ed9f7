package pubsub

import "reflect"

// Replace puts rows in the place of all that the table holds, at once: no reader
// sees a part of the one and a part of the other. Only rows that differ are news,
// and the table rings once if there are any. It never fails. The caller does not
// change rows afterwards.
func (t *Table[T]) Replace(rows map[string]T) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := false
	for key, row := range rows {
		if old, ok := t.rows[key]; ok && reflect.DeepEqual(old, row) {
			continue
		}
		changed = true
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
		t.noted(key)
	}
	if changed {
		t.rows, t.lent = rows, true // the caller has it too
		t.ring()
	}
	return nil
}
