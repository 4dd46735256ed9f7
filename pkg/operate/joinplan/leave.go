package joinplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// LeaveFacts is all that a plan of a leave is made of.
type LeaveFacts struct {
	Now        time.Time
	Node       string // of this device; "" for unknown
	Device     uuid.UUID
	Membership *types.ClusterMembership // nil for unknown
	Interval   time.Duration            // of zedagent's questions to the controller
	Fetched    *types.ConfigGetStatus   // how the last one went; nil for unknown

	Nodes   []types.Node // nil where the API server could not be asked, and NoNodes says why
	NoNodes string
	Storage *types.Storage            // nil for unknown
	Drain   *DrainAhead               // nil for unknown
	Apps    []types.AppInstanceConfig // that the controller designates to this device

	Loss    *types.LeaveConsent // what a consent has to name for this leave; nil where nothing is lost, or where that is unknown
	LossOf  time.Time           // when that was last looked at, where the cluster cannot be asked; zero for now
	Consent *types.LeaveConsent // the one that holds now; nil for none

	Unknown []string // what else could not be had, and why
}

// DrainAhead is the plan of the drain that a leave begins with.
type DrainAhead struct {
	Verdict  string
	Outlook  types.DrainOutlook
	Pods     int
	Stranded []string // pods that can run only here
}

// LeavePlan is what would become of a leave.
type LeavePlan struct {
	Made    time.Time
	Node    string
	Verdict Verdict
	Summary string    // a sentence
	Steps   []Finding // what it would wait for, in order
	Volumes []Finding // of the data here
	Apps    []Finding
	GiveUp  *GiveUp  `json:",omitempty"` // what has to be given up for it; nil for nothing
	Stays   []string // what stays behind
	Unknown []string // what could not be asked, and why
}

// Leave is the plan of a leave.
func Leave(f LeaveFacts) LeavePlan {
	p := LeavePlan{Made: f.Now, Node: f.Node, Unknown: f.Unknown, Stays: f.stays(), GiveUp: giveUp(f)}
	var steps, volumes, apps findings
	if f.wanted(&steps) {
		f.controller(&steps)
		f.drained(&steps)
		f.quorum(&steps)
		f.deleted(&steps)
		f.volumes(&volumes)
		f.apps(&apps)
	}
	p.Steps, p.Volumes, p.Apps = steps, volumes, apps
	p.Verdict, p.Summary = f.conclude(slices.Concat(p.Steps, p.Volumes, p.Apps), volumes)
	return p
}

// wanted is whether there is anything to leave.
func (f LeaveFacts) wanted(all *findings) bool {
	const step = "configuration"
	m := f.Membership
	switch {
	case m == nil:
		all.add(step, Unknown, "is zedkube running?", "Whether this device belongs to a cluster is not known: there is no ClusterMembership.")
	case m.State == types.MembershipNever, m.State == types.MembershipLeft:
		all.add(step, Blocks, "", "This device belongs to no cluster: there is nothing to leave.")
		return false
	case m.State == types.MembershipMember:
		all.add(step, Warn, "remove the device from the cluster at the controller", "The controller still configures this device as a member: it leaves only after that is removed.")
	case m.State == types.MembershipLeaving:
		all.add(step, OK, "", "The leave is decided: %s.", strings.TrimSuffix(m.Reason, "."))
	default:
		all.add(step, OK, "", "The configuration has not been valid since %s.", moment(m.InvalidSince))
	}
	return true
}

// asked is how many times the controller has to say so.
const asked = 5

// controller is what a leave waits for before it is decided.
func (f LeaveFacts) controller(all *findings) {
	const step = "decision"
	m := f.Membership
	if m == nil || m.State == types.MembershipLeaving {
		return
	}
	if f.Nodes == nil {
		all.add(step, Unknown, "", "The API server does not answer, and while it does not nothing is decided: %s", f.NoNodes)
	}
	if m.Config != nil && m.Config.IsWorkerNode {
		all.add(step, Warn, "zedkube leave, once the controller has removed the device", "A worker is not in the controller's list of masters: it leaves when that is requested here, or when its Node is deleted.")
		return
	}
	if f.Fetched != nil && *f.Fetched != types.ConfigGetSuccess {
		all.add(step, Warn, "check the device's connection to the controller", "The last attempt to reach the controller failed; the wait starts over until one succeeds.")
	}
	wait := asked * f.Interval
	if m.State == types.MembershipDoubtful && !m.InvalidSince.IsZero() {
		wait = max(0, wait-max(0, f.Now.Sub(m.InvalidSince)))
	}
	if wait > 0 {
		all.add(step, OK, "", "The controller has to say so for %d intervals of %s: %s more. zedkube leave skips that wait.", asked, f.Interval, wait.Round(time.Second))
	}
	f.peers(all)
}

