package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Headings of docs/operations.md.
const (
	anchorAgent    = "When the agent does not run"
	anchorAPI      = "When the API server is silent"
	anchorJoining  = "Joining a cluster"
	anchorLeaving  = "Leaving a cluster"
	anchorMembers  = "Members and the tie-breaker"
	anchorDrain    = "What is in the way"
	anchorPhases   = "The phases: NodeDrainProgress"
	anchorCordon   = "Whose cordon"
	anchorForce    = "The force file"
	anchorMarker   = "The fault marker"
	anchorLeader   = "Who reports for the cluster"
	anchorReport   = "The cluster's report"
	anchorStorage  = "Volumes"
	anchorLonghorn = "Longhorn's settings"
	anchorApps     = "Applications"
	anchorOutside  = "Certificates and outside changes"
	anchorFiles    = "Files that cannot be read, full disks"
)

// How long something may last before it is a problem.
const (
	startPatience  = 3 * time.Minute  // an application starts, moves
	repairPatience = 5 * time.Minute  // what mends itself mends itself
	leaderPatience = time.Minute      // another one follows within 35 s
	staleSection   = 2 * time.Minute  // one lost watch is no news
	longCordon     = 24 * time.Hour   // as long as a drain may last
	longGates      = time.Hour        // for another node's turn
	longSetting    = 10 * time.Minute // between two tries, at most
)

// maxEach bounds the problems of one name: beyond it they are counted.
const maxEach = 20

// rule finds problems of one name.
type rule struct {
	name   string
	anchor string
	find   func(o Overview, tell func(Problem))
}

// rules are in the order in which problems of the same severity are told: what
// explains others comes first.
func rules() []rule {
	return slices.Concat(agentRules(), clusterRules(), drainRules(), reportRules(), storageRules(), appRules(), conditionRules(), fileRules())
}

