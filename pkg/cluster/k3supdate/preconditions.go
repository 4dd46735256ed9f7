package k3supdate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// preconditions are what a change waits for, in the order in which it is reported.
func (f facts) preconditions(kind types.K3sChange) []types.KubeLifecyclePrecondition {
	var list []types.KubeLifecyclePrecondition
	drains := f.drains(kind)
	add := func(name, lacks string, release bool) {
		list = append(list, precondition(name, lacks, release, f.released(name)))
	}
	look := func(name string, found finding, unknown string) {
		switch {
		case !found.known && found.why != "":
			add(name, "it is not known "+unknown+": "+found.why, true)
		case !found.known:
			add(name, "it is not known "+unknown, true)
		default: // an API that was asked for once is shown until k3s restarts
			add(name, found.lacks, name == "RemovedAPIs")
		}
	}
	add("NotHeld", cmp.Or(f.hold, f.unheld), false)
	add("NotFailed", f.failed(), true)
	add("OthersNotFailed", f.otherFailed(), false)
	add("Agreed", f.disagreement(), true)
	add("ServersFirst", f.serversFirst(), false)
	add("Turn", f.turn(), true)
	add("NodesReady", f.notReady(), true)
	lack, alone := f.quorum()
	add("Quorum", lack, false)
	add("QuorumWithoutThis", alone, true)
	add("NoDrain", f.goesDown(drains), false)
	add("Components", f.component, true)
	look("Certificates", f.condition(types.StateServerCertificate, types.StateClientCertificate, types.StateCACertificate), "whether the certificates are valid")
	look("Clock", f.condition(types.StateClock), "whether the clock is in step")
	look("Binary", f.binary(), "whether k3s "+f.version.Wanted+" is on this disk: without it k3s is stopped while it is downloaded")
	if f.own.Etcd {
		look("Snapshot", f.evidence.snapshot, "whether there is a snapshot of etcd, at most 30 minutes old, on this node")
		look("EtcdHealthy", f.evidence.etcd, "whether etcd has an alarm or is too large")
		add("EtcdMembers", f.learner(), false)
		if stepsEtcd(f.from(), f.version.Wanted) {
			add("EtcdVersion", f.etcdUnknown(), true)
		}
	}
	if kind == types.K3sMinor {
		look("Compatible", f.evidence.components, "whether KubeVirt and Longhorn work with "+f.version.Wanted)
	}
	if kind == types.K3sMinor && f.own.IsServer() { // once the servers have changed it is too late to ask
		look("RemovedAPIs", f.evidence.removed, "whether an API is used that "+f.version.Wanted+" does not have")
	}
	if drains {
		add("Drained", f.undrained(), false)
	}
	add("Consent", f.consentLacks(), true)
	add("Lock", f.locked(drains), false)
	add("Volumes", f.degraded(), f.checked != nil)
	return list
}

// precondition is one that holds where nothing lacks, or where a release that may do without it does.
func precondition(name, lacks string, release, released bool) types.KubeLifecyclePrecondition {
	p := types.KubeLifecyclePrecondition{Name: name, Holds: lacks == "" || release && released, Release: release && lacks != ""}
	if lacks != "" {
		p.Reason = strings.ToUpper(lacks[:1]) + lacks[1:] + "."
	}
	return p
}

func notHeld(list []types.KubeLifecyclePrecondition) []types.KubeLifecyclePrecondition {
	return slices.DeleteFunc(slices.Clone(list), func(p types.KubeLifecyclePrecondition) bool { return p.Holds })
}

// released reports whether an operator has released this very change here, after the last
// failure, without this precondition.
func (f facts) released(name string) bool {
	return slices.Contains(f.release.Without, name) && f.release.Version != "" && f.release.Version == f.version.Wanted && f.release.RequestedAt.After(f.journal.Failed.At) && !f.release.RequestedAt.Equal(f.journal.Release)
}

