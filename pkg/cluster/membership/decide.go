package membership

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

// configState is what zedagent says of the cluster.
type configState int

const (
	notRead configState = iota // nothing yet, or nothing that can be acted on
	valid
	invalid
	gone
)

// list is what a Ready peer last received as the cluster's masters after we were
// told that there is no cluster.
type list struct {
	node  string
	names bool // this device is in it
}

// facts is everything decide may look at.
type facts struct {
	now       time.Time     // the wall clock, to be shown only
	uptime    time.Duration // what everything is measured with
	was       types.ClusterMembership
	published bool // there is a was

	configState configState
	config      types.EdgeNodeClusterConfig // where word is valid
	fetched     bool                        // zedagent reached the controller at its last try
	interval    time.Duration               // between two tries
	hour        time.Duration

	requested           bool                   // there is a ClusterLeaveRequest, whatever it asks for
	leaveRequested      bool                   // an operator asks for the leave
	consent             *types.LeaveConsent    // in that request; nil for none
	withdrawnByOperator bool                   // he does not any more
	without             *types.WithoutDecision // to leave without the cluster, which is proved to be dead; nil for no such
	undo                bool                   // he takes that back
	decided             span.Span              // since when it has been decided, as this process saw it
	refused             bool                   // he did, at a time at which the controller still wanted this node
	left                bool                   // the drain says that the node has left
	adopted             bool                   // the drain no longer needs to know whether there was a stamp

	answers     bool       // the API server does
	seen        bool       // and the table of nodes is complete, and it is known which one is ours
	node        types.Node // the own one
	known       bool       // there is one
	lists       []list     // in the order of node names
	lastPeer    string     // a Ready peer whose list from before names this device; "" for none
	invalidPeer string     // a Ready peer that has withdrawn its own list; "" for none

	doubted span.Span // the configuration is invalid or gone and the controller is reached
	watched span.Span // and peers' lists would be seen
	missing span.Span // other nodes are seen and the own one is not

	version string
	tls     bool             // the status server has a cluster token to speak TLS with
	busy    bool             // a stamp is under way, or failed a moment ago
	sent    types.AgentStamp // the last stamp that this process wrote
	sentAt  span.Span        // since when it stands
	booted  bool             // the own Node has shown another boot since
}

// memory is what one process knows beyond what it can read anywhere.
type memory struct {
	looked  bool // once at least
	told    bool // the configuration was there
	doubted span.Span
	watched span.Span
	missing span.Span
	decided span.Span

	before map[string]mark // the stamps that stood when ours was seen withdrawn; nil before that

	leaveRequested time.Time // RequestedAt of the last leave request seen
	requestFound   bool      // it stood there already when this process began
	refused        time.Time // RequestedAt of one seen while the configuration was valid

	sent     types.AgentStamp
	sentAt   span.Span
	sentBoot string // the boot ID that the own Node showed then
	backoff  time.Duration
	retry    time.Duration // no stamp before this
}

// mark tells two lists of a Node apart, without comparing clocks. When a stamp
// was written says nothing of its list: one that stands is written again.
type mark struct {
	given time.Time
}

func markOf(n types.Node) mark {
	if n.Agent == nil {
		return mark{}
	}
	return mark{given: n.Agent.Given.UTC()}
}

const (
	// intervals is how many times zedagent must have asked the controller and
	// not been given a cluster before this device takes that for an answer.
	intervals = 5
	// refreshes is how often in an hour a stamp is written again: a list that still
	// holds, so that a peer whose list did not change can say so in time, and any
	// other so that it does not turn stale (types.StampFresh).
	refreshes = 6
	// minRefresh spares the API server where tests make the hour a short one.
	minRefresh = 2 * time.Second
	// undoFor is how long a decided leave without the cluster can be taken back.
	undoFor = time.Minute
	// settle is how long the watch may take to show a stamp.
	settle = 30 * time.Second
)

// action is everything decide may ask for.
type action struct {
	publish *types.ClusterMembership
	stamp   *types.AgentStamp

	fulfilled bool // the request to leave has had its effect and is to have no other, in a later cluster

	again time.Duration // when to look again at the latest
}

// decide says where this device stands, what to stamp, and when to look again.
func decide(f facts) action {
	is := next(f)
	is.Consent = nil
	if is.State == types.MembershipLeaving {
		is.Consent = f.consent // as long as the request stands, and no longer
	}
	a := action{stamp: stampFor(f, is), again: again(f), fulfilled: f.requested && f.was.State == types.MembershipLeft}
	if is.State != "" && (!f.published || !reflect.DeepEqual(is, f.was)) {
		a.publish = &is
	}
	if is.Without != nil && f.was.Without == nil {
		a.again = 0 // its minute begins when it is seen
	}
	return a
}

