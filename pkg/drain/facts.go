package drain

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// request is one requester's word.
type request struct {
	stands  bool
	doubt   bool // not heard of yet: it may stand
	failed  bool // stands, but it is the one whose drain failed
	context string
}

// evictee is a pod that has to leave.
type evictee struct {
	pod         types.Pod
	accepted    time.Time // when its eviction was accepted; zero before
	next        time.Time // no try before this
	backoff     time.Duration
	refused     bool // a budget's refusal has been reported
	gone        bool
	terminating bool
}

// facts is everything a decision rests on.
type facts struct {
	now      time.Time
	status   types.NodeDrainStatus // published; zero for nothing yet
	since    time.Time             // when it last changed
	standing time.Time             // since when its requester sees a drain under way
	told     map[types.DrainRequester]bool

	member           bool // of a cluster, by a valid configuration
	deviceOp, update request
	asked            time.Time // when the drain was asked for
	forced           *types.NodeDrainStatus
	held             bool // the fault marker exists

	timeout, skip time.Duration
	silentSince   time.Time // zero while the API answers
	synced        bool      // the tables hold what the API server has
	node          types.Node
	known         bool
	why           string    // why the own node is not known, or the API silent
	missing       time.Time // since when a living cluster has no such node
	tieBreaker    bool
	newBoot       bool
	others        int       // other nodes there are
	alone         time.Time // since when none of them is Ready and takes pods

	cordonedAt time.Time // when this drain's last cordon succeeded; zero for not yet
	losses     int       // times somebody made the node schedulable again since
	refusals   int
	retry      map[verb]time.Time
	list       time.Time
	unknown    bool // there are pods the last list did not know
	pods       []evictee
	running    verb
}

// action is what to do about the facts.
type action struct {
	status  types.NodeDrainStatus
	reason  string // for the log, where the status changes
	stop    bool   // no call of a drain may go on
	verb    verb   // to start, unless a call is under way
	evict   []types.Pod
	consume bool   // remove the force file
	waits   string // for the log: what a drain under way cannot go on without
	again   time.Duration
}

func (f facts) living() bool    { return f.silentSince.IsZero() }
func (f facts) asks() bool      { return f.deviceOp.stands || f.update.stands }
func (f facts) withdrawn() bool { return !f.asks() && !f.deviceOp.doubt && !f.update.doubt }
func (f facts) due(v verb) bool { return !f.now.Before(f.retry[v]) }
func (f facts) ourCordon() bool {
	return f.known && f.node.Unschedulable && f.node.CordonedBy != nil
}

func (f facts) asksAnew() bool {
	return f.deviceOp.stands && !f.deviceOp.failed || f.update.stands && !f.update.failed
}

// cordoned reports that the node takes no new pods as far as anybody can know:
// the table says so, or it may not have caught up with our cordon yet.
func (f facts) cordoned() bool {
	return f.node.Unschedulable || !f.cordonedAt.IsZero() && f.now.Sub(f.cordonedAt) < settle
}

// by is whom the status is for: the device operation, else the update.
func (f facts) by() types.DrainRequester {
	was := f.status.RequestedBy
	switch {
	case f.deviceOp.stands, f.deviceOp.doubt && was == types.DrainRequesterDeviceOp:
		return types.DrainRequesterDeviceOp
	case f.update.stands, f.update.doubt && was == types.DrainRequesterUpdate:
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

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
