package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// The requesters, as the journal and the progress record name them.
const (
	byDeviceOp = "DEVICEOP"
	byUpdate   = "UPDATE"
	byOperator = "OPERATOR"
	byK3s      = types.RequestedByK3s
	byLeave    = "LEAVE"
)

// requesters is their order.
var requesters = []string{byDeviceOp, byUpdate, byOperator, byK3s, byLeave}

// agents are those of EVE that request drains, by their number in NodeDrainStatus.
var agents = map[types.DrainRequester]string{types.DrainRequesterDeviceOp: byDeviceOp, types.DrainRequesterUpdate: byUpdate}

// request is what one requester asks for.
type request struct {
	types.NodeDrainRequest
	active bool // certainly; else it was, and its topic has not been heard of since
}

// facts is everything a decision rests on. Times are of the boot clock.
type facts struct {
	observed        // in this step
	memory          // of this process
	rec      record // the journal, which restarts of this boot share

	// What follows from them.
	member      bool // of a cluster, as far as was ever known
	requests    map[string]request
	notReceived bool // an agent's topic has not been heard of yet
	forced      *types.NodeDrainStatus
	dropForce   bool          // force files from before this boot are to be removed
	inUse       string        // what shows that the device goes down or is updated, "" for nothing
	silentSince time.Duration // 0 while the API answers
	deadSince   time.Duration // the same, or since when writes get no answer
	up          bool          // the own node is Ready in this boot
	why         string        // why the own node is not known, or the API silent
	registered  bool          // this process, or this drain, has seen it
	others      int           // other nodes there are
	ends        bool          // the cluster ends with this node, as the tables show it
	unlocked    string        // which other servers may be draining without the lock, "" for none
	goes        string        // which other node is complete without the lock, "" for none
	warnings    []string      // foreign cordons of other nodes that no drain waits for
	queued      bool          // another node waits at its gates, or drains
	lease       bool          // the lock is this node's as the cluster shows it, and not known to be held for something else
	trouble     string        // why the last call failed, "" where it did not
	came        []string      // pods that the last list did not know, by name
	entered     bool          // lock and quorum are had, a moment ago
}

// checked is the last look at everything that has to be true before COMPLETE.
type checked struct {
	at      time.Duration // when its result came; 0 for none
	lone    bool          // no other node would take the pods: only the gates were looked at
	pods    []string      // those left, by name
	volumes []types.DrainVolume
	quorum  string
	lock    string

	uncordoned bool // somebody has undone the cordon: nothing else was looked at
}

// passed reports that all of it was true, a moment ago.
func (c checked) passed(now time.Duration) bool {
	return c.open(now) && !c.lone && len(c.volumes) == 0
}

// rebuilt says for which rebuilds a drain waits that evicts nothing, "" for none.
func (c checked) rebuilt() string {
	if !c.lone || len(c.volumes) == 0 {
		return ""
	}
	return c.volumes[0].Name + ": " + c.volumes[0].Why
}

// open reports that the gates stood open a moment ago: nobody else has the lock
// and etcd can do without this node.
func (c checked) open(now time.Duration) bool {
	looked := c.lone || len(c.pods) == 0 // else the pods were reason enough to wait
	rebuilt := !c.lone || len(c.volumes) == 0
	return c.at != 0 && now-c.at < checkedFor && looked && rebuilt && c.quorum == "" && c.lock == "" && !c.uncordoned
}

// action is what to do about the facts.
type action struct {
	rec       record
	published types.NodeDrainStatus // what NodeDrainStatus has to say
	stop      bool                  // no call of a drain may go on
	verb      verb                  // to start, unless a call is under way
	evict     []types.Pod
	consume   bool   // remove the force file
	waits     string // what a drain under way cannot go on without
	again     time.Duration
}

func (f facts) living() bool { return f.silentSince == 0 }
func (f facts) due(v verb) bool {
	return f.now >= f.retry[v]
}

func (f facts) ourCordon() bool {
	return f.known && f.node.Unschedulable && f.node.CordonedForDrain()
}