// next is the membership from now on. A valid configuration makes a member at
// any time; without one nothing but a decided leave ends it.
func next(f facts) types.ClusterMembership {
	switch {
	case f.was.Without != nil:
		return withoutCluster(f)
	case f.without != nil && !f.answers && (f.configState != valid || f.config.ClusterID.UUID == f.without.Cluster):
		m := f.was
		m.State, m.Without, m.ByOperator = types.MembershipLeaving, f.without, true
		m.Reason = "no other node of the cluster has answered: this node leaves without it, as requested at the device"
		return m
	case f.configState == valid:
		return member(f)
	case f.configState == notRead && f.was.State == types.MembershipLeaving && f.was.ByOperator && f.withdrawnByOperator && !f.left:
		m := f.was // what the configuration says is not known yet, and the drain of the leave goes on meanwhile
		m.State, m.ByOperator, m.Reason = types.MembershipDoubtful, false, "the leave that was requested at the device is withdrawn"
		return m
	case f.configState == notRead:
		return f.was
	case !f.published:
		return types.ClusterMembership{State: types.MembershipNever, Reason: "there has been no valid cluster configuration yet"}
	case !f.was.Belongs():
		return f.was
	case f.was.State == types.MembershipLeaving && f.left:
		return types.ClusterMembership{
			State: types.MembershipLeft, Reason: "this node has left its cluster",
			InvalidSince: f.was.InvalidSince, ByOperator: f.was.ByOperator,
		}
	case f.was.State == types.MembershipLeaving && !(f.was.ByOperator && f.withdrawnByOperator):
		return f.was
	}
	return doubt(f)
}

// withoutCluster is what becomes of a decided leave without the cluster. A
// configuration of the same cluster does not end it, however valid: it stands at
// the controller until someone changes it there.
func withoutCluster(f facts) types.ClusterMembership {
	m := f.was
	leaves := m.State == types.MembershipLeaving
	switch {
	case f.configState == valid && f.config.ClusterID.UUID != m.Without.Cluster:
		return member(f)
	case leaves && f.undo && f.configState == valid:
		return member(f)
	case leaves && f.undo:
		m.Without, m.ByOperator = nil, false
		m.State, m.Reason = types.MembershipDoubtful, "the leave without the cluster is withdrawn"
		if m.InvalidSince.IsZero() {
			m.InvalidSince = f.now
		}
	case !leaves && (f.configState == invalid || f.configState == gone) && f.doubted.Reached(f.uptime, intervals*f.interval):
		m.Without, m.Reason = nil, "this node has left its cluster and is no longer configured for it"
	case leaves && f.decided.Reached(f.uptime, undoFor):
		return types.ClusterMembership{
			State: types.MembershipLeft, Reason: "this node has left its cluster, without the cluster's help",
			InvalidSince: m.InvalidSince, ByOperator: true, Without: m.Without,
		}
	}
	return m
}

func member(f facts) types.ClusterMembership {
	config := f.config // a copy, which does not keep all facts of this step in memory
	m := types.ClusterMembership{State: types.MembershipMember, Reason: "the cluster configuration is valid", Config: &config}
	if f.refused {
		m.Reason += ": the leave requested at the device is refused, because the controller still configures this node as a member"
	}
	return m
}

// doubt weighs whether the controller removed this device.
func doubt(f facts) types.ClusterMembership {
	m := f.was
	m.State = types.MembershipDoubtful
	if m.InvalidSince.IsZero() {
		m.InvalidSince = f.now
	}
	what := "the cluster configuration is no longer valid: "
	if f.configState == gone {
		what = "the cluster configuration was withdrawn: "
	}
	why, leave := verdict(f)
	m.ByOperator = leave && f.leaveRequested
	if leave {
		m.State = types.MembershipLeaving
	}
	m.Reason = what + why
	if f.refused {
		m.Reason += "; the leave requested before that is ignored, request it again"
	}
	return m
}

// verdict says whether to leave, and why or why not yet.
func verdict(f facts) (why string, leave bool) {
	switch {
	case !f.answers:
		return "nothing is decided while the API server does not answer", false
	case !f.seen:
		return "nothing is decided before this node is in its cluster's list of nodes", false
	case f.left:
		return "the drain of an earlier leave is not finished", false
	case f.leaveRequested:
		return "this node leaves, as requested at the device", true
	case !f.fetched:
		return "the last attempt to reach the controller failed", false
	case f.was.Config != nil && f.was.Config.IsWorkerNode:
		return verdictOnWorker(f)
	}
	return verdictOfPeers(f)
}

// verdictOnWorker: no list names workers.
func verdictOnWorker(f facts) (why string, leave bool) {
	if f.doubted.Reached(f.uptime, intervals*f.interval) && f.missing.Reached(f.uptime, missingFor) {
		return "this worker's Node has been deleted", true
	}
	return "a worker leaves when that is requested at the device, or when its Node is deleted", false
}

