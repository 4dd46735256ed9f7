// Package outlook says what is in the way of a drain: which pods and volumes, why,
// for how long by what is known, and what to do about it. It is pure: it reads
// nothing and decides nothing.
package outlook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	// MaxReturns is how often the pods of one creator come back before they are
	// left on the node (docs/decisions/0023-pods-that-come-back.md).
	MaxReturns = 10
	// NeverAfter is how long something has to stand before it is said never to end
	// by itself: that has to be said within a minute.
	NeverAfter = 55 * time.Second
	// kubeletLate is how much longer than its grace period a pod's end may take
	// where the kubelet does not answer.
	kubeletLate = 30 * time.Second
)

// Some names the first few, and counts the others.
func Some(names []string) string { return phrase.Few(names, 5) }

// StuckPod is a pod that stays longer than it should.
type StuckPod struct {
	Situation        types.PodSituation // Pod as it is now
	Since            time.Time          // when it came in the way
	RefusedBy        string             // the error of its last eviction; "" for none
	TerminatingSince time.Time          // stands in for a deletionTimestamp that is not known
	KubeletReady     bool
	Returns          int  // how often its creator has made it again in this drain
	Shared           bool // counted with those of other creators in its namespace
}

// finding is what there is to say of an obstacle: of a pod without a cause, nothing.
type finding struct {
	cause, why, remedy string
	never              bool
}

func (f finding) outlook() types.DrainOutlook {
	if f.never {
		return types.OutlookNever
	}
	return types.OutlookSlow
}

// Blockers says what keeps pods here, the longest-standing first. A pod that
// just waits for its turn is left out.
func Blockers(now time.Time, all []StuckPod) []types.DrainBlocker {
	var blockers []types.DrainBlocker
	for _, o := range all {
		f := o.unharmed(o.waiting(now))
		if o.terminating() {
			f = o.ending(now)
		}
		if f.cause == "" {
			continue
		}
		b := types.DrainBlocker{
			Pod: o.Situation.Pod.Key(), Node: o.Situation.Pod.NodeName, Since: o.Since,
			Cause: f.cause, Why: f.why, Outlook: f.outlook(), Remedy: f.remedy,
		}
		blockers = append(blockers, b)
	}
	slices.SortStableFunc(blockers, func(a, b types.DrainBlocker) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Pod, b.Pod))
	})
	return blockers
}

// Stranded names the pods that can run only here.
func Stranded(situations []types.PodSituation) []string {
	var pods []string
	for _, s := range situations {
		if s.Fits == 0 && s.Lacks != "" {
			pods = append(pods, s.Pod.Key())
		}
	}
	slices.Sort(pods)
	return pods
}

func (o StuckPod) terminating() bool {
	return o.Situation.Pod.Terminating() || !o.TerminatingSince.IsZero()
}

// ending explains a pod that is being deleted. A deletionTimestamp is not when
// that began but when its grace period ends.
func (o StuckPod) ending(now time.Time) finding {
	s := o.Situation
	deadline := s.Pod.Deleted
	if deadline.IsZero() {
		deadline = o.TerminatingSince.Add(s.Grace)
	}
	lasted, late := now.Sub(deadline.Add(-s.Grace)), now.Sub(deadline)
	clock := fmt.Sprintf("its grace period of %s ended %s ago", s.Grace, late.Round(time.Second))
	if late < 0 {
		clock = fmt.Sprintf("its grace period of %s ends in %s", s.Grace, -late.Round(time.Second))
	}
	force := fmt.Sprintf("kubectl -n %s delete pod %s --force --grace-period=0", s.Pod.Namespace, s.Pod.Name)
	switch {
	case !o.KubeletReady:
		return finding{
			cause:  "kubelet",
			why:    fmt.Sprintf("it is terminating, but the kubelet of %s does not answer; %s", cmp.Or(s.Pod.NodeName, "its node"), clock) + held(s),
			never:  late >= kubeletLate || lasted >= NeverAfter,
			remedy: "restore Kubernetes on the node; or, if the pod is known not to be running, " + force,
		}
	case len(s.Finalizers) > 0:
		return finding{
			cause:  "finalizer",
			why:    "it is terminating" + held(s) + "; " + clock,
			never:  late >= 0 && lasted >= NeverAfter,
			remedy: "fix the controller that owns the finalizer; last resort: " + strip(s.Pod),
		}
	case late >= 0:
		return finding{
			cause:  "kubelet",
			why:    "it is terminating, but the kubelet has not stopped it; " + clock,
			never:  late >= NeverAfter,
			remedy: "look in the kubelet's log for the process or volume that does not stop; or, if the pod is known not to be running, " + force,
		}
	case o.Returns > 0:
		return o.comesBack()
	case o.madeAgain():
		return o.pinned()
	}
	return finding{cause: "grace", why: "it is terminating; " + clock}
}

