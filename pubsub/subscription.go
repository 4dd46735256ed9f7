package pubsub

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
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
// themselves, and files and messages spell the same value differently.
func (t *subscribed[T]) keep(key string, data []byte) error {
	v, err := decodeRow[T](data)
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
