package mounts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

const (
	pendingFor   = 5 * time.Minute // for which a pod may wait for its volumes as a matter of course
	unmountedFor = 3 * time.Minute // longer than the kubelet's longest pause between two tries to mount
	mostAttempts = 3
	// apart is also how long no pod may wait before an episode is over: a pod that is made again
	// does not begin a new one.
	apart = types.MountsApart
	// backAfter is longer than span.LongestGap: what a pod has waited for begins again.
	backAfter  = types.MountsBackAfter
	lastResort = time.Hour        // of waiting before the cluster's API server is restarted for it
	announced  = 10 * time.Minute // for which that is published before
	again      = 10 * time.Second // while pods wait, or the drain lock is kept
	mostPods   = 20               // that are named
	// pauseAfter is between two tries to restart k3s that failed: each holds the drain lock
	// for up to 20 s. Where mostAttempts in a row did, it is longPause.
	pauseAfter = 5 * time.Minute
	longPause  = time.Hour
)

type facts struct {
	uptime    time.Duration // for everything that lasts
	boot      string
	known     bool // the tables tell the whole present truth, self too
	complete  bool // so do those of volumes
	damaged   bool // there is a file of what was published, which cannot be read
	own       types.Node
	nodes     []types.Node
	pods      []types.Pod        // of this node that wait for their volumes, by name
	volumes   map[string]volume  // of this node, by claim
	process   k3sprocess.Process // zero where only its supervisor knows it
	noRestart string             // why k3s cannot be restarted, "" where it can
	gate      string             // what a restart must not meet, "" for nothing
	lock      types.Lease        // the drain lock
	change    types.KubeLifecycle
	drained   bool   // the drain of this node is complete, and for its change of k3s alone
	off       string // its holder, if that is proved off; "" if not
	tie       string // UUID of the cluster's tie-breaker, "" for none
	published types.MountRecovery
	memory
}

// volume is one that Longhorn has for this node.
type volume struct {
	types.Volume
	here bool // attached, and its device is there
}

// memory is what this process remembers of earlier steps. Losing it costs time.
type memory struct {
	spans  map[string]span.Span
	tried  time.Duration // uptime when the drain lock was last to be released
	kept   string        // why it was not
	pause  time.Duration // uptime before which no restart is tried
	failed string        // why the last try failed
	vain   int           // tries in a row after which k3s went on as before
}

// result is what came of a call: a try to restart k3s, or to release the drain lock.
type result struct {
	err     error
	release bool
}

// note remembers a result. Where another node had the drain lock nothing was tried.
func (m *memory) note(r result, uptime time.Duration) {
	why := ""
	if r.err != nil {
		why = phrase.Cut(r.err.Error(), 300)
	}
	switch {
	case r.release:
		m.kept = why
		return
	case r.err == nil:
		m.pause, m.vain = 0, 0
	default:
		m.pause = uptime + pauseAfter
		if !errors.Is(r.err, types.ErrConflict) {
			m.vain++
		}
		if m.vain >= mostAttempts {
			m.pause = uptime + longPause
		}
	}
	m.failed, m.kept = why, ""
}

type action struct {
	status types.MountRecovery
	memory
	restart bool     // k3s
	volumes []string // that have to be attached and as healthy as they can be for that
	alone   bool     // also where etcd has no quorum meanwhile
	release bool     // the drain lock, if the restart is over
	again   time.Duration
}

