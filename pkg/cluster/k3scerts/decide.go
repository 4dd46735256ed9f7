package k3scerts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// seenEvery is how often the newest time is kept: it is written to the disk.
	seenEvery = time.Hour
	// trusted is how far ahead of the newest time the clock is believed without anyone
	// who agrees: a device without a network is switched off for a night.
	trusted = 24 * time.Hour
	agrees  = time.Hour // of another node's clock
	// maxLeaves and maxAuthorities keep the topic within the size of a message. k3s has
	// about 25 and 7.
	maxLeaves      = 48
	maxAuthorities = 16
)

type facts struct {
	now         time.Time
	contact     bool                       // zedagent has got a configuration from the controller
	clocks      map[string]types.NodeClock // of the other nodes, from us
	hears       bool                       // they are those of now
	leaves      []types.K3sCertificate     // without State
	authorities []types.K3sCertificate
	unread      []string
	published   types.K3sCertificates
}

// decide judges what was found. Where nothing was found, what was known stays.
func decide(f facts) types.K3sCertificates {
	s := types.K3sCertificates{Leaves: f.leaves, Authorities: f.authorities, Unread: f.unread, SeenAt: f.published.SeenAt}
	if len(s.Leaves) == 0 {
		s.Leaves, s.Authorities = slices.Clone(f.published.Leaves), slices.Clone(f.published.Authorities)
	}
	s.ClockDoubt = doubt(f)
	apart := f.now.Sub(s.SeenAt)
	// A clock that nobody confirms is not the first to be kept: a later one that is
	// right would be doubted for as long as it was ahead.
	if s.ClockDoubt == "" && (apart < 0 || apart >= seenEvery) && (!s.SeenAt.IsZero() || f.contact || f.othersAgree()) {
		s.SeenAt = f.now
	}
	for i, c := range s.Leaves {
		s.Leaves[i].State = types.LeafState(c.NotAfter.Sub(f.now))
	}
	for i, c := range s.Authorities {
		s.Authorities[i].State = types.AuthorityState(c.NotAfter.Sub(f.now))
	}
	for _, list := range [][]types.K3sCertificate{s.Leaves, s.Authorities} {
		slices.SortFunc(list, func(a, b types.K3sCertificate) int {
			if order := a.NotAfter.Compare(b.NotAfter); order != 0 {
				return order
			}
			return strings.Compare(a.Where, b.Where)
		})
	}
	s.Leaves, s.Authorities = s.Leaves[:min(maxLeaves, len(s.Leaves))], s.Authorities[:min(maxAuthorities, len(s.Authorities))]
	slices.Sort(s.Unread)
	return s
}

// doubt is why the clock is not believed, "" where it is. A certificate that seems to be
// about to expire may just be seen by a wrong clock.
func doubt(f facts) string {
	seen, day := f.published.SeenAt, time.DateOnly
	ahead := f.now.Sub(seen)
	switch {
	case seen.IsZero():
	case ahead < 0 && f.contact && (len(f.clocks) == 0 || f.othersAgree()): // the one that was kept was wrong
	case ahead < 0:
		return fmt.Sprintf("It says %s, and this node has seen %s.", f.now.Format(time.RFC3339), seen.Format(time.RFC3339))
	case ahead > trusted && !f.contact && !f.othersAgree():
		return fmt.Sprintf("It says %s, and this node last saw %s; neither the controller nor most other nodes confirm it.", f.now.Format(day), seen.Format(day))
	}
	for _, c := range slices.Concat(f.leaves, f.authorities) { // in a handshake anybody may present one
		if filepath.IsAbs(c.Where) && c.NotBefore.After(f.now) {
			return fmt.Sprintf("Certificate %s is not valid before %s.", c.Name, c.NotBefore.Format(time.RFC3339))
		}
	}
	return ""
}

// othersAgree reports that most of the other nodes have about our time. A clock that is set may
// make the API server silent, and what they agreed with then was the one of before.
func (f facts) othersAgree() bool {
	n := 0
	for _, c := range f.clocks {
		if c.Ahead.Abs() <= agrees {
			n++
		}
	}
	return f.hears && 2*n > len(f.clocks)
}
