package joinplan

import (
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

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
		all.add("volumes", Warn, "zedkube leave --cancel, if it is not to be", "%s: its data is given up, by consent of %s.", name, moment(f.Consent.Given))
	case elsewhere == 0 && here > 0:
		remedy := "let Longhorn make a replica elsewhere: raise numberOfReplicas, or give another node room"
		all.add("volumes", Blocks, remedy, "%s: the last healthy replica is here, and the leave waits for another one, whatever node-drain-policy says.", name)
	case f.loses(v):
		all.add("volumes", Blocks, "bring the other nodes with a replica back", "%s: no node that is Ready has another healthy replica of it, and the leave waits for one.", name)
	case elsewhere == 0:
		all.add("volumes", Warn, "look at it in Longhorn", "%s: no replica is healthy, here or elsewhere.", name)
	case v.Wanted > others:
		all.add("volumes", Warn, "lower numberOfReplicas, or let another node join", "%s: it is to have %s, and there would be only %s: it stays degraded.", name, counted(v.Wanted, "replica"), counted(others, "other node"))
	case elsewhere < v.Wanted:
		all.add("volumes", OK, "", "%s: %s are here, a new one is made elsewhere.", name, of)
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
	Unknown bool                // nobody can say which volumes
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
	g := &GiveUp{Volumes: l.Volumes, Unknown: l.Unknown, Ends: l.Ends, AsOf: f.LossOf, Digest: l.Digest()}
	if w := f.Consent; w != nil && len(w.Lacks(l.Volumes)) == 0 && (w.Ends || !l.Ends) && (w.Unknown || !l.Unknown) {
		g.Given = w.Given
	}
	return g
}

// apps is what runs here and nowhere else.
func (f LeaveFacts) apps(all *findings) {
	for _, a := range f.Apps {
		switch {
		case a.Only:
			all.add("apps", Blocks, "designate it to another node at the controller", "%s must not run elsewhere: it is designated to this node alone.", a.Name)
		case a.Adapters > 0:
			all.add("apps", Warn, "designate it to another node with such a device at the controller", "%s is designated to this node, and has %s of this machine.", a.Name, counted(a.Adapters, "device"))
		default:
			all.add("apps", Warn, "designate it to another node at the controller", "%s is designated to this node: it goes elsewhere and is not brought back.", a.Name)
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
		name := f.Node
		if name == "" {
			name = "NAME"
		}
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
		return worst, "It would not complete as things are: " + counted(n[Blocks], "thing") + " in the way."
	case worst == Unknown || f.Nodes == nil:
		return Unknown, "The result is unknown: " + counted(n[Unknown], "thing") + " could not be asked."
	case worst == Warn:
		return worst, "It could leave, but look at " + counted(n[Warn], "thing") + " first."
	}
	return worst, "It can leave, and nothing is lost."
}

func moment(at time.Time) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
