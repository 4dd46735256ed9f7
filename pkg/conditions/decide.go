package conditions

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// facts is everything a decision rests on.
type facts struct {
	now    time.Time     // wall clock, UTC
	uptime time.Duration // no clock that anybody sets

	credentials types.Credentials
	connected   bool // there is a kubeconfig
	clocks      map[string]types.NodeClock
	nodes       map[string]types.Node
	own         types.Node
	seen        bool // own is there
	pods        map[string]types.Pod
	api         types.APIStatus
	info        types.EdgeNodeInfo
	named       bool // info is known
	membership  types.ClusterMembership
	wanted      types.KubeConfig
	leader      types.KubeLeaderElectInfo
	elects      bool // leader is known
	health      types.KubeReportHealth
	reported    bool // health is known

	published types.KubeNodeConditions
	pending   map[types.NodeStateType]pending
}

// pending is a change that has yet to prove that it lasts.
type pending struct {
	to    types.ConditionStatus
	since time.Duration // uptime
}

// action is what to say.
type action struct {
	conditions types.KubeNodeConditions
	pending    map[types.NodeStateType]pending
	again      time.Duration // when to look again; zero for when something rings
}

func decide(f facts) action {
	a := action{conditions: f.published, pending: f.pending}
	return a
}