func decide(f facts) action {
	a := action{status: f.remembered(), memory: f.memory}
	s := &a.status
	ours := f.lock.Task == types.TaskK3s && f.lock.Holder == f.own.Name
	restarts := s.Restarts(f.boot, f.uptime, f.started())
	if len(f.pods) > 0 || ours || f.hasChange() && restarts {
		a.again = again
	}
	switch {
	case !f.known:
		a.spans = nil // what has lasted begins again
		return a
	case ours:
		a.release = f.uptime >= max(backAfter, f.tried+again) && !restarts
		s.Phase, s.Reason = types.RepairActs, "The drain lock is kept until the kubelet of this node is back after a restart of k3s."
		if f.kept != "" {
			s.Reason += " It could not be released: " + f.kept + "."
		}
		return a
	case f.hasChange() && restarts && s.Attempts > 0:
		s.Phase, s.Reason = types.RepairActs, fmt.Sprintf("k3s was restarted under the drain lock of the change of k3s of this node, attempt %d of %d: it is waited for the kubelet.", s.Attempts, mostAttempts)
		return a
	}
	a.spans = map[string]span.Span{}
	s.Pods, s.Phase, s.Reason = nil, types.RepairWell, ""
	if len(f.pods) == 0 {
		s.Began = 0
	}
	waiting := slices.DeleteFunc(slices.Clone(f.pods), func(p types.Pod) bool { return !f.lasts(a, "pending/"+p.UID, pendingFor) })
	if s.Watch = len(waiting) > 0; s.Watch && !f.complete {
		return a
	}
	degraded, mountable, held := "", 0, []string(nil)
	for _, p := range waiting {
		var volumes []string
		worse := ""
		for _, claim := range p.Claims {
			v := f.volumes[p.Namespace+"/"+claim]
			if v.here {
				volumes = append(volumes, v.Name)
			}
			if !isHealthy(v.Volume, f.nodes) {
				worse = cmp.Or(worse, v.Name)
			}
		}
		degraded = cmp.Or(degraded, worse)
		if len(volumes) < len(p.Claims) {
			continue
		}
		key := "unmounted/" + p.UID + "/" + worse
		if worse == "" {
			mountable++
		}
		switch long := f.lasts(a, key, unmountedFor); {
		case !long:
		case worse != "":
			held = append(held, p.Key())
		default:
			s.Pods, a.volumes = append(s.Pods, p.Key()), append(a.volumes, volumes...)
			if began := max(a.spans[key].Began, 1); s.Began == 0 || began < s.Began {
				s.Began = began
			}
		}
	}
	if mountable == 0 && f.lasts(a, "none", apart) {
		s.Attempts, s.Unknown, a.pause, a.vain = 0, false, 0, 0
	}
	switch {
	case len(s.Pods) > 0:
		f.judge(&a, degraded)
		s.Reason = "The kubelet does not mount the volumes of pod " + phrase.Few(s.Pods, 3) + ", although they are attached. " + s.Reason
	case len(held) > 0:
		s.Phase, s.Reason = types.RepairWaits, fmt.Sprintf("Pod %s waits for its volumes, although they are attached. k3s is not restarted for that while volume %s is not healthy.", phrase.Few(held, 3), degraded)
	case s.Attempts > 0 && len(f.pods) > 0:
		s.Phase = types.RepairWaits
		s.Reason = fmt.Sprintf("k3s was restarted because volumes were not mounted, attempt %d of %d. Pod %s waits for its volumes.", s.Attempts, mostAttempts, f.pods[0].Key())
	}
	s.Pods = s.Pods[:min(len(s.Pods), mostPods)]
	return a
}

// remembered is what was published, as it counts in this boot. What cannot be read counts
// as so many restarts as are made, the last of them now.
func (f facts) remembered() types.MountRecovery {
	s := f.published
	switch {
	case f.damaged, s.Attempts < 0, min(s.Last, s.Began) < 0, s.BootID == f.boot && max(s.Last, s.Began) > f.uptime:
		return types.MountRecovery{Unknown: true, BootID: f.boot, Last: f.uptime}
	case s.BootID != f.boot: // nothing is restarted for the first minutes of a boot, either
		s.BootID, s.Last, s.Began = f.boot, 0, 0
	}
	return s
}

// judge says what is done for pods whose volumes are not mounted.
func (f facts) judge(a *action, degraded string) {
	s, lack := &a.status, ""
	lack, a.alone = quorum(f.nodes, f.own.Name)
	s.Phase = types.RepairWaits
	switch {
	case s.Unknown:
		s.Phase, s.Reason = types.RepairGaveUp, "How often k3s was restarted for that cannot be read: it is not restarted again."
	case s.Attempts >= mostAttempts:
		s.Phase, s.Reason = types.RepairGaveUp, fmt.Sprintf("k3s was restarted %d times without success; an operator must investigate.", s.Attempts)
	case f.noRestart != "":
		s.Phase, s.Reason = types.RepairRefused, "Nothing is done: "+f.noRestart+"."
	case degraded != "":
		s.Reason = "k3s is not restarted while volume " + degraded + " is not healthy."
	case f.gate != "":
		s.Reason = "k3s is not restarted yet: " + f.gate + "."
	case f.own.Ready != types.ConditionTrue:
		s.Reason = "k3s is not restarted while this node is not Ready."
	case !f.shares() && isNeeded(types.DrainLock{Holder: f.lock.Holder, Task: f.lock.Task, BootID: f.lock.BootID}, f.off, f.tie, f.nodes):
		s.Reason = "k3s is restarted after node " + f.lock.Holder + " has released the drain lock."
	case lack != "":
		s.Reason = "k3s is not restarted: without this node " + lack + "."
	case f.uptime < s.Last+apart:
		s.Reason = fmt.Sprintf("k3s is restarted no sooner than %s after the last restart or the boot.", apart)
	case a.alone && f.uptime < s.Began+lastResort:
		s.Reason = fmt.Sprintf("k3s is restarted after %s of that, because the cluster has no API server meanwhile.", lastResort)
	case a.alone && !f.lasts(*a, fmt.Sprint("announced", s.Pods), announced):
		s.Reason = fmt.Sprintf("k3s is restarted %s after this was first reported. The cluster has no API server meanwhile.", announced)
	case f.vain >= mostAttempts:
		s.Phase, s.Reason = types.RepairRefused, fmt.Sprintf("k3s is not restarted: %s. It is tried again after %s.", f.failed, longPause)
		a.restart = f.uptime >= f.pause
	case f.uptime < f.pause:
		s.Reason = "The last attempt failed: " + f.failed + "."
	default:
		under := ""
		if f.shares() {
			under = " under the drain lock of the change of k3s of this node"
		}
		s.Phase, s.Reason = types.RepairActs, fmt.Sprintf("k3s is restarted%s, attempt %d of %d.", under, s.Attempts+1, mostAttempts)
		a.restart = true
	}
}

