package membership

import (
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
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

	leaveRequested      bool                   // an operator asks for the leave
	consent             *types.LeaveConsent    // in that request; nil for none
	withdrawnByOperator bool                   // he does not any more
	without             *types.WithoutDecision // to leave without the cluster, which is proved to be dead; nil for no such
	undo                bool                   // he takes that back
	decided             loop.Span              // since when it has been decided, as this process saw it
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

	doubted loop.Span // the configuration is invalid or gone and the controller is reached
	watched loop.Span // and peers' lists would be seen
	missing loop.Span // other nodes are seen and the own one is not

	version string
	busy    bool             // a stamp is under way, or failed a moment ago
	sent    types.AgentStamp // the last stamp that this process wrote
	sentAt  loop.Span        // since when it stands
}

// memory is what one process knows beyond what it can read anywhere.
type memory struct {
	looked  bool // once at least
	told    bool // the configuration was there
	doubted loop.Span
	watched loop.Span
	missing loop.Span
	decided loop.Span

	before map[string]mark // the stamps that stood when ours was seen withdrawn; nil before that

	leaveRequested time.Time // RequestedAt of the last leave request seen
	requestFound   bool      // it stood there already when this process began
	refused        time.Time // RequestedAt of one seen while the configuration was valid

	sent    types.AgentStamp
	sentAt  loop.Span
	backoff time.Duration
	retry   time.Duration // no stamp before this
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
