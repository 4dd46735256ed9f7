package pubsub

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

var _ Source[int] = (*Subscription[int])(nil)

// Subscription is a table of what another agent publishes. The topic is named
// after T. It holds the last good value of every key until the publisher
// withdraws it.
type Subscription[T any] struct {
	follower
	rows subscribed[T]
}

// NewSubscription adds a subscription to a topic of agent to the bus. It never
// fails; Open reads the directory, Run follows.
func NewSubscription[T any](bus *Bus, agent string, opts ...Option) *Subscription[T] {
	t := newTopic[T](bus, agent, opts)
	s := &Subscription[T]{follower: follower{
		topic:    t,
		log:      t.logger(bus.log),
		quota:    bus.quota(agent),
		watcher:  &bus.watcher,
		bell:     make(chan struct{}, 1),
		rescan:   rescanEvery,
		refused:  map[string]string{},
		missing:  map[string]time.Time{},
		reported: map[string]string{},
	}}
	s.table = &s.rows
	bus.watcher.add(interest{dir: t.dir(), sock: t.sock(), bell: s.bell})
	bus.subs = append(bus.subs, s)
	return s
}

// String returns the topic's full name, agent/Topic.
func (s *Subscription[T]) String() string { return s.topic.String() }

// Get implements Reader.
func (s *Subscription[T]) Get(key string) (T, bool) { return s.rows.Get(key) }

// All implements Reader.
func (s *Subscription[T]) All() map[string]T { return s.rows.All() }

// Notify implements Reader. The bell also rings when Synced becomes true.
func (s *Subscription[T]) Notify(bell chan<- struct{}) { s.rows.Notify(bell) }

// subscribed is the table of a subscription as its follower sees it.
type subscribed[T any] struct{ Table[T] }

func (t *subscribed[T]) keys() []string { return slices.Sorted(maps.Keys(t.All())) }

// keep stores a row unless it is the one that is there: publishers repeat
// themselves, and files and messages encode the same value differently.
func (t *subscribed[T]) keep(key string, data []byte) error {
	v, err := decodeReceived[T](data)
	if err != nil {
		return err
	}
	if old, ok := t.Get(key); ok {
		was, err1 := json.Marshal(old)
		is, err2 := json.Marshal(v)
		if err1 == nil && err2 == nil && bytes.Equal(was, is) {
			return nil
		}
	}
	t.set(key, v)
	return nil
}

// decodeReceived decodes the JSON of one row as leniently as EVE's subscribers
// do (docs/wire.md, "Delivery"): null is the zero value, like {}, and an integer
// may be spelled 7.0 or 7e0, because EVE takes every value through float64.
func decodeReceived[T any](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	if typed := (*json.UnmarshalTypeError)(nil); errors.As(err, &typed) && strings.HasPrefix(typed.Value, "number ") {
		if plain, changed := plainIntegers(data); changed {
			var again T
			return again, located(json.Unmarshal(plain, &again))
		}
	}
	return v, located(err)
}

// plainIntegers writes whole numbers without fraction and exponent where
// float64 holds them exactly, and reports whether there was one to change.
func plainIntegers(data []byte) (plain []byte, changed bool) {
	var tree any
	if decodeNumbers(data, &tree) != nil {
		return nil, false
	}
	tree = writeIntegers(tree, &changed)
	plain, err := json.Marshal(tree)
	return plain, changed && err == nil
}

func writeIntegers(node any, changed *bool) any {
	switch node := node.(type) {
	case map[string]any:
		for name, v := range node {
			node[name] = writeIntegers(v, changed)
		}
	case []any:
		for i, v := range node {
			node[i] = writeIntegers(v, changed)
		}
	case json.Number:
		f, err := node.Float64()
		if err == nil && strings.ContainsAny(node.String(), ".eE") && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			*changed = true
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return node
}
