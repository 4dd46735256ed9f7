package sriov

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

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
// naming, stays as it was, with the boot in which it was last seen.
func (f facts) wanted(s state, m *memory) (*part, time.Duration) {
	if f.scanned == nil || f.config.Version == "" && len(f.scanned.vfs) == 0 {
		return nil, lookAgain
	}
	want, since, again := part{}, map[string]time.Time{}, lookAgain
	taken := map[string]bool{}
	for _, v := range f.scanned.vfs {
		taken[v.name()], taken[v.Address] = true, true
		if v.Bound {
			v.Boot = f.boot
		}
		want.VFs = append(want.VFs, v)
	}
	for _, v := range s.current.VFs {
		if taken[v.name()] || taken[v.Address] {
			continue
		}
		if !slices.Contains(f.scanned.unread, v.Address) {
			at, ok := m.lacking[v.name()]
			if !ok {
				at = f.now
			}
			since[v.name()] = at
			left := shrinkAfter - f.now.Sub(at)
			if again = min(again, max(left, time.Second)); left <= 0 {
				continue
			}
		}
		want.VFs = append(want.VFs, v)
	}
	m.lacking = since
	slices.SortFunc(want.VFs, compareVFs)
	return &want, again
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

const (
	// shrinkAfter is how long a function has to be missing from domainmgr's list:
	// at boot the list grows port by port.
	shrinkAfter = 2 * time.Minute
	// goneAfter is how long a Node has to be missing before its part is dropped: a
	// node that joins again is missing for a moment, and looks at its part before.
	goneAfter = 5 * time.Minute
	// orphanAfter is how long an attachment has to be without a resource: domainmgr
	// makes it for a function that its node's part does not tell of yet.
	orphanAfter = 10 * time.Minute
	// minPause and maxPause are between two corrections of what others wrote. EVE's
	// own zedkube writes its nodes' functions alone, once a minute, and restarts
	// its plug-in whenever it does: so the less often, the longer it goes on.
	minPause = time.Minute
	maxPause = time.Hour
	// restartPause is between two restarts of the plug-in.
	restartPause = time.Minute
	// clockSlack is how far the clocks of this node and of the API server may differ.
	clockSlack = time.Minute
	// lookAgain is how often the ConfigMap is looked at while nothing is changing.
	lookAgain = 10 * time.Minute
)

// facts is everything decide may look at; all of it is fresh.
type facts struct {
	now      time.Time
	own      string   // this node
	boot     string   // its boot ID
	nodes    []string // all of them, this one included
	scanned  *scanned // nil while domainmgr's list, or what sysfs says of it, is not known
	config   types.SRIOVConfig
	plugins  []types.SRIOVPlugin  // on this node
	networks []types.SRIOVNetwork // all that a device plug-in serves
	memory   memory
}

// memory is what this process remembers. Losing it costs a pause, or one restart
// of the plug-in.
type memory struct {
	lacking   map[string]time.Time // since when functions of the own part, by name, are missing
	gone      map[string]time.Time // since when nodes with a part are
	ownerless map[string]time.Time // since when attachments, by UID, have had no resource
	wrote     string               // fingerprint of the part this process wrote, while no plug-in is known to have read it
	settled   string               // the part and the merge that are older than any plug-in seen from now on
	repaired  time.Time            // when this process last corrected what others wrote
	pause     time.Duration        // before it does again
	intact    time.Time            // since when it has found nothing to correct; zero for the contrary
	// when someone had last corrected by then; it has not changed since
	corrected time.Time
	restart   time.Time // when it last restarted the plug-in
}

type action struct {
	change  *types.SRIOVConfig
	why     change
	mark    []types.SRIOVPlugin
	restart []types.SRIOVPlugin
	drop    []types.SRIOVNetwork
	again   time.Duration // until the next look
	foreign []string      // resources of nodes without a part
	memory  memory
}

type change string

const (
	ownPart change = "the functions of this node changed"
	tidy    change = "functions of nodes that left, or without an owner, are removed"
	correct change = "another agent overwrote the configuration"
)

// decide says what this node has to write, and what its plug-in has to read again.
func decide(f facts) action {
	s := f.state()
	a := action{memory: f.memory, again: lookAgain}
	want, later := f.wanted(s, &a.memory)
	a.again = min(a.again, later)
	gone, later := f.gone(s, &a.memory)
	a.again = min(a.again, later)
	a.foreign = names(s.foreign)
	f.sweep(s, &a)

	why, due := f.due(s, want, gone, &a.memory)
	switch {
	case why == "":
	case f.now.Before(due):
		a.again = min(a.again, due.Sub(f.now))
	default:
		f.write(s, want, gone, why, &a)
		return a
	}
	// Until it is known what the node has, its part may be of the boot before.
	if s.has && s.intact && f.scanned != nil {
		f.plugin(s, &a)
	}
	return a
}

// due says why the ConfigMap is to be written, if it is, and from when on.
func (f facts) due(s state, want *part, gone []string, m *memory) (change, time.Time) {
	f.endPause(s, m)
	pause := m.repaired.Add(max(m.pause, minPause))
	idle := len(s.parts) == 0 && (want == nil || len(want.VFs) == 0)
	nobodys := len(s.foreign) > 0 || slices.ContainsFunc(s.config.others, isEVE) // resources of EVE's
	switch {
	case want != nil && (!s.has || !slices.Equal(want.VFs, s.current.VFs)):
		return ownPart, f.now
	case !s.intact && (s.has || !idle) && (len(s.current.VFs) > 0 || s.config.broken && f.config.Data[configKey] != ""):
		return correct, pause
	case f.config.Version == "":
		return "", f.now
	case len(gone) > 0, f.quiet(s, m) && nobodys:
		return tidy, pause
	}
	return "", f.now
}

// write asks for the own part and the merge of all, in one change.
func (f facts) write(s state, want *part, gone []string, why change, a *action) {
	a.change, a.why, a.again = &types.SRIOVConfig{Version: f.config.Version, Data: map[string]string{}}, why, 0
	a.drop = nil // first the parts
	all, others := []vf{}, s.config.others
	if f.quiet(s, &a.memory) {
		others = slices.DeleteFunc(slices.Clone(others), isEVE)
	} else {
		all = append(all, s.foreign...)
	}
	own := s.current
	if want != nil {
		own.VFs = want.VFs
	}
	if why == ownPart || why == correct && s.has {
		// A first part without anything to offer is no change, and has no date, unless
		// the plug-in may have read of functions that are nobody's now.
		print, unknown := own.fingerprint(), !s.has && len(s.foreign) > 0
		if print != s.current.fingerprint() || unknown || why == correct && print != nothing {
			own.Since = f.now.UTC().Truncate(time.Second)
			a.memory.wrote, a.memory.settled = print, ""
		}
		a.change.Data[partKey(f.own)] = own.text()
	}
	all = append(all, own.VFs...)
	for node, p := range s.parts {
		switch {
		case slices.Contains(gone, node):
			a.change.Data[partKey(node)] = ""
		case node != f.own:
			all = append(all, p.VFs...)
		}
	}
	if !s.whole && f.config.Data[configKey] != "" {
		a.change.Data[mergedKey] = string(encode(merged{Since: f.now.UTC().Truncate(time.Second)}))
	}
	if text := merge(all, others); !sameValue(text, f.config.Data[configKey]) {
		a.change.Data[configKey] = text
	}
	if why != ownPart {
		a.memory.repaired = f.now
	}
	if why == correct {
		a.memory.pause = min(max(2*a.memory.pause, minPause), maxPause)
	}
}

// plugin has the plug-in of this node read the configuration again, unless it
// has read the own part as it is. The mark on its pod says which one it has read.
func (f facts) plugin(s state, a *action) {
	part, m := s.current.fingerprint(), &a.memory
	since := s.current.Since
	if s.since.After(since) {
		since = s.since
	}
	settled := part + " " + s.since.String()
	var stale []types.SRIOVPlugin
	for _, pod := range f.plugins {
		switch {
		case pod.Terminating || pod.Part == part:
		case pod.Part == "" && (m.settled == settled || m.wrote != part && pod.Created.After(since.Add(clockSlack))):
			pod.Part = part
			a.mark = append(a.mark, pod)
		default:
			stale = append(stale, pod)
		}
	}
	if len(stale) > 0 && !m.restart.IsZero() && f.now.Sub(m.restart) < restartPause {
		a.again = min(a.again, restartPause-f.now.Sub(m.restart))
		return
	}
	if len(stale) > 0 {
		a.restart, m.restart = stale, f.now
	}
	// Whichever pod is not in this list, which is younger than the part, has not
	// been there before it.
	m.settled, m.wrote = settled, ""
}

// sweep drops the attachments whose resource no node has.
func (f facts) sweep(s state, a *action) {
	if !f.quiet(s, &a.memory) {
		a.memory.ownerless = nil
		return
	}
	served := map[string]bool{}
	for _, p := range s.parts {
		for _, v := range p.VFs {
			served[resourcePrefix+"/"+v.name()] = true
		}
	}
	since := map[string]time.Time{}
	for _, n := range f.networks {
		if !strings.HasPrefix(n.Resource, resourcePrefix+"/") || served[n.Resource] {
			continue
		}
		at, ok := a.memory.ownerless[n.UID]
		if !ok {
			at = f.now
		}
		since[n.UID] = at
		if left := orphanAfter - f.now.Sub(at); left > 0 {
			a.again = min(a.again, left)
		} else {
			a.drop = append(a.drop, n)
		}
	}
	a.memory.ownerless = since
}
