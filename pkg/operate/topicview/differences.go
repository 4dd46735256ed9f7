package topicview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Change is one field that is not what it was.
type Change struct {
	Path string // of the field in its value: Pods.Evicted, Volumes[data-0].State; "" for the whole value
	Old  string // as JSON; "" for what was not there
	New  string // as JSON; "" for what is gone
}

// MaxChanges is how many changes of one value are told one by one.
const MaxChanges = 200

// Differences are the fields that differ between two values, in order, at most
// MaxChanges of them; omitted counts the rest. A nil value was not there, or is
// gone.
func Differences(old, value any) (changes []Change, omitted int) {
	d := differ{}
	d.entry("", old, value, old != nil, value != nil)
	if n := len(d.changes); n > MaxChanges {
		return d.changes[:MaxChanges], n - MaxChanges
	}
	return d.changes, 0
}

type differ struct{ changes []Change }

func (d *differ) compare(at string, old, value any) {
	if reflect.DeepEqual(old, value) {
		return
	}
	before, wasObject := old.(map[string]any)
	after, isObject := value.(map[string]any)
	if wasObject && isObject {
		d.objects(at, before, after)
		return
	}
	listed, wasList := old.([]any)
	list, isList := value.([]any)
	if wasList && isList {
		d.lists(at, listed, list)
		return
	}
	d.changes = append(d.changes, Change{at, text(old), text(value)})
}

func (d *differ) objects(at string, old, value map[string]any) {
	for _, name := range either(old, value) {
		was, had := old[name]
		is, has := value[name]
		field := name
		if at != "" {
			field = at + "." + name
		}
		d.entry(field, was, is, had, has)
	}
}

func either(a, b map[string]any) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// entry compares what may be missing on one side: null is not missing.
func (d *differ) entry(at string, old, value any, had, has bool) {
	switch {
	case had && has:
		d.compare(at, old, value)
	case has:
		d.changes = append(d.changes, Change{Path: at, New: text(value)})
	case had:
		d.changes = append(d.changes, Change{Path: at, Old: text(old)})
	}
}

// lists compares by what the entries are called, where all are called something,
// else by their place.
func (d *differ) lists(at string, old, value []any) {
	for _, field := range []string{"Name", "Key", "Pod", "Node", "IfName", "Type", "UUID"} {
		before, was := callings(old, field)
		after, is := callings(value, field)
		if !was || !is {
			continue
		}
		for _, name := range either(before, after) {
			was, had := before[name]
			is, has := after[name]
			d.entry(at+"["+name+"]", was, is, had, has)
		}
		return
	}
	for i := range max(len(old), len(value)) {
		var was, is any
		if i < len(old) {
			was = old[i]
		}
		if i < len(value) {
			is = value[i]
		}
		d.entry(fmt.Sprintf("%s[%d]", at, i), was, is, i < len(old), i < len(value))
	}
}

// callings are the entries of a list by the text of a field; false where one has
// none, or two have the same.
func callings(list []any, field string) (map[string]any, bool) {
	byName := make(map[string]any, len(list))
	for _, v := range list {
		m, _ := v.(map[string]any)
		name, ok := m[field].(string)
		if _, twice := byName[name]; !ok || twice {
			return nil, false
		}
		byName[name] = v
	}
	return byName, true
}

func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