func held(s types.PodSituation) string {
	switch len(s.Finalizers) {
	case 0:
		return ""
	case 1:
		return ", held by finalizer " + s.Finalizers[0]
	}
	return ", held by finalizers " + strings.Join(s.Finalizers, ", ")
}

func strip(p types.Pod) string {
	return fmt.Sprintf(`kubectl -n %s patch pod %s --type=merge -p '{"metadata":{"finalizers":null}}'`, p.Namespace, p.Name)
}

// waiting explains a pod that has not been evicted.
func (o StuckPod) waiting(now time.Time) finding {
	s := o.Situation
	switch {
	case o.RefusedBy != "":
		return o.refused(now)
	case o.Returns > 0:
		return o.comesBack()
	case o.madeAgain():
		return o.pinned()
	case s.Pinned:
		return finding{
			cause: "pinned", why: fmt.Sprintf("its spec.nodeName is %s, so no scheduler moves it; it is evicted, and not created again", s.Pod.NodeName),
			remedy: "create it again elsewhere, or here once the node is back",
		}
	case s.Immovable != "":
		return finding{
			cause: "immovable", why: "its virtual machine cannot migrate, so it is shut down (" + s.Immovable + ")",
			remedy: "shut the virtual machine down cleanly first, if that matters",
		}
	case len(s.Finalizers) > 0:
		return finding{
			cause: "finalizer", why: "it will remain after it has terminated" + held(s),
			remedy: "check that the controller that owns the finalizer is running",
		}
	}
	return finding{} // it waits for its turn
}

// madeAgain reports that the pod comes back to this node whenever it goes: a
// cordon keeps the scheduler away, which has no part in it.
func (o StuckPod) madeAgain() bool {
	return o.Situation.Pinned && o.Situation.Pod.Owner.UID != ""
}

func (o StuckPod) pinned() finding {
	p := o.Situation.Pod
	owner := p.Owner.Kind + " " + p.Owner.Name
	named := owner
	if !inRemedy(p.Owner) {
		named = "its owner"
	}
	return finding{
		cause: "pinned",
		why: fmt.Sprintf("its spec.nodeName is %s, so no scheduler moves it: %s creates it here again each time it is evicted; after %d returns it is left to go down with the device",
			p.NodeName, owner, MaxReturns),
		remedy: "take spec.nodeName out of the template of " + named + ", or scale it to 0",
	}
}

// comesBack explains a pod whose creator has made it again here.
func (o StuckPod) comesBack() finding {
	s := o.Situation
	name, how, what := OwnerName(s.Pod), "", ""
	who := name + " has created it"
	if o.Shared && s.Pod.Owner.Name != "" {
		who = "the creator of " + name + " has created pods like it"
	}
	switch {
	case s.Pinned:
		how, what = ": its spec.nodeName is "+s.Pod.NodeName, "take spec.nodeName out of the template of "+name+", or "
	case s.Tolerates:
		how, what = ": it tolerates the taint node.kubernetes.io/unschedulable", "take that toleration out of the template of "+name+", or "
	}
	ends := fmt.Sprintf("it is evicted less and less often, and after %d returns it is left to go down with the device", MaxReturns)
	if o.Returns >= MaxReturns {
		ends = "it is no longer evicted, and goes down with the device"
	}
	remedy := what + "scale " + name + " to 0"
	switch {
	case o.Shared && inRemedy(s.Pod.Owner):
		remedy = fmt.Sprintf("see what creates it, kubectl -n %s get %s %s -o yaml, and scale that to 0 or suspend it", s.Pod.Namespace, strings.ToLower(s.Pod.Owner.Kind), s.Pod.Owner.Name)
	case s.Pod.AppDomain != "":
		remedy = what + "stop the application at the controller"
	case !inRemedy(s.Pod.Owner):
		remedy = fmt.Sprintf("see what creates it, kubectl -n %s get pod %s -o yaml --show-managed-fields, and stop that", s.Pod.Namespace, s.Pod.Name)
	}
	return finding{
		cause: "returns", remedy: remedy,
		why: fmt.Sprintf("%s again on this cordoned node %s%s; %s", who, times(o.Returns), how, ends),
	}
}

// inRemedy reports that an owner's kind and name may be in a remedy, out of which people paste
// commands: the API server takes any text for them.
func inRemedy(o types.Owner) bool {
	return types.IsObjectName(strings.ToLower(o.Kind)) && types.IsObjectName(o.Name)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// OwnerName is who makes the pod, for people.
func OwnerName(p types.Pod) string {
	switch {
	case p.AppDomain != "":
		return "application " + p.AppDomain
	case p.Owner.Name == "":
		return "a program that the pod does not name as its owner"
	}
	return p.Owner.Kind + " " + p.Owner.Name
}