// peers is what the others have been told.
func (f LeaveFacts) peers(all *findings) {
	const step = "decision"
	stamped := false
	for _, n := range f.Nodes {
		if n.Name == f.Node || n.Foreign() || n.Ready != types.ConditionTrue || len(n.Agent.Masters) == 0 {
			continue
		}
		stamped = true
		switch named := slices.Contains(n.Agent.Masters, f.Device); {
		case named && n.StampUnconfirmed:
			all.add(step, Warn, "remove the device from the cluster at the controller", "Node %s says that this device is a master, and whether its zedkube still runs is not known: if it does, this device does not leave as long as that node is configured so.", n.Name)
			return
		case named:
			all.add(step, Warn, "remove the device from the cluster at the controller", "Node %s has been configured with this device as a master: while that is so, this device does not leave.", n.Name)
			return
		}
	}
	if f.Nodes != nil && !stamped {
		all.add(step, Warn, "zedkube leave, once the controller has removed the device", "No other node says who the masters are: an hour must pass before that counts as an answer; if another node has no valid configuration either, waiting does not help.")
	}
}

func (f LeaveFacts) drained(all *findings) {
	const step = "drain"
	d := f.Drain
	if d == nil {
		all.add(step, Unknown, "", "What would block the drain is unknown: %s", f.NoNodes)
		return
	}
	v := map[types.DrainOutlook]Verdict{types.OutlookNever: Blocks, types.OutlookSlow: Warn, "": OK}[d.Outlook]
	remedy := ""
	if v != OK {
		remedy = "zedkube drain plan"
	}
	all.add(step, v, remedy, "This node is drained, of %s: %s.", phrase.Counted(d.Pods, "pod"), strings.TrimSuffix(d.Verdict, "."))
}

func (f LeaveFacts) quorum(all *findings) {
	const step = "quorum"
	var own types.Node
	var others []types.Node
	for _, n := range f.Nodes {
		if n.Name == f.Node {
			own = n
		} else {
			others = append(others, n)
		}
	}
	q, lack := types.QuorumOf(others), types.LacksQuorum(f.Nodes, f.Node)
	switch {
	case f.Nodes == nil:
		all.add(step, Unknown, "", "What would be left of etcd is unknown: %s", f.NoNodes)
	case !own.Etcd:
		all.add(step, OK, "", "This node is no member of etcd: nothing changes there.")
	case q.Voters == 0 && f.Consent != nil && f.Consent.Ends:
		all.add(step, Warn, "", "This node is the only member of etcd: the cluster ceases to exist with it, as consented to.")
	case q.Voters == 0:
		all.add(step, Blocks, "let another server join first, or give the cluster up: zedkube leave --give-up-data", "This node is the only member of etcd: without it the cluster ceases to exist.")
	case lack != "":
		all.add(step, Blocks, "bring the others back first", "Without this node %s.", lack)
	case q.Spare() == 0:
		all.add(step, Warn, "let another server join", "etcd has %s left, and none may be lost.", phrase.Counted(q.Voters, "member"))
	case q.Voters%2 == 0:
		all.add(step, Warn, "let another server join", "etcd has %d members left, an even number, of which %s be lost.", q.Voters, spare(q.Spare()))
	default:
		all.add(step, OK, "", "etcd has %d members left, of which %s be lost.", q.Voters, spare(q.Spare()))
	}
}

func (f LeaveFacts) deleted(all *findings) {
	all.add("end", OK, "", "The Node %s is deleted, EdgeNodeClusterStatus withdrawn, and the kube container restores /var/lib, empties Longhorn's replica directory and reboots the device.", f.Node)
}

// volumes is the data that a leave takes along.
func (f LeaveFacts) volumes(all *findings) {
	if f.Storage == nil {
		all.add("volumes", Unknown, "", "Which volumes have their data here is unknown: %s", f.NoNodes)
		return
	}
	others := 0
	for _, n := range f.Nodes {
		if n.Name != f.Node && n.Ready == types.ConditionTrue && !n.TieBreaker {
			others++
		}
	}
	for _, v := range f.Storage.Volumes {
		if v.On(f.Node) {
			f.volume(all, v, others)
		}
	}
}

