package sriov

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"
)

// state is what the facts say of the ConfigMap.
type state struct {
	parts   map[string]part // of all nodes, those that left included
	current part            // the own one
	has     bool            // which is there, and can be read
	config  config
	foreign []vf      // in the configuration, in no part
	known   bool      // the parts of all nodes are
	intact  bool      // the configuration has all that the own part has
	whole   bool      // and all that every part has
	since   time.Time // since when, as far as anyone has noticed
}

// state reads the ConfigMap.
func (f facts) state() state {
	s := state{config: readConfig(f.config.Data[configKey]), since: readMerged(f.config.Data[mergedKey])}
	s.parts = parts(f.config.Data)
	s.current, s.has = s.parts[f.own]
	logged := map[vf]bool{}
	for _, p := range s.parts {
		for _, v := range p.VFs {
			logged[v.place()] = true
		}
	}
	written := map[vf]bool{}
	for _, v := range s.config.vfs {
		written[v] = true
		if !logged[v] {
			s.foreign = append(s.foreign, v)
		}
	}
	s.intact, s.whole = !s.config.broken, !s.config.broken
	for node, p := range s.parts {
		for _, v := range p.VFs {
			s.whole = s.whole && written[v.place()]
			s.intact = s.intact && (node != f.own || written[v.place()])
		}
	}
	s.known = true
	for _, node := range f.nodes {
		_, has := s.parts[node]
		s.known = s.known && has
	}
	return s
}

// wanted is what the own part should be, nil while it is not known or should not
// be at all. What sysfs does not show, and what domainmgr has only just stopped
// naming, stays as it was.
func (f facts) wanted(s state, m *memory) (*part, time.Duration) {
	if f.scanned == nil || f.config.Version == "" && len(f.scanned.vfs) == 0 {
		return nil, lookAgain
	}
	taken := map[string]bool{}
	for _, v := range f.scanned.vfs {
		taken[v.name()], taken[v.Address] = true, true
	}
	want, lacks := part{VFs: slices.Clone(f.scanned.vfs)}, false
	for _, v := range s.current.VFs {
		unread := slices.Contains(f.scanned.unread, v.Address)
		switch {
		case taken[v.name()] || taken[v.Address]:
			continue
		case !unread && !m.lacking.IsZero() && f.now.Sub(m.lacking) >= shrinkAfter:
			lacks = true
			continue
		case !unread:
			lacks = true
		}
		want.VFs = append(want.VFs, v)
	}
	slices.SortFunc(want.VFs, compareVFs)
	switch {
	case !lacks:
		m.lacking = time.Time{}
		return &want, lookAgain
	case m.lacking.IsZero():
		m.lacking = f.now
	}
	return &want, max(shrinkAfter-f.now.Sub(m.lacking), time.Second)
}

// gone are the nodes with a part that have left the cluster.
func (f facts) gone(s state, m *memory) ([]string, time.Duration) {
	since, again := map[string]time.Time{}, lookAgain
	var gone []string
	for _, node := range slices.Sorted(maps.Keys(s.parts)) {
		if slices.Contains(f.nodes, node) {
			continue
		}
		at, ok := m.gone[node]
		if !ok {
			at = f.now
		}
		since[node] = at
		if left := goneAfter - f.now.Sub(at); left > 0 {
			again = min(again, left)
		} else {
			gone = append(gone, node)
		}
	}
	m.gone = since
	return gone, again
}

// endPause ends the pauses when all looks for as long as the last one have found
// nothing overwritten, nor another node's correction. One look does not show
// that: another node may have corrected it a moment ago.
func (f facts) endPause(s state, m *memory) {
	switch {
	case !s.intact:
		m.intact = time.Time{}
	case m.intact.IsZero() || !s.since.Equal(m.corrected):
		m.intact, m.corrected = f.now, s.since
	case f.now.Sub(m.intact) >= max(lookAgain, m.pause):
		m.pause = 0
	}
}

// quiet reports that the parts tell of all functions of the cluster: every node
// has one, and nobody else writes the configuration.
func (f facts) quiet(s state, m *memory) bool { return s.known && m.pause == 0 }

// superfluous reports resources of EVE's that no node has.
func (f facts) superfluous(s state) bool {
	return len(s.foreign) > 0 || slices.ContainsFunc(s.config.others, isEVE)
}

func isEVE(r resource) bool { return r.Prefix == resourcePrefix }

func names(vfs []vf) []string {
	var out []string
	for _, v := range vfs {
		out = append(out, v.name())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sameValue compares JSON by value: EVE's own zedkube writes it in many lines.
func sameValue(a, b string) bool {
	var is, was any
	return json.Unmarshal([]byte(a), &is) == nil && json.Unmarshal([]byte(b), &was) == nil && reflect.DeepEqual(is, was)
}