// drains reports whether the node is drained for the change. On a single node the pods have
// nowhere to go; they outlive a restart of k3s.
func (f facts) drains(kind types.K3sChange) bool { return kind == types.K3sMinor && len(f.nodes) > 1 }

func (f facts) failed() string {
	if f.journal.Failed.To == f.version.Wanted {
		return "this node failed to change to " + f.version.Wanted + ": " + strings.TrimSuffix(f.journal.Failed.Why, ".")
	}
	return ""
}

// otherFailed names another node that failed to change to this version. A release on that node
// ends it, so that no release of before the failure lets the next one fail as well.
func (f facts) otherFailed() string {
	for _, n := range f.nodes {
		if n.Name != f.own.Name && n.K3s != nil && !n.Foreign() && n.K3s.Failed == f.version.Wanted {
			return "node " + n.Name + " failed to change to " + f.version.Wanted
		}
	}
	return ""
}

// disagreement names a node that does not want the same, or of which it is not known.
func (f facts) disagreement() string {
	for _, n := range f.nodes {
		switch {
		case n.Name == f.own.Name:
		case n.Foreign() || n.K3s == nil:
			return "node " + n.Name + " runs no zedkube that waits for its turn"
		case n.K3s.Wanted != f.version.Wanted:
			return fmt.Sprintf("the setting k3s.version of node %s is %q", n.Name, phrase.Cut(n.K3s.Wanted, 64))
		}
	}
	return ""
}

func (f facts) serversFirst() string {
	for _, n := range f.nodes {
		if !f.own.IsServer() && n.IsServer() && n.KubeletVersion != f.version.Wanted {
			return "server " + n.Name + " runs " + n.KubeletVersion + ", and no kubelet may be newer than an API server"
		}
	}
	return ""
}

func (f facts) turn() string {
	name := next(f.order, f.version.Wanted)
	if name == f.own.Name || name == "" {
		return ""
	}
	return "node " + name + " changes before this one" + f.silence(name)
}

func (f facts) notReady() string {
	for _, n := range f.nodes {
		if n.Ready != types.ConditionTrue {
			return "node " + n.Name + " is not Ready"
		}
	}
	return ""
}

// quorum says what etcd lacks without this node, and what an operator may allow: that the
// other of two servers has no quorum meanwhile. A single server needs none of others.
func (f facts) quorum() (lack, alone string) {
	if !f.own.Votes() {
		return "", ""
	}
	if lack = types.LacksQuorum(f.nodes, f.own.Name); lack != "" {
		lack = "without this node " + lack
	}
	if q := types.QuorumOf(types.Without(f.nodes, f.own.Name)); q.Voters == 2 {
		alone = "of two servers the other one has no quorum meanwhile"
	}
	return lack, alone
}

func (f facts) learner() string {
	for _, n := range f.nodes {
		if n.Etcd && n.EtcdVoter == types.ConditionFalse {
			return "the member of etcd on node " + n.Name + " is still a learner"
		}
	}
	return ""
}

func (f facts) etcdUnknown() string {
	for _, n := range f.nodes {
		if n.Etcd && etcdOf(n) == "" {
			return fmt.Sprintf("it is not known which etcd node %s has: before 3.5.%d that of %s may not start", n.Name, etcdStepPatch, f.version.Wanted)
		}
	}
	return ""
}

// goesDown says what this node does that a change must not meet. A minor one requests a drain
// itself.
func (f facts) goesDown(drains bool) string {
	switch {
	case f.leaves:
		return "this node leaves its cluster"
	case !f.requestsKnown:
		return "it is not known yet whether a drain of this node is requested"
	case f.deviceDrain:
		return "the device is about to go down or to be updated"
	case !drains && (f.operatorDrain || f.asksForDrain() || !f.drain.Over()):
		return "a drain of this node is requested or not over"
	}
	return ""
}

