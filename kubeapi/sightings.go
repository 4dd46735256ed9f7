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
	turn  int    // of the sightings, when it was last heard of
	told  string // the version that the watch told of last
	gone  bool   // there was such a Lease, of Version at the last
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
	turn    int           // how often anything was heard
	whole   bool          // the watch tells of every change
	changed chan struct{} // closed at the next change; nil while nobody waits
}

// look returns the Lease as it was last seen, without a name if there is none,
// whether a watch keeps that true, and what is closed when either changes.
func (s *sightings) look(name string) (seen sighting, whole bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	if seen = s.seen[name]; seen.gone {
		seen = sighting{}
	}
	return seen, s.whole, s.changed
}

// told notes what the watch says. It may lag behind an answer.
func (s *sightings) told(row types.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen[row.Name]
	was.told = row.Version
	if !older(row.Version, was.Version) {
		s.note(sighting{Lease: row, told: row.Version})
	} else {
		s.seen[row.Name] = was
	}
}

// ask returns what the answer to a request that begins now is noted with.
func (s *sightings) ask() (asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// answered notes an answer. The watch may have told of later things meanwhile;
// what it told before, the answer corrects: a restored etcd counts from an
// earlier version on.
func (s *sightings) answered(row types.Lease, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.seen[row.Name]; was.turn <= asked || !older(row.Version, was.Version) {
		s.note(sighting{Lease: row})
	}
}

// absent notes an answer that there is no such Lease.
func (s *sightings) absent(name string, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[name].turn <= asked {
		s.remove(name)
	}
}

// untold notes that the watch says that the Lease was removed: the one that it
// told of last. An answer may have told of one that was made since.
func (s *sightings) untold(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.seen[name]; was.told == "" || was.told == was.Version || !older(was.told, was.Version) {
		s.remove(name)
	}
}

// gone notes that the Lease was removed.
func (s *sightings) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(name)
}

// older reports that version comes before known or is the same, as far as they
// can be compared.
func older(version, known string) bool {
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order <= 0
}

// remove is called with mu held. The version stays known, to tell apart what
// the watch says of the Lease afterwards.
func (s *sightings) remove(name string) {
	if was, ok := s.seen[name]; ok && !was.gone {
		s.note(sighting{Lease: types.Lease{Name: name, Version: was.Version}, gone: true})
	}
}

// note is called with mu held. A change of the Lease that is none of these
// fields is no renewal.
func (s *sightings) note(now sighting) {
	s.turn++
	now.turn, now.since = s.turn, time.Now()
	was, known := s.seen[now.Name]
	if now.told == "" {
		now.told = was.told
	}
	was.Version = now.Version
	same := known && was.Lease == now.Lease && was.gone == now.gone
	if same {
		now.since = was.since
	}
	if s.seen == nil {
		s.seen = map[string]sighting{}
	}
	s.seen[now.Name] = now
	if !same {
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
	s.seen.untold(name)
	return s.Writer.Unpublish(name)
}
