package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/phrase"
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
	if !f.own.HasAPIServer() {
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
	case by == types.CordonedDisabled:
		return fine("WorkloadsDisabled", fmt.Sprintf("This node is cordoned since %s: %s.", stamp(ours.Since), short(ours.Reason)))
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
		if _, err := uuid.Parse(n.UUID); n.IsServer() && err == nil && !masters[n.UUID] {
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
	return fine("AsConfigured", "The cluster has the "+phrase.Counted(len(masters), "master")+" that the controller configured.")
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

// clock compares the own clock with those of others as far as they are known. One that was apart may
// be right by now where nothing is heard of it.
func clock(f facts) verdict {
	var off []string
	compared := 0
	if f.connected && f.credentials.ClockKnown {
		compared++
		if ahead := f.credentials.ClockAhead; types.JudgeClock(ahead) == types.SeverityBad {
			off = append(off, "the API server's clock is "+against(ahead))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.clocks)) {
		if n, there := f.nodes[name]; !there || name == f.own.Name || n.Ready == types.ConditionUnknown {
			continue
		}
		compared++
		if ahead := f.clocks[name].Ahead; types.JudgeClock(ahead) == types.SeverityBad {
			off = append(off, fmt.Sprintf("the clock of %s is %s", short(name), against(ahead)))
		}
	}
	switch {
	case compared == 0:
		return unknown("NoOtherClock", "No other clock has been seen yet.")
	case len(off) > 0 && !f.seesCluster():
		return f.unseen()
	case len(off) == compared && compared > 1:
		return bad("OwnClockApart", "This node's clock differs from all others: "+firstOf(off)+".")
	case len(off) > 0:
		return bad("ClocksApart", "Clocks differ from this node's: "+firstOf(off)+".")
	}
	return fine("InStep", "The known clocks agree with this node's to within half a minute.")
}

// against says how a clock differs from the own one.
func against(ahead time.Duration) string {
	if ahead < 0 {
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead"
}

// leader judges whether someone reports for the cluster.
func leader(f facts) verdict {
	switch {
	case f.elects && f.leader.IsStatsLeader:
		return fine("ThisNode", "This node reports for the cluster.")
	case f.elects && f.leader.LeaderIdentity != "":
		return fine("OtherNode", fmt.Sprintf("Node %s reports for the cluster.", short(f.leader.LeaderIdentity)))
	case !f.seesCluster():
		return f.unseen()
	case !f.elects || !f.leader.InLeaderElection:
		return unknown("NotInElection", "This node does not take part in the election: it has not heard from its controller.")
	}
	return bad("NoLeader", "No node reports for the cluster: nobody holds the Lease eve-kube-stats-leader.")
}

// report judges what this node reports, if it does.
func report(f facts) verdict {
	if !f.reported || !f.health.Reports {
		return unknown("NotReporting", "This node does not report for the cluster.")
	}
	var stale []string
	why := ""
	for _, s := range f.health.Sections {
		if s.Absent || s.Known && s.StaleSince.IsZero() {
			continue
		}
		stale = append(stale, short(s.Name))
		if why == "" {
			why = s.Why
		}
	}
	if len(stale) == 0 {
		return fine("UpToDate", "Everything that this node reports is current.")
	}
	message := "These sections of this node's report are stale: " + firstOf(stale)
	if why != "" {
		message += ": " + short(why)
	}
	return bad("Stale", strings.TrimRight(message, ".")+".")
}

// permissions judges whether the API server permits what the agent asks for.
func permissions(f facts) verdict {
	switch refused := f.credentials.Refused; {
	case !f.connected || f.api.NoKubeconfig || f.watched && !f.api.Answers():
		return f.unseen()
	case refused != "":
		return bad("Refused", "The API server does not permit zedkube on this node to "+short(refused)+". To permit it: kubectl apply -f deploy/rbac.yaml.")
	}
	return fine("AsNeeded", "The API server has refused nothing that zedkube on this node asked for.")
}

const (
	listed  = 3   // that many are named one by one
	maxText = 200 // bytes of a text from outside
)

// firstOf names the first of a list, and counts the others.
func firstOf(list []string) string { return phrase.Few(list, listed) }

// short is a text from outside that is no longer than a sentence.
func short(text string) string {
	return phrase.Cut(strings.TrimRight(strings.ToValidUTF8(text, "?"), "."), maxText)
}