// undrained says what is to be waited for before a kubelet may take another minor version.
func (f facts) undrained() string {
	asks := f.asksForDrain() && slices.Contains(f.drain.Requesters, types.RequestedByK3s)
	switch f.drain.Phase {
	case types.PhaseComplete:
		if asks && f.drain.Lock.Mine && !f.drain.Journal.Dead {
			return ""
		}
	case types.PhaseNoCordon, types.PhaseNotEmpty:
		return "the drain of this node failed, and is tried again an hour later; zedkube drain status says why"
	case types.PhaseGates, types.PhaseEmptying:
		return "this node is drained first; zedkube drain status says how far that is"
	}
	return "this node is drained first"
}

func (f facts) asksForDrain() bool { return !f.published.Drain.RequestedAt.IsZero() }

// requestsDrain requests the drain of this node once nothing else is in the way. What is in
// the way for a moment does not end it; what an operator or a failure says does, and a drain
// that has emptied nothing because the API server did not answer. For the drain lock it waits
// itself; of a node that may reboot without that nobody knows when.
func (f facts) requestsDrain(a *action, lacking []types.KubeLifecyclePrecondition) {
	lacks := func(names ...string) bool {
		return slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool { return slices.Contains(names, p.Name) })
	}
	rest := slices.DeleteFunc(slices.Clone(lacking), func(p types.KubeLifecyclePrecondition) bool {
		return p.Name == "Drained" || f.asksForDrain() && (p.Name == "Lock" && f.reboots() == "" || p.Name == "Volumes" && f.checked == nil)
	})
	switch {
	case lacks("NotHeld", "NotFailed", "OthersNotFailed"), f.leaves, f.drain.Phase == types.PhaseComplete && f.drain.Journal.Dead:
	case len(rest) == 0:
		a.status.Drain = f.drainRequest(a.status.To)
	case !f.asksForDrain():
	case f.lacked == 0 || f.uptime < f.lacked+keepDrained:
		a.status.Drain, a.lacked = f.published.Drain, cmp.Or(f.lacked, f.uptime)
	}
}

// drainRequest is the one that stands, or a new one.
func (f facts) drainRequest(to string) types.NodeDrainRequest {
	if f.asksForDrain() {
		return f.published.Drain
	}
	return types.NodeDrainRequest{RequestedAt: f.now.UTC(), RequestedBy: types.DrainRequesterNone, Context: "k3s changes to " + to}
}

// condition is the message of the first of these conditions that is False. It is known what
// they say where none is Unknown or missing.
func (f facts) condition(names ...types.NodeStateType) finding {
	known := 0
	for _, c := range f.conditions {
		switch {
		case !slices.Contains(names, c.Type):
		case c.Status == types.ConditionFalse:
			return finding{known: true, lacks: strings.TrimSuffix(c.Message, ".")}
		case c.Status == types.ConditionTrue:
			known++
		}
	}
	return finding{known: known == len(names)}
}

// binary is what is known of the k3s that is to run. kube-init of EVE 17.3 stops its own
// download: a change would only restart k3s, again and again.
func (f facts) binary() finding {
	if found := f.evidence.binary; found.known || !f.kubeInit || !f.version.OnDisk {
		return found
	}
	return finding{known: true, lacks: "the k3s on this disk is the one that runs, and kube-init of EVE 17.3 restarts k3s again and again instead of downloading another: first put the binary of " + f.version.Wanted + " in its place"}
}

func (f facts) consentLacks() string {
	switch {
	case f.consent == ConsentEach:
		return "an operator has to consent to the change of each node"
	case f.consent == ConsentCommit && commits(f.own, f.nodes, f.version.Wanted) != "":
		return "the cluster cannot return to the version before once this node has changed, and an operator has to consent to that"
	case f.consent != "" && f.consent != ConsentNone && f.consent != ConsentCommit:
		return fmt.Sprintf("the setting k3s.consent is %q: none, commit or each", phrase.Cut(string(f.consent), 20))
	}
	return ""
}

