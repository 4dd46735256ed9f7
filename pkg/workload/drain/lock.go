package drain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// The rules of the drain lock (docs/wire.md, "Drain lock") and of etcd's quorum.
//
// A call that reads before it writes is carried out request by request: its rule
// says which request comes next, by what was read so far. The rules run between
// the requests and not in decide, because a decision is only as good as what it
// was made on: the lock is written by compare-and-swap on the version just read,
// quorum has to be there after the lock is had, and the Node is deleted by a look
// at the volumes of this moment. They are pure all the same: the goroutine that
// calls decides nothing.

// apiRequest is one request of such a call to the API server.
type apiRequest int

const (
	nothing apiRequest = iota // the call is done
	readLock
	readNodes // with the renewals of their kubelets
	readStorage
	readBriefly // the storage, where nobody waits for a Longhorn that works badly
	readPods
	readUsers // of volumes
	writeLock
	freeLock
	cordonNode
	deleteOwnNode
)

// next is what a rule wants.
type next struct {
	do         apiRequest
	lock       types.DrainLock // to write
	regardless bool            // also where a request before has failed
	out        outcome         // of the call where it ends here
}

// reading is what a call has read so far.
type reading struct {
	at       time.Time    // by the wall clock
	done     []apiRequest // those that have succeeded, in their order
	failed   error        // of those that have not; a conflict is none
	conflict error        // another node was faster to write the lock
	lock     types.DrainLock
	nodes    []types.Node
	storage  types.Storage
	brief    types.Storage // of readBriefly; empty where that failed
	pods     []types.Pod
	users    map[string][]types.Pod // of volumes
}

func (r reading) did(what apiRequest) bool { return r.last(what) >= 0 }

// last is where what was last done in the order of requests; -1 for never.
func (r reading) last(what apiRequest) int {
	for i := len(r.done) - 1; i >= 0; i-- {
		if r.done[i] == what {
			return i
		}
	}
	return -1
}

func (r reading) ready() map[string]bool { return outlook.ReadyNodes(r.nodes) }

// rules are those of the calls that read before they write. What is wanted of one
// whose request has failed is the same request again: it ends with that error then.
var rules = map[verb]func(call, reading) next{
	enter: enterRule, cordonAfterDeadAPI: cordonAfterDeadAPIRule, takeLock: takeLockRule, release: releaseRule,
	list: listRule, check: checkRule, deleteNode: deleteNodeRule, checkLeave: checkLeaveRule,
}

// takeOverAfter is when a restart of k3s by the own node has certainly ended, or never will:
// its lock is released no later where the kubelet came back (docs/wire.md, "MountRecovery").
const takeOverAfter = 20 * time.Minute

// shareAfter is how long a change of k3s on the own node may have the lock before a drain of that
// node waits no longer: a change and its return are over by then, or do not end by themselves.
const shareAfter = time.Hour

const lockChanged = "the drain lock was changed by another node a moment ago"

// enterRule takes the lock if it may be had, and looks whether quorum allows a
// node to go, before and after; if not, the lock is given back for the others.
func enterRule(in call, r reading) next {
	n, ok := lockAndNodes(in, r)
	if goes := goesUnlocked(in.nodes, in.node.Name, r.lock.Holder, in.completed); n.do == readNodes && goes != "" && !ours(r.lock, in.node.Name) {
		return next{out: outcome{gates: goes}}
	}
	if !ok {
		return n
	}
	if lack := quorum(r.nodes, in.node.Name); lack != "" {
		return giveBackRule(in, r, outcome{gates: lack, check: checked{quorum: lack}})
	}
	if goes := goesUnlocked(r.nodes, in.node.Name, r.lock.Holder, in.completed); goes != "" {
		return giveBackRule(in, r, outcome{gates: goes}) // that node still wants it
	}
	n, ok = takeRule(in, r)
	if ok && slices.Index(r.done, readNodes) == r.last(readNodes) {
		return next{do: readNodes} // a second time
	}
	return n
}

