package peers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

const (
	// silentFor is how long nothing may have answered: longer than a device takes
	// to reboot.
	silentFor = 10 * time.Minute
	// lookEvery is the time from one look to the next, unless that one takes longer.
	lookEvery = 15 * time.Second
	// listEvery is how old the list of the volumes may get.
	listEvery = time.Hour
)

// facts is everything decide may look at.
type facts struct {
	now    time.Time     // the wall clock, to be shown only
	uptime time.Duration // what everything is measured with
	bootID string

	request    *types.ClusterLeaveRequest // one to leave without the cluster; nil for none
	membership types.ClusterMembership
	was        types.WithoutCluster // what was found so far
	kept       types.ClusterPeers   // what is known of the others

	answers bool       // the API server does
	dead    bool       // it is known not to
	synced  bool       // and its tables are complete
	own     types.Node // zero where there is none
	nodes   map[string]types.Node
	mayList bool
	listed  *listed // the list that has just come; nil for none

	controller bool  // was reached at the last try
	looking    bool  // a look is under way
	seen       *Look // the look that has just ended; nil for none
	looked     time.Duration
	silent     span.Span // nothing has answered, and would have been heard
}

// action is everything decide may ask for.
type action struct {
	keep    *types.ClusterPeers
	drop    bool // what was kept: this device has left that cluster
	list    bool
	without *types.WithoutCluster
	forget  bool
	look    bool
	silent  span.Span
	again   time.Duration
}

// decide says what to keep, and how the evidence stands.
func decide(f facts) action {
	a := action{silent: f.silent, again: time.Minute}
	remember(f, &a)
	prove(f, &a)
	return a
}

// remember keeps what the cluster tells while it can.
func remember(f facts, a *action) {
	m := f.membership
	a.drop = m.State == types.MembershipLeft
	if !m.Belongs() || m.Config == nil || !f.synced || f.own.Name == "" {
		return
	}
	keep := f.kept
	if cluster := m.Config.ClusterID.UUID; keep.Cluster != cluster {
		keep = types.ClusterPeers{Cluster: cluster}
	}
	keep.Peers = peersOf(f)
	keep.Words = words(f, keep.Words)
	if f.now.Sub(keep.Seen).Abs() >= listEvery {
		keep.Seen = f.now
	}
	if f.listed != nil && f.listed.err == nil {
		keep.Volumes, keep.Omitted = here(f.listed.storage, f.own.Name)
		keep.VolumesAt = f.listed.at
	}
	a.keep = &keep
	a.list = f.mayList && f.listed == nil && f.now.Sub(keep.VolumesAt).Abs() >= listEvery
}

// here are the volumes of Longhorn with a replica on node: all of them go when
// the node leaves, the last replica or not.
func here(s types.Storage, node string) (volumes []types.LeaveVolume, omitted int) {
	for _, v := range s.Volumes {
		if s.Longhorn && v.On(node) {
			volumes = append(volumes, types.LeaveVolume{UID: v.UID, Name: v.Name, Claim: v.Claim})
		}
	}
	slices.SortFunc(volumes, func(a, b types.LeaveVolume) int { return cmp.Compare(a.Name, b.Name) })
	n := min(len(volumes), types.MaxLeaveVolumes)
	return volumes[:n], len(volumes) - n
}

// maxWords bounds what is kept of witnesses.
const maxWords = 64

// words are what the nodes say of each other, the former ones where they say the
// same.
func words(f facts, old []types.PeerWord) []types.PeerWord {
	names := map[string]string{} // by UID
	for name, n := range f.nodes {
		names[n.UID] = name
	}
	var out []types.PeerWord
	for _, by := range slices.Sorted(maps.Keys(f.nodes)) {
		w := f.nodes[by].Witness
		if w == nil {
			continue
		}
		for _, s := range w.Sightings {
			of := names[s.UID]
			if of == "" || s.Alive == "" && s.Silent < types.WitnessSilent || len(out) == maxWords {
				continue
			}
			word := types.PeerWord{By: by, Of: of, Alive: s.Alive, At: f.now}
			for _, o := range old {
				if o.By == by && o.Of == of && o.Alive == s.Alive {
					word.At = o.At
				}
			}
			out = append(out, word)
		}
	}
	return out
}

