package listwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
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
	errBrokeOff = errors.New("streamed list ended before it was whole")
	errCrowded  = errors.New("turned away by an overloaded server")
)

// asking is what a Reflector may ask for. Left alone it asks up to four times
// for a table that cannot be had, and some things for ever.
type asking struct {
	lw *cache.ListWatch

	mu         sync.Mutex // a list that hangs may outlast its try
	unstreamed error      // what the server says to streamed lists, if it knows none
	listed     time.Time  // when a list was last asked for, since the last success

	// Of the present try:
	failed error // why no streamed list came
	lists  bool  // a whole list is being asked for
	newest bool  // a streamed list of the newest version was asked for
	calm   pace
}

// listWatch is what the Reflector is given.
func (a *asking) listWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: a.list, WatchFuncWithContext: a.watch}
}

// begin begins another try.
func (a *asking) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.lists, a.newest, a.calm = nil, false, false, pace{}
}

// succeeded notes that a whole list was watched on for a while.
func (a *asking) succeeded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = time.Time{}
}

// another notes that the server is silent, and may come back as another one.
func (a *asking) another() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstreamed = nil
}

func (a *asking) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := a.mayList(); err != nil {
		return nil, err
	}
	return a.lw.ListWithContextFunc(ctx, o)
}

func (a *asking) mayList() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lists { // this is another page
		return nil
	}
	if a.failed != nil && time.Since(a.listed) < listAgain {
		return a.failed
	}
	a.lists, a.listed = true, time.Now()
	return nil
}

func (a *asking) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	streams := o.SendInitialEvents != nil && *o.SendInitialEvents
	if err := a.mayWatch(streams, o.ResourceVersion == ""); err != nil {
		return nil, err
	}
	w, err := a.lw.WatchFuncWithContext(ctx, o)
	if streams {
		a.streamed(err)
	}
	return w, unretried(err)
}

func (a *asking) mayWatch(streams, newest bool) error {
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
func (a *asking) streamed(err error) {
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
