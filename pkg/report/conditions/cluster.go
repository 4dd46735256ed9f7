package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// version compares the kubelets: in k3s a node is of one version in all its parts.
func version(f facts) verdict {
	if !f.seesCluster() || !f.seen || f.own.KubeletVersion == "" {
		return f.unseen()
	}
	own := f.own.KubeletVersion
	if f.k3s.Held {
		return bad("ChangeHeld", fmt.Sprintf("This node runs %s. %s", short(own), f.k3s.Why))
	}
	if want := f.k3s.Version; want != "" && want != own {
		return bad("NotAsWanted", fmt.Sprintf("This node runs %s, and its kube container is configured to run %s.", short(own), short(want)))
	}
	var others []string
	for _, n := range f.nodes {
		if n.KubeletVersion != "" && n.KubeletVersion != own {
			others = append(others, short(n.Name)+" runs "+short(n.KubeletVersion))
		}
	}
	if slices.Sort(others); len(others) > 0 {
		return bad("NodesDiffer", fmt.Sprintf("This node runs %s, %s.", short(own), firstOf(others)))
	}
	return fine("AllTheSame", fmt.Sprintf("Every node runs %s.", short(own)))
}

// labels judges those of the own Node that zedkube and EVE rely on.
func labels(f facts) verdict {
	if !f.seesCluster() || !f.named {
		return f.unseen()
	}
	if other, ok := f.nodes[f.info.NodeName()]; ok && !f.seen {
		return bad("NodeUUIDChanged", fmt.Sprintf("Label node-uuid of node %s is %s and not this device's %s%s.",
			short(other.Name), short(other.UUID), f.info.DeviceID, writtenBy(other, "node-uuid")))
	}
	if !f.seen {
		return f.unseen()
	}
	var wrong []string
	if f.own.UUID == "" {
		wrong = append(wrong, fmt.Sprintf("label node-uuid is missing, it must be %s", f.info.DeviceID))
	}
	wrong = append(wrong, roles(f)...)
	wrong = append(wrong, tieBreaker(f)...)
	if len(wrong) > 0 {
		return bad("LabelsChanged", fmt.Sprintf("On this node %s.", firstOf(wrong)))
	}
	return fine("InPlace", "This node has the labels that EVE and zedkube rely on.")
}

// roles are the labels that k3s gives a server; it gives the one of etcd only
// where it keeps the cluster's state in it, which other nodes tell.
func roles(f facts) (wrong []string) {
	c := f.membership.Config
	if !f.membership.Belongs() || c == nil || c.IsWorkerNode {
		return nil
	}
	if !f.own.ControlPlane && !f.own.Master {
		wrong = append(wrong, "label "+types.LabelControlPlane+" is missing"+writtenBy(f.own, types.LabelControlPlane))
	}
	for _, n := range f.nodes {
		if n.Etcd && !f.own.Etcd {
			return append(wrong, "label "+types.LabelEtcd+" is missing")
		}
	}
	return wrong
}

func tieBreaker(f facts) []string {
	c := f.membership.Config
	if !f.membership.Belongs() || c == nil {
		return nil
	}
	id := c.TieBreakerNodeID.UUID
	is := id != uuid.Nil && id == f.info.DeviceID
	switch {
	case is && !f.own.TieBreaker:
		return []string{"label tie-breaker-node is not true, and this is the tie-breaker" + writtenBy(f.own, "tie-breaker-node")}
	case !is && f.own.TieBreaker:
		return []string{"label tie-breaker-node is true, and this is not the tie-breaker" + writtenBy(f.own, "tie-breaker-node")}
	}
	return nil
}

// cordon judges who cordoned this node. The tie-breaker is cordoned by zedkube or
// by the kube container, whichever comes first.
func cordon(f facts) verdict {
	if !f.seesCluster() || !f.seen {
		return f.unseen()
	}
	ours := f.own.CordonedBy
	switch by := f.own.Cordoner(); {
	case by == "":
		return fine("NotCordoned", "This node is not cordoned.")
	case by == types.CordonedKept:
		return fine("KeptByOperator", fmt.Sprintf("zedkube cordoned this node at %s, and an operator asked to keep it so: %s.", stamp(ours.Since), short(ours.Reason)))
	case by == types.CordonedByZedkube:
		return fine("CordonedByZedkube", fmt.Sprintf("zedkube cordoned this node at %s: %s.", stamp(ours.Since), short(ours.Reason)))
	case f.own.TieBreaker:
		return fine("TieBreaker", "This node is the tie-breaker, which stays cordoned.")
	}
	by := writtenBy(f.own, types.FieldCordon)
	if by == "" {
		by = ", by whom is unknown"
	}
	return bad("CordonedByOther", "This node was cordoned by someone other than zedkube"+by+". It stays cordoned until someone uncordons it.")
}

// members compares the Nodes of masters with those that the controller names.
func members(f facts) verdict {
	m := f.membership
	switch {
	case m.State == types.MembershipLeaving:
		return unknown("Leaving", "This node is leaving its cluster.")
	case !m.Belongs() || m.Config == nil:
		return unknown("NoCluster", "The controller has not configured this device for a cluster.")
	case len(m.Config.MasterNodeIDs) == 0:
		return unknown("MastersNotNamed", "The controller has not configured which devices are masters.")
	case !f.seesCluster():
		return f.unseen()
	}
	masters, there := map[string]bool{}, map[string]bool{}
	for _, id := range m.Config.MasterNodeIDs {
		masters[id.String()] = true
	}
	var surplus, missing []string
	for _, n := range f.nodes {
		there[n.UUID] = true
		master := n.ControlPlane || n.Master || n.Etcd
		if _, err := uuid.Parse(n.UUID); master && err == nil && !masters[n.UUID] {
			surplus = append(surplus, "node "+short(n.Name))
		}
	}
	slices.Sort(surplus)
	for _, id := range slices.Sorted(maps.Keys(masters)) {
		if !there[id] {
			missing = append(missing, "device "+id)
		}
	}
	var said []string
	if len(missing) > 0 {
		said = append(said, firstOf(missing)+" has no Node yet, or no longer has one")
	}
	if len(surplus) > 0 {
		said = append(said, firstOf(surplus)+" is a member but not one of the controller's masters")
	}
	switch {
	case len(missing) > 0:
		return bad("MemberMissing", "Of the masters "+strings.Join(said, "; ")+".")
	case len(surplus) > 0:
		return bad("MemberNotConfigured", "In the cluster "+strings.Join(said, "; ")+".")
	}
	return fine("AsConfigured", fmt.Sprintf("The cluster has the %d masters that the controller configured.", len(masters)))
}

// writtenBy says who wrote a field of the node, zedkube apart, "" where nobody
// did. Names of field managers are any text.
func writtenBy(n types.Node, field string) string {
	var by []string
	for _, w := range n.Writers {
		if w.Field != field || strings.HasPrefix(w.Manager, "zedkube-") {
			continue
		}
		at := ""
		if !w.At.IsZero() {
			at = " at " + stamp(w.At)
		}
		by = append(by, fmt.Sprintf("by field manager %s%s", short(w.Manager), at))
	}
	if len(by) == 0 {
		return ""
	}
	return ", " + firstOf(by)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
