package pubsub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

var _ Writer[int] = (*Publication[int])(nil)

// ErrTooLarge is wrapped by Publish where a value cannot be sent: a message
// has to stay below 65535 bytes, a large field below 1 MiB.
var ErrTooLarge = errors.New("value too large for its topic")

// ErrInUse is wrapped by Open when another process publishes the topic.
var ErrInUse = errors.New("already in use")

// Publication is a table that is written to a directory and served on a
// socket. The topic is named after T.
type Publication[T any] struct {
	rows  Table[T]
	store store
	pause Pause[T] // nil: every change is told at once

	mu       sync.Mutex // one writer at a time: table, file and socket agree on the last value
	opened   bool
	lastSent map[string]lastSent[T] // by key, where there is a pause
}

// NewPublication adds a publication of agent to the bus. It never fails; Open
// does the work.
func NewPublication[T any](bus *Bus, agent string, opts ...Option) *Publication[T] {
	t := newTopic[T](bus, agent, opts)
	p := &Publication[T]{store: store{topic: t, log: t.logger(bus.log), patience: clientPatience}}
	bus.pubs = append(bus.pubs, p)
	return p
}

// String returns the topic's full name, agent/Topic.
func (p *Publication[T]) String() string { return p.store.topic.String() }

// Get implements Reader.
func (p *Publication[T]) Get(key string) (T, bool) { return p.rows.Get(key) }

// All implements Reader.
func (p *Publication[T]) All() map[string]T { return p.rows.All() }

// Notify implements Reader.
func (p *Publication[T]) Notify(bell chan<- struct{}) { p.rows.Notify(bell) }

// Publish implements Writer. It fails on a key that is no file name, on a
// value that has no JSON or is too large to send (ErrTooLarge), and when the
// file cannot be written; the old value then stays everywhere.
func (p *Publication[T]) Publish(key string, v T) error {
	return p.count(p.publish(key, v))
}

// count counts calls that failed.
func (p *Publication[T]) count(err error) error {
	if err != nil {
		p.store.counts.refused.Add(1)
	}
	return err
}

func (p *Publication[T]) publish(key string, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("publish %s key %s: %w", p.store.topic, key, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return fmt.Errorf("publish %s key %s: the topic is not open", p.store.topic, key)
	}
	wait := p.wait(key, v)
	changed, err := p.store.put(key, data, wait == 0)
	if err != nil {
		return fmt.Errorf("publish %s key %s: %w", p.store.topic, key, err)
	}
	if !changed {
		return nil
	}
	p.rows.set(key, v)
	p.hold(key, v, wait)
	return nil
}

// Unpublish implements Writer.
func (p *Publication[T]) Unpublish(key string) error {
	return p.count(p.unpublish(key))
}

func (p *Publication[T]) unpublish(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return fmt.Errorf("unpublish %s key %s: the topic is not open", p.store.topic, key)
	}
	if err := p.store.remove(key); err != nil {
		return fmt.Errorf("unpublish %s key %s: %w", p.store.topic, key, err)
	}
	p.rows.remove(key)
	p.drop(key)
	return nil
}

// open implements member.
func (p *Publication[T]) open() error {
	if err := p.store.open(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	values, err := p.store.load(func(data []byte) error {
		_, err := decodeRow[T](data)
		return err
	})
	if err != nil {
		// An empty snapshot would read like a withdrawal of everything.
		p.store.close()
		return err
	}
	for key, data := range values {
		if v, err := decodeRow[T](data); err == nil { // load has tried it already
			p.rows.set(key, v)
		}
	}
	p.opened = true
	return nil
}

// reopenAfter is the pause between two tries to open a topic that could not be
// opened at start, for example on a full disk.
const reopenAfter = 10 * time.Second

// run implements member. A topic that did not open is tried again, so that
// what it lacked costs time only.
func (p *Publication[T]) run(ctx context.Context) {
	for !p.isOpen() {
		if !pause(ctx, reopenAfter, nil) {
			return
		}
		if p.open() == nil {
			p.store.log.Info("the topic is open now")
		}
	}
	p.store.run(ctx)
}

func (p *Publication[T]) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// stats implements member.
func (p *Publication[T]) stats() Stats { return p.store.stats() }

// decodeRow decodes the JSON of one row. A null would decode to a zero value
// that nobody meant.
func decodeRow[T any](data []byte) (T, error) {
	var v T
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return v, errors.New("the value is null")
	}
	return v, located(json.Unmarshal(data, &v))
}

// located adds to an error of encoding/json where in the value it happened.
func located(err error) error {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &typed):
		return fmt.Errorf("at byte %d: %w", typed.Offset, err)
	}
	return err
}

// Pause says how long after their last message subscribers that were sent one
// value are left with it while there is another: 0 for not at all, less for until
// something else tells them.
type Pause[T any] func(last, now T) time.Duration

// NewPacedPublication is NewPublication for a topic whose consumers do something
// costly with every message: pause holds messages back. Table and file have every
// value at once, and a subscriber that connects gets the newest.
func NewPacedPublication[T any](bus *Bus, agent string, pause Pause[T], opts ...Option) *Publication[T] {
	p := NewPublication[T](bus, agent, opts...)
	p.pause, p.lastSent = pause, map[string]lastSent[T]{}
	return p
}

// lastSent is what the subscribers were last told of a key.
type lastSent[T any] struct {
	value T
	data  []byte // its JSON
	at    time.Time
	due   time.Time   // when they are told what was held back
	timer *time.Timer // until then; nil for nothing
}

// wait is how long v is to be held back: 0 for not at all, less for until
// something else is told. Called with mu held.
func (p *Publication[T]) wait(key string, v T) time.Duration {
	last, was := p.lastSent[key]
	if p.pause == nil || !was {
		return 0
	}
	pause := p.pause(last.value, v)
	if pause <= 0 {
		return pause
	}
	return max(0, pause-time.Since(last.at))
}

// hold notes that v was told, or will be after wait. Called with mu held.
func (p *Publication[T]) hold(key string, v T, wait time.Duration) {
	if p.pause == nil {
		return
	}
	last := p.lastSent[key]
	if last.timer != nil {
		last.timer.Stop()
		last.timer = nil
		if wait < 0 { // who connected since then was sent what the others were not
			p.store.tellUnless(key, last.data)
		}
	}
	switch {
	case wait == 0:
		last.value, last.data, last.at = v, p.store.rows[key], time.Now()
	case wait > 0:
		last.due = time.Now().Add(wait)
		last.timer = time.AfterFunc(wait, func() { p.tellNow(key) })
	}
	p.lastSent[key] = last
}

// tellNow tells what was held back, unless it was told or replaced while the timer
// that calls this was already running.
func (p *Publication[T]) tellNow(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.lastSent[key]
	if v, ok := p.rows.Get(key); ok && last.timer != nil && !time.Now().Before(last.due) {
		p.store.tell(key)
		p.hold(key, v, 0)
	}
}

// drop forgets what was sent for a key that is withdrawn. Called with mu held.
func (p *Publication[T]) drop(key string) {
	if timer := p.lastSent[key].timer; timer != nil {
		timer.Stop()
	}
	delete(p.lastSent, key)
}