// giveBackRule gives a lock of this boot back under which nothing has been done yet, and then ends the call with
// out. What it was first taken for may not be over: then it is kept, and says that no drain goes on under it. So
// it is where the volumes cannot be read, which holds up nothing else.
func giveBackRule(in call, r reading, out outcome) next {
	own, _ := nodeNamed(r.nodes, in.node.Name)
	if !ours(r.lock, in.node.Name) || r.lock.BootID != own.BootID || in.node.CordonedForDrain() || r.conflict != nil {
		return next{out: out}
	}
	ended, unread := r.lock, len(r.lock.Volumes) > 0 && !r.did(readStorage)
	ended.Ended = true
	switch {
	case unread && r.failed == nil:
		return next{do: readStorage, out: out}
	case !unread && needed(ended, heard{}, r.nodes, r.storage) == "":
		return next{do: freeLock, lock: r.lock, out: out}
	}
	out.weighed = !unread
	if r.lock.Ended {
		return next{out: out}
	}
	return next{do: writeLock, lock: ended, regardless: true, out: out}
}

// lockAndNodes reads the lock, and the nodes where it may be had by what the table
// shows: of another holder that is enough to go on waiting.
func lockAndNodes(in call, r reading) (n next, ok bool) {
	switch {
	case !r.did(readLock):
		return next{do: readLock}, false
	case r.did(readNodes):
		return next{}, true
	}
	if why := lockable(r.lock, in.node.Name, in.heldFor(r.lock, r.at), in.heard, in.nodes, types.Storage{}); why != "" {
		return next{out: outcome{gates: why}}, false
	}
	return next{do: readNodes}, false
}

// takeRule makes the lock ours if its holder does not need it; have says that it
// is. A lock that is ours already, or that of an own change, keeps what was recorded of its volumes.
func takeRule(in call, r reading) (n next, have bool) {
	own, _ := nodeNamed(r.nodes, in.node.Name)
	isOurs := ours(r.lock, in.node.Name)
	switch {
	case r.conflict != nil:
		return next{out: outcome{gates: lockChanged}}, false
	case r.did(writeLock), isOurs && r.lock.BootID == own.BootID && !r.lock.Ended, shared(r.lock, own, in.heldFor(r.lock, r.at)):
		return next{}, true
	case r.last(readStorage) < r.last(readLock):
		return next{do: readStorage}, false
	}
	if why := lockable(r.lock, in.node.Name, in.heldFor(r.lock, r.at), in.heard, r.nodes, r.storage); why != "" {
		return next{out: outcome{gates: why, weighed: true}}, false
	}
	mine := types.DrainLock{
		Holder: in.node.Name, BootID: own.BootID, Since: r.at.UTC(),
		Volumes: outlook.HealthyReplicas(r.storage, in.node.Name), Version: r.lock.Version,
	}
	if isOurs || leftOver(r.lock, own) {
		mine.Since, mine.Volumes = r.lock.Since, r.lock.WithVolumes(mine.Volumes)
	}
	return next{do: writeLock, lock: mine}, false
}

// cordonAfterDeadAPIRule is for a device that was allowed to go down without
// Kubernetes, which answers again before it has. It may go down any moment, so the
// cordon does not depend on the lock.
func cordonAfterDeadAPIRule(in call, r reading) next {
	if r.failed == nil {
		n, ok := lockAndNodes(in, r)
		if ok {
			n, _ = takeRule(in, r)
		}
		if n.do != nothing {
			return n
		}
	}
	if !r.did(cordonNode) {
		return next{do: cordonNode, regardless: true}
	}
	return next{out: outcome{err: r.failed}}
}

// takeLockRule is for a drain that is complete without the lock: a node that waits for
// it learns for how long, also while this device is off.
func takeLockRule(in call, r reading) next {
	if n, ok := lockAndNodes(in, r); !ok {
		return n
	}
	n, _ := takeRule(in, r)
	return n
}

