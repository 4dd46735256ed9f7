package statusserver

import "time"

// What marks tell of, besides the types of conditions.
const (
	markState   = "state"
	markCluster = "cluster"
)

// mark is a value and since when it holds.
type mark struct {
	value string
	since time.Time
}

// marks tells since when each thing stands as it does, by its name. It lives
// as long as the agent does.
type marks map[string]mark

// next is what the marks are when things stand as e says. It keeps the time of
// what did not change and leaves m as it is.
func (m marks) next(e explanation, now time.Time) marks {
	out := marks{markState: m.at(markState, e.state(), now, time.Time{}), markCluster: m.at(markCluster, e.own.String(), now, time.Time{})}
	for _, c := range e.conditions {
		out[c.kind] = m.at(c.kind, string(c.status), now, c.since)
	}
	return out
}

// at is the mark of name for value: of the time that the cluster itself tells,
// unless it is in the future, else the one there is, or one that begins now.
func (m marks) at(name, value string, now, since time.Time) mark {
	was, ok := m[name]
	switch {
	case !since.IsZero() && !since.After(now):
	case ok && was.value == value:
		return was
	default:
		since = now
	}
	return mark{value: value, since: since.UTC().Round(0)}
}
