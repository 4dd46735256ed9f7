package localserver

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// turns are places for answers in the making, as many as the channel holds. Those
// who wait get one in the order in which they came.
type turns chan struct{}

// enter takes a place, false where none is free in time.
func (t turns) enter(ctx context.Context, within time.Duration) (leave func(), ok bool) {
	leave = func() { <-t }
	select {
	case t <- struct{}{}:
		return leave, true
	default:
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case t <- struct{}{}:
		return leave, true
	case <-late.C:
	case <-ctx.Done():
	}
	return nil, false
}

const (
	// streamAtLeast is how long a stream has its place also where others want one.
	streamAtLeast = 30 * time.Second
	// streamGoes is how long one that has to go may take to end.
	streamGoes = time.Second
)

// streams are the answers that go on. The kernel takes what a stream sends also
// where nobody reads it, so one that is not read cannot be told from one that is
// for hours: where all places are taken, the oldest stream ends for a new one. A
// page whose stream ended asks again.
type streams struct {
	mu   sync.Mutex
	open []*stream // oldest first
}

// stream is one of them.
type stream struct {
	since time.Time
	end   func()        // ends its connection
	gone  chan struct{} // closed when it has ended
}

// enter takes a place for r, false where all are taken and none is old enough.
func (s *streams) enter(r *http.Request) (leave func(), ok bool) {
	now := time.Now()
	s.mu.Lock()
	for len(s.open) >= maxStreams {
		oldest := s.open[0]
		if now.Sub(oldest.since) < streamAtLeast {
			s.mu.Unlock()
			return nil, false
		}
		s.open = s.open[1:]
		s.mu.Unlock()
		oldest.end()
		select {
		case <-oldest.gone:
		case <-time.After(streamGoes):
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	mine := &stream{since: now, end: func() {}, gone: make(chan struct{})}
	if h := openedBy(r.Context()); h != nil {
		mine.end = func() { _ = h.Close() }
	}
	s.open = append(s.open, mine)
	return func() { s.leave(mine) }, true
}

// leave gives the place back, unless it is another's by now.
func (s *streams) leave(mine *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o == mine {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			break
		}
	}
	close(mine.gone)
}
