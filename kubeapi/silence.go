package kubeapi

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// silence knows since when the API server has not answered. It outlives the
// connections. A server is silent from the start of the first request that
// went unanswered until the next answer of any kind; slow is not silent. It
// counts as dead, and only probes are sent, once a probe has gone unanswered
// too.
type silence struct {
	log    logrus.FieldLogger
	ctx    context.Context
	report func(since time.Time, reason string)
	wake   chan struct{} // rings when the next probe may be due sooner

	mu     sync.Mutex
	since  time.Time // zero while the server answers
	reason string
	last   time.Time // when an answer last came
	gone   bool      // a probe went unanswered after that
	busy   bool      // the last probe was turned away with 429

	alive context.Context // ends when the server is found dead
	kill  context.CancelFunc
	open  chan struct{} // closed while views may list and watch
}

func newSilence(ctx context.Context, log logrus.FieldLogger, report func(time.Time, string)) *silence {
	s := &silence{log: log, ctx: ctx, report: report, wake: make(chan struct{}, 1), open: make(chan struct{})}
	close(s.open)
	s.alive, s.kill = context.WithCancel(ctx)
	return s
}

// answered notes an answer that has just come.
func (s *silence) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if s.gone {
		s.log.WithField("silent", s.last.Sub(s.since).Round(time.Millisecond)).Info("API server answers again")
	}
	s.since, s.reason = time.Time{}, ""
	s.set(false, s.busy)
	s.report(s.since, s.reason)
}

// unanswered notes that a request sent at start will get no answer. That is no
// news if another one got its answer after start.
func (s *silence) unanswered(start time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if start.Before(s.last) {
		return
	}
	if s.since.IsZero() || start.Before(s.since) {
		s.since = start
	}
	s.reason = reason
	s.report(s.since, s.reason)
	s.ring()
}

// probed judges the probe sent at start: turnedAway says it met with 429.
func (s *silence) probed(start time.Time, turnedAway bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := !s.since.IsZero() && s.last.Before(start)
	if gone && !s.gone {
		s.log.WithField("reason", s.reason).Warn("API server does not answer")
	}
	s.set(gone, turnedAway)
}

// turnedAway notes that a view met with 429: the views wait until a probe
// gets through. Verbs go on, since the server sorts them by importance.
func (s *silence) turnedAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(s.gone, true)
	s.ring()
}

// afresh lets a new connection try at once.
func (s *silence) afresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(false, false)
	s.ring()
}

// set moves the gates. The caller holds the lock.
func (s *silence) set(gone, busy bool) {
	wasShut, shut := s.gone || s.busy, gone || busy
	switch {
	case gone && !s.gone:
		s.kill()
	case !gone && s.gone:
		s.alive, s.kill = context.WithCancel(s.ctx)
	}
	switch {
	case shut && !wasShut:
		s.open = make(chan struct{})
	case !shut && wasShut:
		close(s.open)
	}
	s.gone, s.busy = gone, busy
}

func (s *silence) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// dead reports, with the reason, that only probes are to be sent.
func (s *silence) dead() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason, s.gone
}

// gates returns a context that ends when the server is found dead, and a
// channel that is closed once views may list and watch.
func (s *silence) gates() (alive context.Context, open <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive, s.open
}

// state returns what the time of the next probe depends on.
func (s *silence) state() (last time.Time, unwell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.busy || !s.since.IsZero()
}
