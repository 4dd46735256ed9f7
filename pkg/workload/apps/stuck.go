package apps

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// stuckFor is how long a virtual machine may fail to start before it is made
	// again; each further time takes twice as long.
	stuckFor = 3 * time.Minute
	// slowFor is the same where nothing has failed: images are imported and
	// volumes attached in their own time.
	slowFor = 15 * time.Minute
	// outdatedFor is how long an instance waits with an affinity that its set no
	// longer has: the tables may not agree yet.
	outdatedFor = 10 * time.Second
	// mostStuck is how often it is tried until it runs.
	mostStuck = 3
)

// unstick deletes a virtual machine that does not come to run although its node
// is ready; its replica set makes another one.
func (f facts) unstick(a app) (verdict, bool) {
	if !a.cfg.IsVMI() || a.runs(f.nodes) {
		return verdict{}, false
	}
	for _, v := range a.vmis {
		why, after := f.stuck(a, v)
		if why == "" {
			continue
		}
		return f.renew(a, v, why, after), true
	}
	return verdict{}, false
}

// replace deletes an instance whose set asks for another node by now. That holds
// up nothing else, as a failover from the former node.
func (f facts) replace(a app) (verdict, bool) {
	if !a.cfg.IsVMI() || a.runs(f.nodes) {
		return verdict{}, false
	}
	for _, v := range a.vmis {
		if why, after := f.outdated(a, v); why != "" {
			return f.renew(a, v, why, after), true
		}
	}
	return verdict{}, false
}

// renew says when a stuck instance is deleted.
func (f facts) renew(a app, vmi types.VMI, why string, after time.Duration) verdict {
	key := "stuck/" + vmi.UID + "/" + after.String() // a container that crashes tells now this, now that
	v := verdict{phase: types.RepairWaits, act: types.ActUnstick, reason: why, evidence: []string{why}, keys: []string{key}}
	if a.set.Note.Stuck >= mostStuck {
		v.phase = types.RepairGaveUp
		v.reason = fmt.Sprintf("%s It was recreated %d times without success; an operator must investigate.", why, a.set.Note.Stuck)
		return v
	}
	if v.again = max(0, after<<a.set.Note.Stuck+f.turns(a)-f.lasted(key)); v.again > 0 {
		return v
	}
	note := a.set.Note
	if note.Act != types.ActFailover { // what is left of one has to be remembered
		note = f.noted(a, types.ActUnstick, "")
	}
	note.Stuck++
	alone := a
	alone.vmis = []types.VMI{vmi}
	v.target = &target{app: alone, note: note}
	return v
}

// stuck says why an instance counts as stuck if that lasts, "" where it does not.
func (f facts) stuck(a app, v types.VMI) (why string, after time.Duration) {
	if why, after := f.outdated(a, v); why != "" {
		return why, after
	}
	starting := v.Phase == types.VMIPending || v.Phase == types.VMIScheduling || v.Phase == types.VMIUnset || v.Phase == types.VMIScheduled
	if !starting || !v.Deleted.IsZero() {
		return "", 0
	}
	for _, p := range a.pods {
		if p.VMIName() != v.Name || p.Terminating() || p.NodeName == "" || f.nodes[p.NodeName].Ready != types.ConditionTrue {
			continue
		}
		if failed := failure(p); failed != "" {
			return fmt.Sprintf("Its launcher on %s has failed: %s.", p.NodeName, failed), stuckFor
		}
		if p.Phase == types.PodRunning {
			return fmt.Sprintf("Its launcher runs on %s, but its virtual machine stays %s.", p.NodeName, phaseName(v.Phase)), stuckFor
		}
		return fmt.Sprintf("Its launcher does not start on %s.", p.NodeName), slowFor
	}
	return "", 0
}

// outdated says of an instance that does not run on a Ready node that its set
// asks for another node by now, "" where it does not: KubeVirt gives an instance
// its affinity when it makes it. A node that does not report is failover's; one
// that reports that it is not ready can still stop what runs there.
func (f facts) outdated(a app, v types.VMI) (why string, after time.Duration) {
	is, was := a.set.Affinity, v.Affinity
	same := is.Node == was.Node && is.Required == was.Required
	ended := !v.Deleted.IsZero() || v.Phase == types.VMISucceeded || v.Phase == types.VMIFailed
	if same || ended || is.Node == "" || !is.Required && !was.Required {
		return "", 0
	}
	after = outdatedFor
	for _, node := range a.nodesOf(v) {
		switch f.nodes[node].Ready {
		case types.ConditionTrue:
			if v.Phase == types.VMIRunning {
				return "", 0
			}
		case types.ConditionFalse:
			after = stuckFor
		default:
			return "", 0
		}
	}
	return fmt.Sprintf("Its instance was created to run on %s and is not running; it should now run on %s.", cmp.Or(was.Node, "any node"), is.Node), after
}

// nodesOf are the nodes that an instance or a launcher of it is on.
func (a app) nodesOf(v types.VMI) []string {
	var nodes []string
	if v.NodeName != "" {
		nodes = append(nodes, v.NodeName)
	}
	for _, p := range a.pods {
		if p.VMIName() == v.Name && p.NodeName != "" && !finished(p) {
			nodes = append(nodes, p.NodeName)
		}
	}
	return nodes
}

// waitsAfterFailure tells a container that waits after a failure from one that
// has not started yet, by the kubelet's reason.
func waitsAfterFailure(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName",
		"CreateContainerError", "CreateContainerConfigError", "RunContainerError":
		return true
	}
	return false
}

// failure says what of a pod has failed, "" for nothing.
func failure(p types.Pod) string {
	for _, c := range p.Containers {
		switch {
		case waitsAfterFailure(c.Waiting):
			return fmt.Sprintf("container %s: %s", c.Name, c.Waiting)
		case c.Waiting == "" && !c.Now.Finished.IsZero() && c.Now.ExitCode != 0:
			return fmt.Sprintf("container %s: exit code %d", c.Name, c.Now.ExitCode)
		}
	}
	if p.Phase == types.PodFailed {
		return "the pod is Failed"
	}
	return ""
}
