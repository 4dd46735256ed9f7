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
	// apart is between two restarts of k3s, and how long no pod may wait before an
	// episode is over: a pod that is made again does not begin a new one.
	apart = 15 * time.Minute
	// backAfter is when a kubelet that renews its Lease is not the former one any more. It is
	// longer than span.LongestGap: what a pod has waited for begins again.
	backAfter  = 2 * time.Minute
	lastResort = time.Hour        // of waiting before the cluster's API server is restarted for it
	announced  = 10 * time.Minute // for which that is published before
	again      = 10 * time.Second // while pods wait, or the drain lock is kept
	mostPods   = 20               // that are named
)

type facts struct {
	now       time.Time     // for people
	uptime    time.Duration // for everything that lasts
	boot      string
	known     bool // the tables tell the whole present truth, self too
	complete  bool // so do those of volumes
	busy      bool // a call is under way
	damaged   bool // there is a file of what was published, which cannot be read
	self      string
	nodes     []types.Node            // by name
	pods      []types.Pod             // of this node that wait for their volumes, by name
	volumes   map[string]types.Volume // attached to this node, by claim
	attached  map[string]bool         // volumes with a VolumeAttachment here
	devices   map[string]bool         // volumes with a device here
	process   k3sprocess.Process      // zero where only its supervisor knows it
	noRestart string                  // why k3s cannot be restarted, "" where it can
	gate      string                  // what a restart must not meet, "" for nothing
	lock      types.Lease             // the drain lock
	looked    string                  // its version that is not for a restart of k3s
	tried     time.Duration           // uptime when the drain lock was last to be released
	pause     time.Duration           // uptime before which no restart is tried
	failed    string                  // why the last try failed
	published types.MountRecovery
	spans     map[string]span.Span
}

type action struct {
	status  types.MountRecovery
	spans   map[string]span.Span
	restart *task
	release bool // the drain lock, if it is held for a restart that is over
	again   time.Duration
}

// task is one restart of k3s.
type task struct {
	self    types.Node
	process k3sprocess.Process
	status  types.MountRecovery
	volumes []string // that have to be attached and healthy
	alone   bool     // also where etcd has no quorum meanwhile
}

func decide(f facts) action {
	a := f.next()
	if s := &a.status; s.Phase != f.published.Phase || s.Reason != f.published.Reason {
		s.Since = f.now
	}
	if a.restart != nil {
		a.restart.status = a.status
	}
	return a
}

func (f facts) next() action {
	a := action{status: f.remembered(), spans: f.spans}
	if len(f.pods) > 0 || f.lock.Holder == f.self {
		a.again = again
	}
	s := &a.status
	switch {
	case f.busy:
		return a
	case !f.known:
		a.spans = nil // what has lasted begins again
		return a
	case f.lock.Holder == f.self && f.lock.Version != f.looked:
		a.release = f.uptime >= max(s.Last+backAfter, f.tried+again)
		s.Phase, s.Reason = types.RepairActs, "The drain lock is kept until the kubelet of this node is back after a restart of k3s."
		if f.uptime < f.pause {
			s.Reason += " The last attempt failed: " + f.failed + "."
		}
		return a
	}
	a.spans = map[string]span.Span{}
	waiting := slices.DeleteFunc(slices.Clone(f.pods), func(p types.Pod) bool { return !f.lasts(a, "pending/"+p.UID, pendingFor) })
	if s.Watch = len(waiting) > 0; s.Watch && !f.complete {
		return a
	}
	t := task{process: f.process}
	s.Pods, s.Phase, s.Reason = nil, types.RepairWell, ""
	degraded, mountable := "", 0
	for _, p := range waiting {
		volumes, bad, ok := f.mountable(p)
		degraded = cmp.Or(degraded, bad)
		if !ok {
			continue
		}
		mountable++
		if key := "unmounted/" + p.UID; f.lasts(a, key, unmountedFor) {
			s.Pods, t.volumes = append(s.Pods, p.Key()), append(t.volumes, volumes...)
			if began := max(a.spans[key].Began, 1); s.Began == 0 || began < s.Began {
				s.Began = began
			}
		}
	}
	switch {
	case mountable == 0 && f.lasts(a, "none", apart):
		s.Began, s.Attempts, s.Unknown = 0, 0, false
	case len(s.Pods) > 0:
		f.judge(&a, t, degraded)
		s.Reason = "The kubelet does not mount the volumes of pod " + phrase.Few(s.Pods, 3) + ", although they are attached and healthy. " + s.Reason
	case s.Attempts > 0:
		for _, p := range f.pods {
			s.Phase, s.Pods = types.RepairWaits, append(s.Pods, p.Key())
			s.Reason = fmt.Sprintf("k3s was restarted because volumes were not mounted, attempt %d of %d. Pod %s waits for its volumes.", s.Attempts, mostAttempts, phrase.Few(s.Pods, 3))
		}
	}
	s.Pods = s.Pods[:min(len(s.Pods), mostPods)]
	return a
}