// releaseRule frees the lock if it is ours and not needed any longer. While volumes
// are still worse than before the drain it notes in the lock that the drain has
// ended, so that others can tell once they are not.
func releaseRule(in call, r reading) next {
	switch {
	case !r.did(readLock):
		return next{do: readLock}
	case r.did(freeLock):
		return next{out: outcome{notOurs: true}}
	case !ours(r.lock, in.node.Name):
		return next{out: outcome{notOurs: true}}
	case !r.did(readNodes):
		return next{do: readNodes}
	case !r.did(readStorage):
		return next{do: readStorage}
	}
	ended := r.lock
	ended.Ended = true // no drain is wanted, or this would not be called
	out := outcome{gates: needed(ended, heard{}, r.nodes, r.storage)}
	switch {
	case out.gates == "" && r.conflict == nil:
		return next{do: freeLock, lock: r.lock}
	case out.gates == "":
		return next{out: outcome{err: r.conflict}}
	}
	if own, ok := nodeNamed(r.nodes, in.node.Name); ok && own.BootID == r.lock.BootID && !r.lock.Ended && r.conflict == nil {
		return next{do: writeLock, lock: ended, out: out}
	}
	return next{out: out}
}

// listRule lists the pods that have to leave.
func listRule(_ call, r reading) next {
	if !r.did(readPods) {
		return next{do: readPods}
	}
	return next{}
}

// checkRule looks at everything that COMPLETE promises, but for pods that come
// back however often they are evicted. Where no other node takes the pods that is
// the lock and the quorum alone, and for which rebuilds to wait.
func checkRule(in call, r reading) next {
	switch {
	case !r.did(readNodes): // before the pods: it may take a while
		return next{do: readNodes}
	case isUncordoned(r.nodes, in.node.Name):
		return next{out: outcome{check: checked{uncordoned: true}}}
	case !r.did(readPods):
		return next{do: readPods}
	}
	out := outcome{check: checked{lone: in.alone}}
	for _, p := range r.pods {
		if in.remains(p) {
			out.check.pods = append(out.check.pods, p.Key())
		}
	}
	if !in.alone {
		s := r.storage
		switch {
		case len(out.check.pods) > 0:
			return next{out: out}
		case !r.did(readStorage):
			return next{do: readStorage, out: out}
		case in.leavesUseToPods(s) && !r.did(readUsers):
			return next{do: readUsers, out: out}
		case in.leavesUseToPods(s):
			s = outlook.WithoutUse(s, in.node.Name, r.usedByStaying(in))
		}
		out.check.volumes = in.blockingVolumes(s, r.ready(), &out)
		out.volumes, out.stored = out.check.volumes, true
	}
	out.check.quorum = quorum(r.nodes, in.node.Name)
	if !r.did(readLock) {
		return next{do: readLock, out: out}
	}
	n, have := takeRule(in, r)
	if n.do != nothing {
		n.out = out
		return n
	}
	if !have {
		out.check.lock = n.out.gates
	} else if more, some := recordsMore(in, r); some {
		return next{do: writeLock, lock: more, out: out}
	} else {
		out.check.lock = goesUnlocked(r.nodes, in.node.Name, r.lock.Holder, in.completed)
	}
	if in.alone && outlook.ReadyPeer(r.ready(), in.node.Name) {
		if !r.did(readBriefly) {
			return next{do: readBriefly, out: out}
		}
		// It is the one thing that a drain waits for where no other node is schedulable:
		// the pods stay, and so the rebuild goes on.
		out.check.volumes = outlook.RebuiltElsewhere(r.brief, in.node.Name, r.ready())
	}
	return next{out: out}
}

// recordsMore is the lock of a change of k3s under which own drains, with the volumes that have come since the change
// began, or are better: those of its drain are recorded by no other.
func recordsMore(in call, r reading) (lock types.DrainLock, some bool) {
	lock = r.lock
	if !r.did(readStorage) || r.did(writeLock) || ours(lock, in.node.Name) {
		return lock, false
	}
	lock.Volumes = lock.WithVolumes(outlook.HealthyReplicas(r.storage, in.node.Name))
	return lock, !maps.Equal(lock.Volumes, r.lock.Volumes)
}

