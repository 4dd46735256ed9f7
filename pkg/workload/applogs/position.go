package applogs

import "time"

// position is how far one log is handed on. A kubelet is asked for what is not
// older than a second, and lines have times that may repeat: so it is the last
// line's time, and which of those with that very time it was.
type position struct {
	At   time.Time `json:"at,omitzero"`    // of the last line; zero before the first
	N    int       `json:"n,omitempty"`    // how many lines with that time there were; 0 where At is a time and no line
	Part int64     `json:"part,omitempty"` // bytes of the last line that are out while its end is not; 0 once it is
	High time.Time `json:"high,omitzero"`  // the latest time of all lines, where a clock was set back
}

// since is what to ask a kubelet for to find the last line again.
func (p position) since() time.Time { return p.At.Truncate(time.Second) }

// latest is the latest time of all lines.
func (p position) latest() time.Time {
	if p.High.After(p.At) {
		return p.High
	}
	return p.At
}

// line moves on by one line.
func (p *position) line(at time.Time) {
	if at.Equal(p.At) {
		p.N++
	} else {
		latest := p.latest()
		p.At, p.N = at, 1
		p.High = time.Time{}
		if latest.After(at) {
			p.High = latest
		}
	}
	p.Part = 0
}

// verdict says what to do with a line.
type verdict int

const (
	known   verdict = iota // it is out already
	rest                   // its beginning is out already
	fresh                  // it is new
	missing                // it is new, but the last known line should have come before it
)

// seeker finds the first new line of a log that begins before it.
type seeker struct {
	from  position
	n     int  // lines with the time of the last known one so far
	found bool // all that comes is new
}

func newSeeker(from position) seeker { return seeker{from: from, found: from.At.IsZero()} }

// judge tells of the next line.
func (s *seeker) judge(at time.Time) verdict {
	switch {
	case s.found:
		return fresh
	case s.from.N == 0: // whatever was before that time is not told
		s.found = !at.Before(s.from.At)
		if s.found {
			return fresh
		}
		return known
	case at.Equal(s.from.At):
		s.n++
		if s.n < s.from.N {
			return known
		}
		s.found = true
		if s.from.Part > 0 {
			return rest
		}
		return known
	case at.After(s.from.At) && s.n > 0: // the others of that time are rotated away
		s.found = true
		return fresh
	case at.After(s.from.latest()):
		s.found = true
		return missing
	}
	return known
}
