package listwatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// firstGap and lastGap are how far apart the tries of failing views are, the
	// first ones and when it lasts; a tenth more at random keeps the nodes of a
	// cluster out of step. With the time a try takes to prove itself and a list
	// to come, lastGap leaves the tables right within five seconds.
	firstGap = time.Second
	LastGap  = 3 * time.Second
	// steady is how long all views must have gone well for the next gap to be a
	// first one again.
	steady = time.Minute
)

// Turns spaces the tries of views that fail. They fail together more often
// than not, and each for itself would be a storm or too late: so they take
// turns, and as soon as one has success all try at once.
type Turns struct {
	last time.Duration // the gap when it lasts
	Led  *Turns        // which a success lets go as well; nil for none

	mu   sync.Mutex
	next time.Time // not before
	gap  time.Duration
	open chan struct{} // closed to let all go
}

func NewTurns(last time.Duration) *Turns { return &Turns{last: last, open: make(chan struct{})} }

// wait returns when it is the caller's turn; at once when alive is done, since
// there is another wait for that; and false when ctx is done.
func (t *Turns) wait(ctx, alive context.Context) bool {
	if alive.Err() != nil {
		return ctx.Err() == nil
	}
	at, open := t.take()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-open:
	case <-timer.C:
	case <-alive.Done():
		t.giveBack()
	case <-ctx.Done():
		t.giveBack()
	}
	return ctx.Err() == nil
}

// take returns the time of the next free turn, which is the caller's, and what
// is closed when nobody has to wait any more.
func (t *Turns) take() (at time.Time, open <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.next) > steady {
		t.gap = firstGap
	}
	at = now.Add(firstGap/2 + rand.N(firstGap/4))
	if at.Before(t.next) {
		at = t.next
	}
	t.next = at.Add(t.gap + rand.N(t.gap/10))
	t.gap = min(2*t.gap, t.last)
	return at, t.open
}

// success lets all go who wait.
func (t *Turns) success() {
	t.mu.Lock()
	close(t.open)
	t.open = make(chan struct{})
	t.mu.Unlock()
	t.giveBack()
	if t.Led != nil {
		t.Led.success()
	}
}

// giveBack gives up the turns that were taken and will not be used.
func (t *Turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.next.After(now) {
		t.next = now
	}
}
