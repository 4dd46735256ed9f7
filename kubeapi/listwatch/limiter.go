package listwatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
)

const (
	// listAgain is how long after one list another one is asked for because a
	// streamed one failed. A server that fails the one mostly fails the other.
	listAgain = time.Minute
	// hasty and hastyWatches are how soon after one another, and how often, a
	// Reflector may ask for a watch: it repeats some of them at once and for
	// ever. An expired version takes two, a server without streamed lists one more.
	hasty        = 2 * time.Second
	hastyWatches = 3
)

var (
	errHasty    = errors.New("watches end as soon as they begin")
	errBrokeOff = errors.New("streamed list ended before it was complete")
	errCrowded  = errors.New("rejected by an overloaded server")
)

// listWatchLimiter is what a Reflector may ask for. Left alone it asks up to four times
// for a table that cannot be had, and some things for ever.
type listWatchLimiter struct {
	lw      *cache.ListWatch
	onWatch func() // called when a whole list is watched on

	mu         sync.Mutex // a list that hangs may outlast its try
	unstreamed error      // why no streamed lists are asked for: the server knows none, or does not end them
	listed     time.Time  // when a list was last asked for, since the last success

	// Of the present try:
	failed error // why no streamed list came
	lists  bool  // a whole list is being asked for
	newest bool  // a streamed list of the newest version was asked for
	calm   pace
	whole  bool // there was a whole list
	stands bool // the last request for a watch was accepted, and no list was asked for since
}

// listWatch is what the Reflector is given.
func (a *listWatchLimiter) listWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: a.list, WatchFuncWithContext: a.watch}
}

// begin begins another try.
func (a *listWatchLimiter) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.lists, a.newest, a.calm, a.whole, a.stands = nil, false, false, pace{}, false, false
}

// succeeded notes that a whole list was watched on for a while.
func (a *listWatchLimiter) succeeded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = time.Time{}
}

// another notes that the server is silent, and may come back as another one.
func (a *listWatchLimiter) another() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstreamed = nil
}

// stalled notes that no whole list came in time. If it was to be streamed, plain lists are asked for
// from now on: streamed ones may be what the server, or a proxy before it, does not end.
func (a *listWatchLimiter) stalled() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.lists {
		a.unstreamed = errNotWhole
	}
}

func (a *listWatchLimiter) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := a.mayList(); err != nil {
		return nil, err
	}
	return a.lw.ListWithContextFunc(ctx, o)
}

func (a *listWatchLimiter) mayList() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lists { // this is another page
		return nil
	}
	if a.failed != nil && time.Since(a.listed) < listAgain {
		return a.failed
	}
	a.lists, a.stands, a.listed = true, false, time.Now()
	return nil
}

func (a *listWatchLimiter) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	streams := ptr.Deref(o.SendInitialEvents, false)
	if err := a.mayWatch(streams, o.ResourceVersion == ""); err != nil {
		return nil, err
	}
	w, err := access.Overdue(ctx, o, a.lw.WatchFuncWithContext)
	if streams {
		a.streamed(err)
	}
	if err == nil {
		a.accepted()
	}
	return w, unretried(err)
}

// accepted notes that the server watches, and replaced that the list is whole; a
// streamed list is whole after it is watched, any other before.
func (a *listWatchLimiter) accepted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stands = true; a.whole {
		a.onWatch()
	}
}

func (a *listWatchLimiter) replaced() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.whole = true; a.stands {
		a.onWatch()
	}
}

func (a *listWatchLimiter) mayWatch(streams, newest bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case streams && a.unstreamed != nil:
		return a.unstreamed
	case !a.calm.allows():
		return errHasty
	case streams && newest && a.newest: // it will not be better at once
		return a.failed
	case streams:
		a.newest = newest
	}
	return nil
}

// streamed notes the answer to a request for a streamed list.
func (a *listWatchLimiter) streamed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case apierrors.IsInvalid(err):
		a.unstreamed, a.failed = err, nil
	case err != nil:
		a.failed = unretried(err)
	default: // should a list be asked for after that
		a.failed = errBrokeOff
	}
}

// unretried hides from the Reflector those errors that it would retry inside,
// deaf to its context.
func unretried(err error) error {
	switch {
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%w: %s", errCrowded, err.Error())
	case utilnet.IsConnectionRefused(err):
		return errors.New(err.Error())
	}
	return err
}

// pace counts watches that follow one another in haste.
type pace struct {
	last time.Time
	n    int
}

func (p *pace) allows() bool {
	if time.Since(p.last) > hasty {
		p.n = 0
	}
	p.last = time.Now()
	p.n++
	return p.n <= hastyWatches
}

const (
	// firstGap and LastGap are how far apart the tries of failing views are, the
	// first ones and when it lasts; a tenth more at random keeps the nodes of a
	// cluster out of step. With the time a try takes to prove itself and a list
	// to come, LastGap leaves the tables right within five seconds.
	firstGap = time.Second
	// LastGap is the longest wait between two attempts that fail.
	LastGap = 3 * time.Second
	// steady is how long all views must have gone well for the next gap to be a
	// first one again, and one for its next try to wait for no turn.
	steady = time.Minute
)

// SharedBackoff spaces the tries of views that fail. They fail together more often
// than not, and each for itself would be a storm or too late: so they take
// turns, and as soon as one has success all try at once.
type SharedBackoff struct {
	last time.Duration  // the gap when it lasts
	Led  *SharedBackoff // which a success lets go as well; nil for none

	mu   sync.Mutex
	next time.Time // not before
	gap  time.Duration
	open chan struct{} // closed to let all go
}

// NewSharedBackoff returns a backoff whose waits grow up to last.
func NewSharedBackoff(last time.Duration) *SharedBackoff {
	return &SharedBackoff{last: last, open: make(chan struct{})}
}

// wait returns when it is the turn of the caller, whose table has gone well for so long; at once
// when alive is done, since there is another wait for that; and false when ctx is done.
func (t *SharedBackoff) wait(ctx, alive context.Context, well time.Duration) bool {
	if alive.Err() != nil {
		return ctx.Err() == nil
	}
	at, open := t.take(well)
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
// is closed when nobody has to wait any more. A table that has gone well has not failed
// because its watch ended: it does not take turns with those that fail.
func (t *SharedBackoff) take(well time.Duration) (at time.Time, open <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.next) > steady {
		t.gap = firstGap
	}
	at = now.Add(firstGap/2 + rand.N(firstGap/4))
	if well >= steady {
		return at, t.open
	}
	if at.Before(t.next) {
		at = t.next
	}
	t.next = at.Add(t.gap + rand.N(t.gap/10))
	t.gap = min(2*t.gap, t.last)
	return at, t.open
}

// success lets all go who wait.
func (t *SharedBackoff) success() {
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
func (t *SharedBackoff) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.next.After(now) {
		t.next = now
	}
}