// started is when the process of k3s did, 0 where only its supervisor knows it.
func (f facts) started() time.Duration {
	if f.process.PID == 0 {
		return 0
	}
	return f.process.Start
}

// shares reports whether k3s may be restarted under the lock of a change of k3s on this node, which is Stuck because
// pods do not run: it would wait for them for ever, with its lock. That may be of a former boot, in which it began.
func (f facts) shares() bool { return f.hasChange() && f.change.LacksPods() }

// hasChange reports whether this node has the drain lock for a change of k3s: its own, or that of the drain for it.
func (f facts) hasChange() bool {
	return serves(f.lock.Task, f.lock.BootID == f.boot && f.drained) && f.lock.Holder == f.own.Name && f.own.Name != ""
}

// serves reports that a change of k3s goes on under a drain lock with that task. drained says that a drain for it alone
// is complete, in the boot of the lock.
func serves(task string, drained bool) bool {
	return task == types.TaskK3sChange || task == "" && drained
}

// isDrainedForK3s reports that the drain of this node is complete, and that its own change of k3s alone requested it.
func isDrainedForK3s(drain types.NodeDrainProgress) bool {
	return drain.Phase == types.PhaseComplete && drain.OnlyForK3s()
}

// lasts notes that something is so, and reports whether it has been for that long.
func (f facts) lasts(a action, key string, long time.Duration) bool {
	s := f.spans[key]
	s.Note(f.uptime, true)
	a.spans[key] = s
	return s.Reached(f.uptime, long)
}

// isNeeded reports that who holds the drain lock still needs it (docs/wire.md, "Drain lock").
// When a drain is over its own agent knows: its volumes have to be as healthy as before. off is a
// node whose device is proved off, which ends a change of k3s; tie is the tie-breaker's, whose cordon stays.
func isNeeded(lock types.DrainLock, off, tie string, nodes []types.Node) bool {
	return slices.ContainsFunc(nodes, func(n types.Node) bool {
		n.TieBreaker = n.BreaksTies(tie)
		return holds(n, lock, off) && (lock.Task == "" || lock.BootID == "" || n.BootID == lock.BootID || n.Ready != types.ConditionTrue || lock.Task == types.TaskK3sChange && (n.ChangesK3s() || n.InDrain()))
	})
}

// isKept reports that the lock of a change of k3s may be kept for its volumes alone, by a holder that is neither
// gone nor proved off.
func isKept(lock types.DrainLock, off string, nodes []types.Node) bool {
	return lock.Task == types.TaskK3sChange && len(lock.Volumes) > 0 && slices.ContainsFunc(nodes, func(n types.Node) bool { return holds(n, lock, off) })
}

// holds reports that a node has the drain lock, other than for a change of k3s that is over as its device is proved off.
func holds(n types.Node, lock types.DrainLock, off string) bool {
	return n.Name == lock.Holder && !lock.OverWhereOff(n, n.Name == off)
}

// isHealthy reports that a volume is healthy, or degraded because it is to have more replicas
// than there are nodes for them, as which it stays. Of what is not known it says nothing.
func isHealthy(v types.Volume, nodes []types.Node) bool {
	return v.Name == "" || v.Robustness == "healthy" || v.Robustness == "degraded" && v.Wanted > len(storing(nodes))
}

// storing are the nodes that may have replicas.
func storing(nodes []types.Node) []types.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n types.Node) bool { return n.TieBreaker })
}

// isComplete reports that each of these nodes has a healthy replica of a volume in use, and none
// has another one.
func isComplete(v types.Volume, nodes []types.Node) bool {
	for _, n := range nodes {
		if !slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return r.Node == n.Name && v.Healthy(r) }) {
			return false
		}
	}
	return v.Running && !slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return r.Node != "" && !v.Healthy(r) })
}

// quorum says what etcd lacks while this node's k3s restarts. alone is where it then has no
// quorum in any case: a single server, or one of two.
func quorum(nodes []types.Node, own string) (lack string, alone bool) {
	q := types.QuorumOf(types.Without(nodes, own))
	return types.LacksQuorum(nodes, own), q.Voters == 0 || !q.Has()
}

// refuses says why k3s is not to be restarted after all, by fresh lists; nil for nothing.
func (a action) refuses(own string, nodes []types.Node, s types.Storage) error {
	if lack, alone := quorum(nodes, own); lack != "" || alone && !a.alone {
		return errors.New("without this node etcd has no quorum")
	}
	for _, name := range a.volumes {
		is := func(v types.Volume) bool {
			return v.Name == name && v.State == "attached" && isHealthy(v, nodes) && (v.Robustness == "healthy" || isComplete(v, storing(nodes)))
		}
		if !slices.ContainsFunc(s.Volumes, is) || !slices.ContainsFunc(s.Attachments, func(a types.Attachment) bool { return a.Volume == name }) {
			return fmt.Errorf("volume %s is not attached, or not as healthy as it can be", name)
		}
	}
	return nil
}