func isUncordoned(nodes []types.Node, own string) bool {
	n, ok := nodeNamed(nodes, own)
	return ok && !n.Unschedulable
}

// deleteNodeRule deletes the own Node, if neither etcd nor a volume needs it any
// longer, and frees the lock.
func deleteNodeRule(in call, r reading) next {
	switch {
	case !r.did(readNodes):
		return next{do: readNodes}
	case r.did(deleteOwnNode): // the lock of a holder whose Node is gone may be taken by any node
		switch {
		case r.failed != nil:
		case !r.did(readLock):
			return next{do: readLock}
		case ours(r.lock, in.node.Name) && r.conflict == nil:
			return next{do: freeLock, lock: r.lock}
		}
		return next{out: lookedAtVolumes(in, r)}
	}
	ends, last := types.LastOf(r.nodes, in.node.Name)
	if ends && (in.consent == nil || !in.consent.Ends) {
		return next{out: outcome{gates: "the cluster ceases to exist with this node; if that is intended: zedkube leave plan, then zedkube leave --give-up-data"}}
	}
	if lack := quorum(r.nodes, in.node.Name); lack != "" {
		return next{out: outcome{gates: lack}}
	}
	if !r.did(readStorage) {
		return next{do: readStorage}
	}
	out := lookedAtVolumes(in, r)
	own, _ := nodeNamed(r.nodes, in.node.Name)
	switch {
	case len(out.volumes) > 0:
		out.gates = "this node leaves once its volumes no longer need it: " + out.volumes[0].Name + ": " + out.volumes[0].Why
	case last:
		// k3s does not let go of the Node of etcd's last member, and no other node is
		// left that would read anything of it.
		out.ended = true
	case !own.Deleted.IsZero():
		out.gates = "its Node is being deleted"
	default:
		return next{do: deleteOwnNode, out: out}
	}
	return next{out: out}
}

// checkLeaveRule notes what a leave would lose, whether or not the own Node is there. Where it is
// gone the lock is freed: the agent may have been killed after it deleted the Node.
func checkLeaveRule(in call, r reading) next {
	switch {
	case !r.did(readNodes):
		return next{do: readNodes}
	case !r.did(readStorage):
		return next{do: readStorage}
	case r.failed != nil: // the look counts without the lock
		return next{out: lookedAtVolumes(in, r)}
	}
	_, there := nodeNamed(r.nodes, in.node.Name)
	switch {
	case there || !in.leaving:
	case !r.did(readLock):
		return next{do: readLock}
	case ours(r.lock, in.node.Name) && !r.did(freeLock) && r.conflict == nil:
		return next{do: freeLock, lock: r.lock}
	}
	return next{out: lookedAtVolumes(in, r)}
}

// lookedAtVolumes is what a leave learns of the storage.
func lookedAtVolumes(in call, r reading) (out outcome) {
	out.volumes = in.blockingVolumes(r.storage, r.ready(), &out)
	return out
}

// blockingVolumes returns the volumes that are in the way of the call's drain, and
// notes which a leave would lose.
func (in call) blockingVolumes(s types.Storage, ready map[string]bool, out *outcome) []types.DrainVolume {
	if in.leaving {
		out.looked, out.only = true, outlook.LostByLeave(s, in.node.Name, ready)
	}
	if in.forGood {
		return outlook.BlockingVolumesOfLeave(s, in.node.Name, ready, in.consent)
	}
	return outlook.BlockingVolumes(s, in.node.Name, ready)
}

// quorum says what etcd lacks to go on without this node, "" for nothing.
func quorum(nodes []types.Node, own string) string {
	lack := types.LacksQuorum(nodes, own)
	if lack == "" {
		return ""
	}
	return "without this node " + lack
}

// ours reports that the lock is own's, for its drain. One that own holds to remove
// a stale member (docs/wire.md, "Drain lock") is not.
func ours(lock types.DrainLock, own string) bool { return lock.Holder == own && lock.Task == "" }