// prove says how the evidence for a request stands.
func prove(f facts, a *action) {
	r := f.request
	if r == nil {
		a.silent, a.forget = span.Span{}, true
		return
	}
	was := f.was
	if !was.RequestedAt.Equal(r.RequestedAt) {
		was, a.silent = types.WithoutCluster{RequestedAt: r.RequestedAt, State: types.WithoutLooking, Reason: "looking for the other nodes"}, span.Span{}
		f.seen = nil // a look that began for another request
	}
	a.without = &was
	switch used := f.membership.Without != nil || !f.membership.Belongs(); {
	case was.State == types.WithoutProved && !used && was.Fresh(f.uptime):
		a.again = min(a.again, was.Proved+types.ProofFor-f.uptime)
		return
	case was.State == types.WithoutProved && !used: // the API server answered, or the disk was full, say
		was.State, was.Proved, was.SilentSince, a.silent = types.WithoutLooking, 0, time.Time{}, span.Span{}
		was.Reason = fmt.Sprintf("the proof was not used within %s: looking for the other nodes again", types.ProofFor)
	case was.State != types.WithoutLooking:
		return // it is over, one way or the other
	}
	if why := refusal(f); why != "" {
		was.State, was.Reason, was.SilentSince = types.WithoutRefused, why, time.Time{}
		a.silent = span.Span{}
		return
	}
	if a.silent.Holds && f.uptime-f.looked > tooLong(f.kept.Peers) {
		a.silent, was.SilentSince = span.Span{}, time.Time{} // nobody looked: the device slept, say
	}
	count(f, a, &was)
	switch rest := silentFor - (f.uptime - a.silent.Began); {
	case !a.silent.Holds:
	case rest <= 0 && f.seen != nil: // and a moment ago neither
		was.State, was.Proved = types.WithoutProved, f.uptime
		was.Reason = fmt.Sprintf("no other node has answered for %s", silentFor)
		return
	case rest > 0:
		a.again = min(a.again, rest)
	}
	if next := f.looked + lookEvery; f.uptime >= next || f.looked == 0 {
		a.look = !f.looking
	} else {
		a.again = min(a.again, next-f.uptime)
	}
}

// count begins or ends the time for which nothing answers.
func count(f facts, a *action, was *types.WithoutCluster) {
	switch {
	case !f.dead:
		a.silent, was.SilentSince, was.Reason = span.Span{}, time.Time{}, "whether the API server answers is not known yet"
	case f.seen == nil:
	case f.seen.Trouble(f.controller) != "":
		a.silent, was.SilentSince, was.Reason = span.Span{}, time.Time{}, f.seen.Trouble(f.controller)
	case !a.silent.Holds:
		a.silent = span.Span{Holds: true, Began: f.uptime}
		was.SilentSince, was.Reason = f.now, fmt.Sprintf("no other node answers; this node leaves after %s without an answer", silentFor)
	}
}

// tooLong is how long after the beginning of the last look its silence counts.
func tooLong(peers []types.ClusterPeer) time.Duration {
	return 2*lookEvery + lookWithin(len(Places(peers)))
}

// refusal says why a request is over, "" for it is not. It is closed: whatever is
// not known speaks against it.
func refusal(f facts) string {
	m := f.membership
	switch {
	case f.answers:
		return "the API server answers: leave with zedkube leave"
	case !m.Belongs() || m.Config == nil:
		return "this device belongs to no cluster"
	case f.kept.Cluster != m.Config.ClusterID.UUID || len(f.kept.Peers) == 0:
		return "the other nodes of the cluster are not known here"
	}
	if why := Named(f.kept.Peers, f.request.WithoutCluster.Dead); why != "" {
		return why
	}
	w := f.request.Consent
	switch {
	case !w.Holds(f.bootID, m.Config.ClusterID.UUID, f.uptime):
		return "there is no consent to lose the data on this node for this boot and cluster that is less than a day old"
	case !w.Unknown: // between the last list and the end of the cluster there may have come others
		return "which volumes have come here since the last list is unknown, and the consent is only for named volumes"
	case f.kept.Omitted > 0:
		return "more volumes have a replica here than one consent can name"
	}
	if lacks := w.Lacks(f.kept.Volumes); len(lacks) > 0 {
		return fmt.Sprintf("the consent does not name volume %s", lacks[0].Name)
	}
	if f.seen != nil && f.seen.Answer != "" {
		return f.seen.Answer
	}
	return ""
}

// Named says which of the peers an operator has not named as dead, or which name
// is none of theirs, and whether one has no address to be tried; "" for all is well.
func Named(peers []types.ClusterPeer, dead []string) string {
	var missing, unknown, withoutAddress []string
	for _, p := range peers {
		if !slices.Contains(dead, p.Name) {
			missing = append(missing, p.Name)
		}
		if len(p.Addresses) == 0 {
			withoutAddress = append(withoutAddress, p.Name)
		}
	}
	for _, name := range dead {
		if !slices.ContainsFunc(peers, func(p types.ClusterPeer) bool { return p.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	switch {
	case len(unknown) > 0:
		return "the cluster has no other node named " + strings.Join(unknown, ", ")
	case len(missing) > 0:
		return "every other node must be named as off, and these are not: " + strings.Join(missing, ", ")
	case len(withoutAddress) > 0:
		return "no address is known for " + strings.Join(withoutAddress, ", ")
	}
	return ""
}