// remembered is what was published, as it counts in this boot. What cannot be read counts
// as so many restarts as are made, the last of them now.
func (f facts) remembered() types.MountRecovery {
	s := f.published
	switch {
	case f.damaged, s.Attempts < 0, s.BootID == f.boot && max(s.Last, s.Began) > f.uptime:
		return types.MountRecovery{Unknown: true, BootID: f.boot, Last: f.uptime}
	case s.BootID != f.boot: // nothing is restarted for the first minutes of a boot, either
		s.BootID, s.Last, s.Began = f.boot, 0, 0
	}
	return s
}

// judge says what is done for pods whose volumes are not mounted.
func (f facts) judge(a *action, t task, degraded string) {
	s := &a.status
	lack, alone := quorum(f.nodes, f.self)
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
	case f.lock.Holder != "":
		s.Reason = "k3s is restarted after node " + f.lock.Holder + " has released the drain lock."
	case lack != "":
		s.Reason = "k3s is not restarted: without this node " + lack + "."
	case f.uptime < s.Last+apart:
		s.Reason = fmt.Sprintf("k3s is restarted no sooner than %s after the last restart or the boot.", apart)
	case alone && f.uptime < s.Began+lastResort:
		s.Reason = fmt.Sprintf("k3s is restarted after %s of that, because the cluster has no API server meanwhile.", lastResort)
	case alone && !f.lasts(*a, fmt.Sprint("announced", s.Pods), announced):
		s.Reason = fmt.Sprintf("k3s is restarted %s after this was first reported. The cluster has no API server meanwhile.", announced)
	case f.uptime < f.pause:
		s.Reason = "The last attempt failed: " + f.failed + "."
	default:
		s.Phase, s.Reason = types.RepairActs, fmt.Sprintf("k3s is restarted, attempt %d of %d.", s.Attempts+1, mostAttempts)
		t.self, t.alone = f.nodes[slices.IndexFunc(f.nodes, f.isSelf)], alone
		a.restart = &t
	}
}

func (f facts) isSelf(n types.Node) bool { return n.Name == f.self }

// lasts notes that something is so, and reports whether it has been for that long.
func (f facts) lasts(a action, key string, long time.Duration) bool {
	s := f.spans[key]
	s.Note(f.uptime, true)
	a.spans[key] = s
	return s.Reached(f.uptime, long)
}

// waitsForVolumes reports that nothing is known of a pod but that its kubelet has begun with
// it. An address, or a container that has run, shows that its volumes are mounted.
func waitsForVolumes(p types.Pod) bool {
	return p.Phase == types.PodPending && !p.Terminating() && len(p.Claims) > 0 && p.IP == "" &&
		!slices.ContainsFunc(p.Containers, func(c types.Container) bool {
			return c.Now != (types.ContainerRun{}) || c.Waiting != "" && c.Waiting != "ContainerCreating" && c.Waiting != "PodInitializing"
		})
}

// mountable says which volumes a pod has, and whether the kubelet could mount all of them;
// bad is one that is attached and not healthy.
func (f facts) mountable(p types.Pod) (names []string, bad string, ok bool) {
	ok = true
	for _, claim := range p.Claims {
		v, here := f.volumes[p.Namespace+"/"+claim]
		if here && v.Robustness != "healthy" {
			bad = v.Name
		}
		ok = ok && here && isHealthy(v) && f.attached[v.Name] && f.devices[v.Name]
		names = append(names, v.Name)
	}
	return names, bad, ok
}

func isHealthy(v types.Volume) bool { return v.State == "attached" && v.Robustness == "healthy" }

// quorum says what etcd lacks while this node's k3s restarts. alone is where it then has no
// quorum in any case: a single server, or one of two.
func quorum(nodes []types.Node, own string) (lack string, alone bool) {
	q := types.QuorumOf(types.Without(nodes, own))
	return types.LacksQuorum(nodes, own), q.Voters == 0 || !q.Has()
}

// drainsUnlocked says which other server may be on its way down without the drain lock, ""
// for none.
func drainsUnlocked(nodes []types.Node, own string) string {
	for _, n := range nodes {
		if n.Name != own && !n.TieBreaker && n.Unschedulable && n.MaybeForeign() && (n.ControlPlane || n.Master || n.Etcd) {
			return "node " + n.Name + " is cordoned and may be draining, because its agent does not use the drain lock"
		}
	}
	return ""
}

// refuses says why k3s is not to be restarted after all, by fresh lists; "" for nothing.
func (t task) refuses(nodes []types.Node, s types.Storage) error {
	if lack, alone := quorum(nodes, t.self.Name); lack != "" || alone && !t.alone {
		return errors.New("without this node etcd has no quorum")
	}
	for _, name := range t.volumes {
		is := func(v types.Volume) bool { return v.Name == name && isHealthy(v) }
		if !slices.ContainsFunc(s.Volumes, is) || !slices.ContainsFunc(s.Attachments, func(a types.Attachment) bool { return a.Volume == name }) {
			return fmt.Errorf("volume %s is no longer attached and healthy", name)
		}
	}
	return nil
}
