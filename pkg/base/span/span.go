// Package span measures how long something has held without a break.
package span

import "time"

// LongestGap is how far apart two looks may be for the time between them to count:
// while the device sleeps or hangs, nobody looks.
const LongestGap = 90 * time.Second

// Span is how long something has held without a break, by the time since boot.
type Span struct {
	Holds bool
	Began time.Duration
	Last  time.Duration // when it was last noted
}

// Note continues the span or ends it. It begins again after a time in which nobody
// looked.
func (s *Span) Note(now time.Duration, holds bool) {
	if holds && (!s.Holds || now-s.Last > LongestGap) {
		s.Began = now
	}
	s.Holds, s.Last = holds, now
}

// Reached reports whether it has held for d.
func (s Span) Reached(now, d time.Duration) bool { return s.Holds && now-s.Began >= d }