// stopped reports that no drain may run: nobody asks, this node belongs to no
// cluster, or an operator says so. A request that has only not been heard of
// again still asks.
func (f facts) stopped() bool {
	return f.forced != nil && f.forced.Status <= types.DrainNotRequested || !f.member || len(f.requests) == 0
}

// asks reports that a request is certainly active.
func (f facts) asks() bool {
	for _, r := range f.requests {
		if r.active {
			return true
		}
	}
	return false
}

// hasNewRequest reports that a request is active whose drain has not failed.
func (f facts) hasNewRequest() bool {
	for _, r := range f.requests {
		if r.active && !slices.ContainsFunc(f.rec.Failed, r.RequestedAt.Equal) {
			return true
		}
	}
	return false
}

// asking reports that this one of EVE's agents asks, or did when last heard of.
func (f facts) asking(by types.DrainRequester) bool {
	_, asks := f.requests[cmp.Or(agents[by], byDeviceOp)]
	return asks
}

// device reports that one of EVE's agents asks, for which NodeDrainStatus is.
func (f facts) device() bool { return f.by() != types.DrainRequesterNone }

// onlyLeaves reports that the one reason for the drain is to leave the cluster.
func (f facts) onlyLeaves() bool {
	return len(f.requests) == 1 && f.requests[byLeave].active
}

// standing is the requests to remember.
func (f facts) standing() map[string]types.NodeDrainRequest {
	m := map[string]types.NodeDrainRequest{}
	for name, r := range f.requests {
		m[name] = r.NodeDrainRequest
	}
	if maps.EqualFunc(m, f.rec.Requests, sameRequest) {
		return f.rec.Requests
	}
	return m
}

func sameRequest(a, b types.NodeDrainRequest) bool {
	return a.RequestedBy == b.RequestedBy && a.Context == b.Context && a.RequestedAt.Equal(b.RequestedAt)
}

// cordoned reports that the node takes no new pods as far as anybody can know:
// the table says so, or it may not have caught up with our cordon yet.
func (f facts) cordoned() bool {
	return f.node.Unschedulable || f.cordonAgain != 0 && f.now-f.cordonAgain < settle
}

// losses is how often somebody else has undone this drain's cordon.
func (f facts) losses() int { return f.rec.Losses + f.unseen }

// by is whom the status is for: the device operation, else the update.
func (f facts) by() types.DrainRequester {
	was := f.rec.Status.RequestedBy
	op, update := f.asking(types.DrainRequesterDeviceOp), f.asking(types.DrainRequesterUpdate)
	switch {
	case f.requests[byDeviceOp].active, op && was == types.DrainRequesterDeviceOp:
		return types.DrainRequesterDeviceOp
	case f.requests[byUpdate].active, update && was == types.DrainRequesterUpdate:
		return types.DrainRequesterUpdate
	case op:
		return types.DrainRequesterDeviceOp
	case update:
		return types.DrainRequesterUpdate
	}
	return types.DrainRequesterNone
}

func underWay(s types.DrainStatus) bool {
	return s == types.DrainRequested || s == types.DrainStarting || s == types.DrainCordoned || s == types.DrainRetrying
}

func failed(s types.DrainStatus) bool {
	return s == types.DrainFailedCordon || s == types.DrainFailedDrain
}

func final(s types.DrainStatus) bool { return failed(s) || s == types.DrainComplete }

// drains reports that a phase is one of a drain under way.
func drains(p types.DrainPhase) bool { return p == types.PhaseGates || p == types.PhaseEmptying }

// forced reports that the drain is Complete only because an operator says so: pods may
// be left on the node.
func (r record) forced() bool { return r.Phase == types.PhaseComplete && r.Reason == becauseForced }

// ends reports that a phase is an end of a drain.
func ends(p types.DrainPhase) bool {
	return p == types.PhaseComplete || p == types.PhaseNoCordon || p == types.PhaseNotEmpty
}
