package pubsub

import "time"

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
	}
	switch {
	case wait == 0:
		last.value, last.at = v, time.Now()
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