func (f LeaveFacts) volume(all *findings, v types.Volume, others int) {
	here, elsewhere := 0, 0
	for _, r := range v.Replicas {
		switch {
		case !v.Healthy(r):
		case r.Node == f.Node:
			here++
		default:
			elsewhere++
		}
	}
	name := v.Name
	if v.Claim != "" {
		name += " (" + v.Claim + ")"
	}
	of := fmt.Sprintf("%d of %d healthy replicas", here, v.Wanted)
	switch {
	case f.Consent != nil && len(f.Consent.Lacks([]types.LeaveVolume{{UID: v.UID}})) == 0:
		all.add("volumes", Warn, "zedkube leave --cancel, if that is not intended", "%s: its data is given up, by consent of %s.", name, moment(f.Consent.Given))
	case elsewhere == 0 && here > 0:
		remedy := "let Longhorn create a replica elsewhere: raise numberOfReplicas, or free space on another node"
		all.add("volumes", Blocks, remedy, "%s: the last healthy replica is here, and the leave waits for another one, whatever node-drain-policy says.", name)
	case f.loses(v):
		all.add("volumes", Blocks, "bring the other nodes with a replica back", "%s: no node that is Ready has another healthy replica of it, and the leave waits for one.", name)
	case elsewhere == 0:
		all.add("volumes", Warn, "look at it in Longhorn", "%s: no replica is healthy, here or elsewhere.", name)
	case v.Wanted > others:
		all.add("volumes", Warn, "lower numberOfReplicas, or let another node join", "%s: it is to have %s, and there would be only %s: it stays degraded.", name, phrase.Counted(v.Wanted, "replica"), phrase.Counted(others, "other node"))
	case elsewhere < v.Wanted:
		all.add("volumes", OK, "", "%s: %s are here, a new one is created elsewhere.", name, of)
	default:
		all.add("volumes", OK, "", "%s: it is healthy without this node.", name)
	}
}

// loses reports that the leave would lose the volume, by the rules of the drain.
func (f LeaveFacts) loses(v types.Volume) bool {
	return f.Loss != nil && slices.ContainsFunc(f.Loss.Volumes, func(l types.LeaveVolume) bool { return l.Name == v.Name })
}

// GiveUp is what a leave takes along, and how it can be consented to.
type GiveUp struct {
	Volumes []types.LeaveVolume // whose data would be lost
	Unknown bool                // also volumes that nobody can name
	Ends    bool                // the cluster ends with this node
	AsOf    time.Time           `json:",omitzero"` // when that was looked at, where the cluster cannot be asked
	Digest  string              // for zedkube leave --give-up-data --digest
	Given   time.Time           `json:",omitzero"` // when all of it was consented to; zero for not
}

func giveUp(f LeaveFacts) *GiveUp {
	l := f.Loss
	if l == nil || f.Membership == nil || !f.Membership.Belongs() {
		return nil
	}
	g := GiveUpOf(*l, f.LossOf)
	if w := f.Consent; w != nil && len(w.Lacks(l.Volumes)) == 0 && (w.Ends || !l.Ends) && (w.Unknown || !l.Unknown) {
		g.Given = w.Given
	}
	return &g
}

// GiveUpOf is what a consent has to name, as it is shown.
func GiveUpOf(c types.LeaveConsent, asOf time.Time) GiveUp {
	return GiveUp{Volumes: c.Volumes, Unknown: c.Unknown, Ends: c.Ends, AsOf: asOf, Digest: c.Digest()}
}

func (f LeaveFacts) apps(all *findings) {
	for _, a := range f.Apps {
		switch {
		case a.AffinityType == types.AffinityRequired:
			all.add("apps", Blocks, "designate it to another node at the controller", "%s must not run elsewhere: it is designated to this node alone.", a.DisplayName)
		case len(a.IoAdapterList) > 0:
			all.add("apps", Warn, "designate it to another node with such a device at the controller", "%s is designated to this node, and has %s of this machine.", a.DisplayName, phrase.Counted(len(a.IoAdapterList), "device"))
		default:
			all.add("apps", Warn, "designate it to another node at the controller", "%s is designated to this node: it moves to another node and does not fail back.", a.DisplayName)
		}
	}
	if f.Drain != nil {
		for _, pod := range f.Drain.Stranded {
			all.add("apps", Warn, "", "Pod %s can run only here: it would be down for good.", pod)
		}
	}
}

// stays is what a leave leaves behind.
func (f LeaveFacts) stays() []string {
	out := []string{
		"on this device: /persist/status/zedkube (ClusterMembership says left), /persist/kubelog and the audit trail",
	}
	if f.Storage == nil || f.Storage.Longhorn {
		name := cmp.Or(f.Node, "NAME")
		out = append(out, "in the cluster: Longhorn's node "+name+", as long as replicas are on it: kubectl -n longhorn-system delete nodes.longhorn.io "+name+" after the leave",
			"nothing of the volumes: the kube container empties Longhorn's replica directory when EdgeNodeClusterStatus is withdrawn")
	}
	return out
}

func (f LeaveFacts) conclude(all []Finding, volumes []Finding) (Verdict, string) {
	worst, n := sum(all)
	lost, _ := sum(volumes)
	switch {
	case len(all) == 1 && worst == Blocks:
		return worst, all[0].What
	case lost == Blocks:
		return worst, "It must not leave now: some data is only on this node."
	case worst == Blocks:
		return worst, "It would not complete at present: " + phrase.Counted(n[Blocks], "thing") + " in the way."
	case worst == Unknown || f.Nodes == nil:
		return Unknown, "The result is unknown: " + phrase.Counted(n[Unknown], "thing") + " could not be queried."
	case worst == Warn:
		return worst, "It could leave, but look at " + phrase.Counted(n[Warn], "thing") + " first."
	}
	return worst, "It can leave, and nothing is lost."
}

func moment(at time.Time) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
