package kubeapi

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/zedkube/zedkube/types"
)

// longestLease bounds the duration that a holder wrote: twice EVE's. One of
// years would keep everybody else out for as long after its death.
const longestLease = 10 * time.Minute

// sighting is a Lease and since when it has been known to be so.
type sighting struct {
	types.Lease
	since time.Time
}

// until is until when the Lease is its holder's, if it is not renewed; zero for
// one without holder. Nobody's clock counts but ours, and no duration below
// least: it is missing or wrong, and whoever lives renews within that time.
func (s sighting) until(least time.Duration) time.Time {
	if s.Holder == "" {
		return time.Time{}
	}
	return s.since.Add(min(max(s.Duration, least), longestLease))
}

// sightings is what one connection has seen of the Leases, by the watch and by
// answers, and when. That a holder has not renewed for long is known only from
// a Lease that was seen before and is the same now: so a look at the server
// precedes whatever is done because of it.
type sightings struct {
	mu      sync.Mutex
	seen    map[string]sighting
	dead    map[string]string // the last version of those that are gone
	whole   bool              // the watch tells of every change
	changed chan struct{}     // closed at the next change; nil while nobody waits
}

// look returns the Lease as it was last seen, without a name if there is none,
// whether a watch keeps that true, and what is closed when either changes.
func (s *sightings) look(name string) (seen sighting, whole bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.seen[name], s.whole, s.changed
}

// told notes what the watch says. It may lag behind an answer.
func (s *sightings) told(row types.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.dead[row.Name]
	if was, ok := s.seen[row.Name]; ok {
		known = was.Version
	}
	if order, err := resourceversion.CompareResourceVersion(row.Version, known); err == nil && order <= 0 {
		return
	}
	s.note(row)
}

// answered notes what the server says now.
func (s *sightings) answered(row types.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(row)
}

// note is called with mu held. What else changes in a Lease is no renewal.
func (s *sightings) note(row types.Lease) {
	was, known := s.seen[row.Name]
	now := sighting{Lease: row, since: time.Now()}
	if known {
		was.Version = row.Version
		if was.Lease == row {
			now.since = was.since
		}
	}
	if s.seen == nil {
		s.seen = map[string]sighting{}
	}
	s.seen[row.Name] = now
	if !known || was.Lease != row {
		s.ring()
	}
}

// gone notes that there is no such Lease.
func (s *sightings) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.seen[name]; known {
		if s.dead == nil {
			s.dead = map[string]string{}
		}
		s.dead[name] = was.Version
		delete(s.seen, name)
		s.ring()
	}
}

// holds notes whether a watch tells of every change.
func (s *sightings) holds(_ string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != whole {
		s.whole = whole
		s.ring()
	}
}

// ring is called with mu held.
func (s *sightings) ring() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// sighted is a table whose rows are noted on their way in.
type sighted struct {
	Writer[types.Lease]
	seen *sightings
}

// Publish implements Writer.
func (s sighted) Publish(name string, row types.Lease) error {
	s.seen.told(row)
	return s.Writer.Publish(name, row)
}

// Unpublish implements Writer.
func (s sighted) Unpublish(name string) error {
	s.seen.gone(name)
	return s.Writer.Unpublish(name)
}
