package applogs

import (
	"context"
	"time"
)

// rest reads nothing while nobody wants the log. It reports false when ctx is
// done or the pod is gone.
func (t *follower) rest(ctx context.Context) bool {
	t.press(false)
	if !t.written.Off {
		s := t.written
		s.Off = true
		l := &look{follower: t, state: s, noted: s, written: t.written}
		_ = l.flush(ctx) // what is not noted now is noted with the next look
		t.written = s
	}
	return !t.want.gone && t.await(ctx, quiet)
}

// from is where a log begins that is wanted from now on.
func (s checkpoint) from(w want, now time.Time) checkpoint {
	c := w.container
	s.ID, s.Run, s.Begun, s.Whole, s.Off = c.Now.ID, c.Restarts, true, !c.Now.Finished.IsZero(), false
	if s.ID == "" {
		s.ID, s.Run, s.Whole = c.Last.ID, c.Restarts-1, true
	}
	s.position, s.Dropped = position{At: now.UTC()}, dropped{}
	return s
}