// verdictOfPeers: what the controller told the others since.
func verdictOfPeers(f facts) (why string, leave bool) {
	omitted := ""
	for _, l := range f.lists {
		if l.names {
			return fmt.Sprintf("node %s has since been configured with this device as a master", l.node), false
		}
		omitted = l.node
	}
	switch {
	case !f.doubted.Reached(f.uptime, intervals*f.interval):
		return fmt.Sprintf("the controller must leave this device out for %d configuration intervals", intervals), false
	case omitted != "":
		return fmt.Sprintf("node %s has since been configured without this device as a master", omitted), true
	case f.lastPeer != "":
		return fmt.Sprintf("the last configuration of node %s has this device as a master", f.lastPeer), false
	case f.invalidPeer != "":
		return fmt.Sprintf("node %s no longer has a valid configuration either, which is more likely an error than a removal: to dissolve the cluster, request a leave at each device", f.invalidPeer), false
	case f.watched.Reached(f.uptime, f.hour):
		return "no peer has received a list of masters for " + f.hour.String(), true
	}
	return "no peer has received the current list of masters yet", false
}

// stampFor is what to write on the own Node now, nil for nothing. Only a list
// that the controller was just heard to hold goes out with a new time: a peer
// takes that for news. Whatever stands is written again in time anyway.
func stampFor(f facts, is types.ClusterMembership) *types.AgentStamp {
	if !f.known || !f.answers || !f.adopted || f.busy {
		return nil
	}
	shown := f.node.Agent
	leaves := is.State == types.MembershipLeaving
	none := types.AgentStamp{Version: f.version, Given: is.InvalidSince, Leaving: leaves, TLS: f.tls, Witnesses: types.WitnessMost}
	switch {
	case is.State == types.MembershipDoubtful || leaves:
		told := func(s *types.AgentStamp) bool { // a leave without the cluster may have no InvalidSince
			return s != nil && len(s.Masters) == 0 && s.Cluster == none.Cluster && s.Given.Equal(none.Given) && s.Leaving == leaves
		}
		switch {
		case told(&f.sent) && f.settling():
			return nil
		case told(shown):
			return f.beat()
		}
		return &none
	case f.configState == valid && f.fetched && is.Without == nil:
		stamp := types.AgentStamp{
			Version: f.version, Cluster: f.config.ClusterID.UUID, Masters: f.config.MasterNodeIDs,
			TieBreaker: f.config.TieBreakerNodeID.UUID, Given: f.now, TLS: f.tls, Witnesses: types.WitnessMost,
		}
		old := f.due() || !f.sent.Renewed.IsZero() // that one was no word of the list
		if f.sentAt.Holds && !old && (sameList(shown, stamp) || sameList(&f.sent, stamp) && f.settling()) {
			return nil
		}
		return &stamp
	case shown == nil && !(f.sentAt.Holds && f.settling()):
		return &none
	}
	return f.beat()
}

// beat is the stamp that stands, written again to say that its agent runs. What
// it says of the masters is as old as it was: Given stays.
func (f facts) beat() *types.AgentStamp {
	if f.node.Agent == nil || f.sentAt.Holds && f.sent.TLS == f.tls && !f.due() {
		return nil
	}
	stamp := *f.node.Agent
	stamp.Version, stamp.Renewed, stamp.TLS, stamp.Witnesses = f.version, f.now, f.tls, types.WitnessMost
	return &stamp
}

// due reports that the last stamp is to be written again, whatever it says. After a
// reboot the API server may answer before the kubelet has said which boot this is: others
// cannot know that a stamp from before that is of this boot.
func (f facts) due() bool { return f.booted || f.sentAt.Reached(f.uptime, f.refresh()) }

// refresh is how long a stamp stands before it is written again.
func (f facts) refresh() time.Duration {
	return min(max(f.hour/refreshes, minRefresh), types.StampEvery)
}

// settling reports that the last stamp may not have come back by the watch yet.
func (f facts) settling() bool { return !f.sentAt.Reached(f.uptime, settle) }

// isWithdrawal reports whether a stamp says that this agent's configuration
// became invalid at since. One without a list for another reason does not.
func isWithdrawal(s *types.AgentStamp, since time.Time) bool {
	return s != nil && len(s.Masters) == 0 && !since.IsZero() && s.Given.Equal(since)
}

// sameList reports whether a stamp says the same as another, at whatever time.
func sameList(s *types.AgentStamp, other types.AgentStamp) bool {
	return s != nil && s.Version == other.Version && s.Witnesses == other.Witnesses && s.TLS == other.TLS && s.Cluster == other.Cluster && s.TieBreaker == other.TieBreaker && slices.Equal(s.Masters, other.Masters)
}

// again is the time until the next thing is due that no input rings for.
func again(f facts) time.Duration {
	wait := period
	for _, due := range []struct {
		of span.Span
		at time.Duration
	}{
		{f.doubted, intervals * f.interval},
		{f.watched, f.hour},
		{f.missing, missingFor},
		{f.decided, undoFor},
		{f.sentAt, f.refresh()},
		{f.sentAt, settle},
	} {
		if rest := due.at - (f.uptime - due.of.Began); due.of.Holds && rest > 0 {
			wait = min(wait, rest)
		}
	}
	return wait
}