// Problems says what is wrong, the worst first. Read has said it already; it is for
// who adds to an overview what no file tells.
func Problems(o Overview) []Problem {
	found := []Problem{}
	for _, r := range rules() {
		n, hidden := 0, Problem{}
		r.find(o, func(p Problem) {
			p.Name, p.Anchor = r.name, r.anchor
			p.Since = utc(p.Since)
			if n++; n > maxEach {
				hidden = Problem{Name: r.name, Severity: p.Severity, What: counted(n-maxEach, "more of the same kind is not shown", "more of the same kind are not shown"), Remedy: p.Remedy, Anchor: r.anchor}
				return
			}
			found = append(found, p)
		})
		if hidden.Name != "" {
			found = append(found, hidden)
		}
	}
	slices.SortStableFunc(found, func(a, b Problem) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return found
}

func rank(s Severity) int {
	if s == Bad {
		return 0
	}
	return 1
}

// belongs reports that this device is to be treated as a member of a cluster.
func (o Overview) belongs() bool {
	return types.ClusterMembership{State: o.Cluster.Membership.State}.Belongs()
}

// older reports that at is known and at least d ago.
func (o Overview) older(at time.Time, d time.Duration) bool {
	age, known := o.Age(at)
	return known && age >= d
}

func agentRules() []rule {
	return []rule{
		{"AgentDead", anchorAgent, findAgentDead},
		{"AgentHung", anchorAgent, findAgentHung},
		{"NoKubeconfig", anchorAPI, findNoKubeconfig},
		{"APISilent", anchorAPI, findAPISilent},
	}
}

// clustered reports that Kubernetes is expected here.
func (o Overview) clustered() bool { return o.Node.NoCluster == "" }

// apiSilent is silence of an API server that could be asked.
func (o Overview) apiSilent() bool {
	return o.clustered() && o.API.Answers == types.ConditionFalse && !(o.API.Kubeconfig.At.IsZero() && !o.Copied)
}

func clusterRules() []rule {
	return []rule{
		{"NotAMember", anchorJoining, findNotAMember},
		{"MembershipDoubtful", anchorLeaving, findMembershipDoubtful},
		{"Leaving", anchorLeaving, findLeaving},
		{"ClusterConfigBad", anchorJoining, findClusterConfigBad},
		{"AddressNotReady", anchorJoining, findAddressNotReady},
		{"NodeNotReady", anchorAPI, findNodes},
		{"MembersStale", anchorMembers, findMembersStale},
	}
}

func findNodes(o Overview, tell func(Problem)) {
	for _, n := range o.Nodes.List {
		switch n.Status {
		case types.KubeNodeNotReady.String():
			tell(Problem{
				Severity: Bad, About: n.Name, Since: n.Since, What: "Node " + n.Name + " is not Ready.",
				Remedy: "Look at its kubelet's conditions: kubectl describe node, and at its disk and memory.",
			})
		case types.KubeNodeNotReachable.String():
			tell(Problem{
				Severity: Bad, About: n.Name, Since: n.Since, What: "Node " + n.Name + " is out of reach: its kubelet does not report.",
				Remedy: "Is the device on, and its cable in? Its applications start elsewhere as soon as it is proved gone.",
			})
		}
	}
}

func findAgentDead(o Overview, tell func(Problem)) {
	if !o.Agent.Runs && !o.Agent.Hung {
		tell(Problem{
			Severity: Bad, Since: o.Agent.Seen, What: "The agent does not run: " + o.Agent.Why + ". All that follows is what it last said.",
			Remedy: "See why in its log; while it is away nothing is drained, repaired or reported, and what runs goes on.",
		})
	}
}

func findAgentHung(o Overview, tell func(Problem)) {
	if o.Agent.Hung {
		tell(Problem{
			Severity: Bad, Since: o.Agent.Seen, What: "The agent hangs: its process is there, and " + o.Agent.Why + ".",
			Remedy: "Save its goroutines (zedkube support-bundle); the watchdog reboots the device after five minutes.",
		})
	}
}

func findNoKubeconfig(o Overview, tell func(Problem)) {
	if o.clustered() && !o.Copied && o.API.Kubeconfig.At.IsZero() {
		tell(Problem{
			Severity: Bad, What: "There is no kubeconfig, " + o.API.Kubeconfig.File + ": Kubernetes has not come up on this device.",
			Remedy: "Look at the kube container and at /persist/kubelog/k3s-install.log.",
		})
	}
}

func findAPISilent(o Overview, tell func(Problem)) {
	if o.apiSilent() {
		tell(Problem{
			Severity: Bad, Since: o.API.Since, What: sentence("The API server does not answer", o.API.Why),
			Remedy: "Is k3s alive on this device, and do the other servers answer? Nothing is decided about the cluster meanwhile.",
		})
	}
}

func findNotAMember(o Overview, tell func(Problem)) {
	state := o.Cluster.Membership.State
	if o.Cluster.Wanted && o.Cluster.Membership.Known() && (state == types.MembershipNever || state == types.MembershipLeft) {
		tell(Problem{
			Severity: Bad, Since: o.Cluster.Membership.At, What: "The controller makes this device a member of a cluster, and its agent has not taken that up.",
			Remedy: "It does so within seconds of hearing of it: look at the agent and its log.",
		})
	}
}

func findMembershipDoubtful(o Overview, tell func(Problem)) {
	if m := o.Cluster.Membership; m.State == types.MembershipDoubtful {
		tell(Problem{
			Severity: Warn, Since: m.InvalidSince, What: sentence("Whether this device is still to be in its cluster is in doubt; all goes on as before", m.Reason),
			Remedy: "Look at the configuration at the controller. Do not say \"zedkube leave\" unless the device is to leave.",
		})
	}
}

func findLeaving(o Overview, tell func(Problem)) {
	if m := o.Cluster.Membership; m.State == types.MembershipLeaving {
		tell(Problem{
			Severity: Warn, Since: m.InvalidSince, What: sentence("This node leaves its cluster", m.Reason),
			Remedy: "Wait: zedkube drain status. A valid configuration that comes now still cancels it.",
		})
	}
}

func findClusterConfigBad(o Overview, tell func(Problem)) {
	c := o.Cluster
	if c.Error != "" {
		tell(Problem{Severity: Bad, Since: c.ErrorSince, What: sentence("The cluster's configuration cannot be used", c.Error), Remedy: "Mend what it names, at the controller."})
	}
	if c.LBError != "" {
		tell(Problem{Severity: Warn, Since: c.LBErrorSince, What: sentence("The load balancer's addresses cannot be used", c.LBError), Remedy: "Change the prefix or the interface at the controller."})
	}
}

func findAddressNotReady(o Overview, tell func(Problem)) {
	if c := o.Cluster; c.Known() && c.ID != "" && !c.AddressReady && o.older(c.At, startPatience) {
		what := "The cluster address " + cmp.Or(c.Address, "(none)") + " is not on interface " + cmp.Or(c.Interface, "(none)") + "."
		if c.Interface == "" {
			what = "No port of this device has the label that the cluster's configuration names."
		}
		tell(Problem{Severity: Bad, Since: c.At, What: what, Remedy: "Look at the ports in the device's configuration and at nim's DeviceNetworkStatus."})
	}
}

func findMembersStale(o Overview, tell func(Problem)) {
	for _, s := range o.Cluster.Members.Stale {
		p := Problem{
			Severity: Warn, About: s.Node, Since: s.Since, What: sentence("Node "+s.Node+" is a master that the controller names no more, and is not removed yet", s.Why),
			Remedy: "It is removed when what hinders that is gone.",
		}
		if s.Joins {
			p.What = sentence("Node "+s.Node+" is a master that the controller has not named yet", s.Why)
			p.Remedy = "If it joins, it is named within a configuration interval."
		}
		tell(p)
	}
}
