package pubsub

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

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

// members cuts a JSON object into its members, whose values stay as they stand
// there. It is for what encoding/json has made or read already: that goes over
// each byte several times, and there may be megabytes. What it cannot cut is
// left to encoding/json, which says why.
func members(object []byte) (values map[string]json.RawMessage, ok bool) {
	values = map[string]json.RawMessage{}
	rest := bytes.TrimSpace(object)
	for len(rest) > 0 && (rest[0] == '{' || rest[0] == ',') {
		rest = rest[1:]
		colon := outside(rest, ":")
		if colon < 0 {
			return nil, false
		}
		name, value := "", rest[colon+1:]
		end := outside(value, ",}")
		if end < 0 || json.Unmarshal(rest[:colon], &name) != nil {
			return nil, false
		}
		values[name], rest = bytes.TrimSpace(value[:end]), value[end:]
	}
	return values, string(rest) == "}"
}

// outside is where the first of stops stands in JSON, outside of all strings
// and brackets; -1 for nowhere.
func outside(text []byte, stops string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return i
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}