// heldFor is for how long the lock has been held: since it was taken by the wall clock, or, which counts
// where that was set back, since this process first saw it.
func (seen observed) heldFor(lock types.DrainLock, now time.Time) time.Duration {
	held := now.Sub(lock.Since)
	if lock.Version != "" && lock.Version == seen.lockLease.Version {
		held = max(held, seen.lockSeen)
	}
	return held
}

// shared reports that own has long had the lock for a change of k3s that goes on. A drain of own
// goes under it, and adds its volumes alone: the change goes on after the reboot, and needs it then.
func shared(lock types.DrainLock, own types.Node, held time.Duration) bool {
	return lock.Holder == own.Name && lock.Holder != "" && changesK3s(lock, own) && held >= shareAfter
}

// changesK3s reports that the holder of the lock has it for a change of k3s that goes on.
func changesK3s(lock types.DrainLock, holder types.Node) bool {
	return !lock.Ended && lock.Task == types.TaskK3sChange && (holder.BootID == lock.BootID || holder.ChangesK3s())
}

// leftOver reports that the lock is own's of an earlier boot, for a change of k3s that has ended. The change
// keeps it where a drain of own has gone on under it, which makes it its own.
func leftOver(lock types.DrainLock, own types.Node) bool {
	return lock.Holder == own.Name && lock.Task == types.TaskK3sChange && lock.BootID != "" && !changesK3s(lock, own)
}

// lockable says why own may not drain under the lock, "" for it may. One that own has long held for
// a restart of k3s may become that of its drain: k3s may never come back, and a reboot is
// what helps then. Other nodes still wait.
func lockable(lock types.DrainLock, own string, held time.Duration, h heard, nodes []types.Node, s types.Storage) string {
	if lock.Holder == "" || ours(lock, own) || lock.Holder == own && lock.Task == types.TaskK3s && held >= takeOverAfter {
		return ""
	}
	if node, there := nodeNamed(nodes, own); there && (shared(lock, node, held) || leftOver(lock, node)) {
		return ""
	}
	return needed(lock, h, nodes, s)
}

// heard is what is known of the holder of the drain lock beside its Node.
type heard struct {
	holder string // "" for nothing
	off    bool   // its device, as witnesses prove
	silent bool   // it changes k3s, and its agent is not heard of
}

// needed says why the holder still needs its lock, "" for it does not: its Node
// is gone, or it is back and as it was, or, with that of a change of k3s, its device
// is proved off. That is evidence: time is none.
func needed(lock types.DrainLock, h heard, nodes []types.Node, s types.Storage) string {
	holder, there := nodeNamed(nodes, lock.Holder)
	if h.holder != lock.Holder {
		h = heard{}
	}
	switch {
	case !there, lock.OverWhereOff(holder, h.off):
		return ""
	case !lock.Ended && lock.Task == types.TaskK3s && holder.BootID == lock.BootID:
		return fmt.Sprintf("node %s restarts k3s", lock.Holder)
	case h.silent && changesK3s(lock, holder):
		return fmt.Sprintf("node %s changes the version of k3s; %s", lock.Holder, types.K3sSilence())
	case changesK3s(lock, holder):
		return fmt.Sprintf("node %s changes the version of k3s", lock.Holder)
	case !lock.Ended && lock.Task != "" && holder.BootID == lock.BootID:
		return fmt.Sprintf("node %s removes a stale member of the cluster", lock.Holder)
	case !lock.Ended && (lock.BootID == "" || holder.BootID == lock.BootID):
		return fmt.Sprintf("node %s drains and has not rebooted yet", lock.Holder)
	case holder.NotBack() != "":
		return holder.NotBack()
	}
	if volumes := lock.Degraded(s); len(volumes) > 0 {
		return fmt.Sprintf("volumes on node %s have fewer healthy replicas than before its drain: %s", lock.Holder, outlook.Some(volumes))
	}
	return ""
}

func nodeNamed(nodes []types.Node, name string) (types.Node, bool) {
	for _, n := range nodes {
		if n.Name == name {
			return n, true
		}
	}
	return types.Node{}, false
}
