package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
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
		settle:   settleFor,
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
	if old, ok := t.Get(key); ok && reflect.DeepEqual(old, v) {
		return nil
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

const (
	// minRetry is the pause before a dial: right after a publisher went, it
	// often comes back at once. It doubles up to maxRetry.
	minRetry = 50 * time.Millisecond
	maxRetry = 10 * time.Second
	// rescanEvery is a follower's rescan outside of tests.
	rescanEvery = time.Minute
	// settleFor is a follower's settle outside of tests. The first files missing
	// may be a directory being removed as a whole, and that is nobody's withdrawal.
	// And EVE's publishers send a value before they write its file, so a directory
	// may be behind a socket that was just lost.
	settleFor = time.Second
)

// sink is the typed half of a subscription.
type sink interface {
	// keep decodes and stores a row; it rings only if the row is another one.
	keep(key string, data []byte) error
	remove(key string)
	keys() []string
	wake()
}

// follower is a subscription without its type. Its run goroutine alone
// changes the rows.
type follower struct {
	topic   topic
	log     logrus.FieldLogger
	quota   *quota
	watcher *watcher
	bell    chan struct{}
	table   sink
	synced  atomic.Bool
	rescan  time.Duration // how often a directory is read without an event, in case one was lost
	settle  time.Duration // how long a directory may say something else than is meant
	counts  counts

	refused  map[string]string    // what was last refused of a key and reported
	missing  map[string]time.Time // since when the file of a row is not there
	reported map[string]string    // the trouble with a path that was last reported
}

// Synced implements Source.
func (f *follower) Synced() bool { return f.synced.Load() }

// open implements member: the directory is read once.
func (f *follower) open() error {
	if err := f.topic.check(); err != nil {
		return err
	}
	f.scan()
	return nil
}

// run implements member: it follows the socket while there is one, unless it looks for
// none, and the directory otherwise.
func (f *follower) run(ctx context.Context) {
	if f.topic.check() != nil {
		return
	}
	retry, due, behind := minRetry, time.Time{}, time.Time{}
	for ctx.Err() == nil {
		f.watcher.watch(filepath.Dir(f.topic.sock()))
		f.watcher.watch(f.topic.dir())
		// Before the dial: a publisher that hangs must not hide its files.
		due = f.scanWhen(due)
		connected, whole := f.follow(ctx)
		if whole {
			retry, behind = minRetry, time.Now().Add(f.settle)
		}
		if connected {
			due = f.scanWhen(behind)
		}
		wait := time.Until(due)
		if !f.topic.filesOnly {
			wait = min(wait, retry)
		}
		timer := time.NewTimer(max(0, wait))
		select {
		case <-ctx.Done():
		case <-f.bell:
			retry, due = minRetry, behind
		case <-timer.C:
			retry = min(2*retry, maxRetry)
		}
		timer.Stop()
	}
}

// update stores a value, or reports once why it cannot.
func (f *follower) update(key string, data []byte) {
	if err := f.table.keep(key, data); err != nil {
		f.refuse(key, canonical(data), err)
		return
	}
	delete(f.refused, key)
}

// withdraw removes a row.
func (f *follower) withdraw(key string) {
	delete(f.refused, key)
	delete(f.missing, key)
	f.table.remove(key)
}

// refuse reports bad data of key, once until that is something else and while its
// publisher has not caused too many lines. The last good row stays.
func (f *follower) refuse(key, what string, err error) {
	if last, ok := f.refused[key]; ok && last == what {
		return
	}
	f.refused[key] = what
	f.counts.refused.Add(1)
	if log, ok := f.quota.take(f.log); ok {
		log.WithError(err).WithField("key", key).Error("received an invalid value, keeping the last valid one")
	}
}

// canonical encodes JSON so that a file and a message with the same value are
// the same text. What is no JSON is left as it is.
func canonical(data []byte) string {
	var tree any
	if decodeNumbers(data, &tree) == nil {
		if b, err := json.Marshal(tree); err == nil {
			return string(b)
		}
	}
	return string(data)
}

// report logs trouble with a path, once until it is something else.
func (f *follower) report(path, what string, err error) {
	if f.reported[path] != err.Error() {
		f.reported[path] = err.Error()
		if log, ok := f.quota.take(f.log); ok {
			log.WithError(err).Warn(what)
		}
	}
}

// whole notes that the rows are a complete snapshot. They are not while there
// is a key that never had a good value: its row is unknown, not withdrawn.
func (f *follower) whole() {
	if f.synced.Load() {
		return
	}
	rows := f.table.keys()
	for key := range f.refused {
		if key != "" && !slices.Contains(rows, key) {
			return
		}
	}
	f.synced.Store(true)
	f.table.wake()
}

// stats implements member.
func (f *follower) stats() Stats { return f.counts.stats(f.topic.String(), true, 0) }