// locked says who has the drain lock, "" where this change may have it or has it. A drain's
// own lock serves a minor change.
func (f facts) locked(drains bool) string {
	holder := f.holder()
	for _, n := range f.nodes { // also where a drain has taken its lock after a boot
		switch {
		case n.Name == f.own.Name:
		case n.Name != holder && n.ChangesK3s() && !f.off[n.Name]:
			return "node " + n.Name + " changes k3s to " + phrase.Cut(n.K3s.To, 64) + f.silence(n.Name)
		case !drains && n.MayDrainUnlocked(): // a drain waits for it itself
			return "node " + n.Name + " is cordoned and may be draining, because its agent does not use the drain lock"
		}
	}
	if why := f.reboots(); why != "" {
		return why
	}
	i := slices.IndexFunc(f.nodes, func(n types.Node) bool { return n.Name == holder })
	switch {
	case f.mine() && f.remounts() != "":
		return f.remounts() + " under the drain lock of this node"
	case holder == "" || i < 0 || f.mine():
		return ""
	case holder == f.own.Name && f.checked != nil && f.checked.lock.Task == "" && !f.checked.lock.Ended && drains:
		return ""
	case holder == f.own.Name:
		return "this node has the drain lock for something else"
	case f.checked != nil && f.checked.lock.OverWhereOff(f.nodes[i], f.off[holder]):
		return ""
	case f.checked != nil && f.overAfterBoot(f.nodes[i], f.checked.lock):
		return keptFor(f.checked.lock, f.checked.storage)
	}
	n, why := f.nodes[i], "node "+holder+" has the drain lock"
	if n.K3s != nil && n.K3s.Step != types.K3sStepNone {
		why += " and changes k3s to " + phrase.Cut(n.K3s.To, 64)
	}
	switch {
	case n.Ready != types.ConditionTrue:
		why += "; it is not Ready"
	case n.Foreign():
		why += "; its agent does not write its stamp"
	default:
		why += f.silence(holder)
	}
	return why
}

// holder is who has the drain lock, as it was looked at last.
func (f facts) holder() string {
	if f.checked != nil {
		return f.checked.lock.Holder
	}
	return f.lock.Holder
}

// reboots names a node other than the holder of the drain lock whose drain is complete all the
// same. One that is off may be so for good. It may have become so since the nodes were listed.
func (f facts) reboots() string {
	holder := f.holder()
	for _, n := range slices.Concat(f.nodes, f.watched) {
		if n.Name != f.own.Name && n.Name != holder && n.Ready == types.ConditionTrue && n.MayReboot() {
			return n.NotRebooted()
		}
	}
	return ""
}

// silence says of a node for which this one waits that its agent is not heard of.
func (f facts) silence(node string) string {
	if f.stamps.Silent(node, f.uptime) {
		return "; " + types.K3sSilence()
	}
	return ""
}

// overAfterBoot reports whether the change of k3s for which the holder has the lock is over: its device
// has booted since, is Ready and has nothing under way, no drain either.
func (f facts) overAfterBoot(holder types.Node, lock types.DrainLock) bool {
	holder.TieBreaker = holder.BreaksTies(f.tie) // whose cordon stays
	return lock.Task == types.TaskK3sChange && lock.BootID != "" && holder.BootID != lock.BootID && holder.Ready == types.ConditionTrue && !holder.ChangesK3s() && !holder.InDrain()
}

// keptFor names the volumes for which the lock of a change that is over is kept: who takes it
// records others, and frees it for a third node.
func keptFor(lock types.DrainLock, s types.Storage) string {
	if worse := lock.Degraded(s); len(worse) > 0 {
		return "the drain lock is kept until volumes on node " + lock.Holder + " are rebuilt: " + phrase.Few(worse, 3)
	}
	return ""
}

// degraded names a volume with a replica here that is not healthy.
func (f facts) degraded() string {
	if f.checked == nil {
		return "the volumes with a replica on this node are looked at"
	}
	for _, v := range f.checked.storage.Volumes {
		if v.On(f.own.Name) && (v.Robustness == "degraded" || v.Robustness == "faulted" || v.State == "attached" && v.Robustness != "healthy") {
			return "volume " + v.Name + ", which has a replica on this node, is not healthy"
		}
	}
	return ""
}
