package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// inVain is how long something has to stand before it is said never to end
	// by itself: that has to be said within a minute.
	inVain = 55 * time.Second
	// kubeletLate is how much longer than its grace period a pod's end may take
	// where the kubelet does not answer.
	kubeletLate = 30 * time.Second
)

// obstacle is a pod that stays longer than it should.
type obstacle struct {
	situation        types.PodSituation // Pod as it is now
	since            time.Time          // when it came in the way
	refusedBy        string             // the error of its last eviction; "" for none
	terminatingSince time.Time          // stands in for a deletionTimestamp that is not known
	kubeletReady     bool
	returns          int  // how often its maker has made it again in this drain
	shared           bool // counted with those of other makers in its namespace
}

// finding is what there is to say of an obstacle; without a cause, nothing.
type finding struct {
	cause, why, remedy string
	never              bool
}

// explain says what keeps pods here, the longest-standing first. A pod that
// just waits for its turn is left out.
func explain(now time.Time, all []obstacle) []types.DrainBlocker {
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
			Pod: o.situation.Pod.Key(), Node: o.situation.Pod.NodeName, Since: o.since,
			Cause: f.cause, Why: f.why, Outlook: types.OutlookSlow, Remedy: f.remedy,
		}
		if f.never {
			b.Outlook = types.OutlookNever
		}
		blockers = append(blockers, b)
	}
	slices.SortStableFunc(blockers, func(a, b types.DrainBlocker) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Pod, b.Pod))
	})
	return blockers
}

// stranded names the pods that can run only here.
func stranded(situations []types.PodSituation) []string {
	var pods []string
	for _, s := range situations {
		if s.Fits == 0 && s.Lacks != "" {
			pods = append(pods, s.Pod.Key())
		}
	}
	slices.Sort(pods)
	return pods
}

func (o obstacle) terminating() bool {
	return o.situation.Pod.Terminating() || !o.terminatingSince.IsZero()
}

// ending explains a pod that is being deleted. A deletionTimestamp is not when
// that began but when its grace period ends.
func (o obstacle) ending(now time.Time) finding {
	s := o.situation
	deadline := s.Pod.Deleted
	if deadline.IsZero() {
		deadline = o.terminatingSince.Add(s.Grace)
	}
	lasted, late := now.Sub(deadline.Add(-s.Grace)), now.Sub(deadline)
	clock := fmt.Sprintf("its grace period of %s ended %s ago", s.Grace, late.Round(time.Second))
	if late < 0 {
		clock = fmt.Sprintf("its grace period of %s ends in %s", s.Grace, -late.Round(time.Second))
	}
	force := fmt.Sprintf("kubectl -n %s delete pod %s --force --grace-period=0", s.Pod.Namespace, s.Pod.Name)
	switch {
	case !o.kubeletReady:
		return finding{
			cause:  "kubelet",
			why:    fmt.Sprintf("it is terminating, but the kubelet of %s does not answer; %s", cmp.Or(s.Pod.NodeName, "its node"), clock) + held(s),
			never:  late >= kubeletLate || lasted >= inVain,
			remedy: "bring Kubernetes on the node back; or, where the pod is known not to run, " + force,
		}
	case len(s.Finalizers) > 0:
		return finding{
			cause:  "finalizer",
			why:    "it is terminating" + held(s) + "; " + clock,
			never:  late >= 0 && lasted >= inVain,
			remedy: "mend whoever is to take the finalizer away; last resort: " + strip(s.Pod),
		}
	case late >= 0:
		return finding{
			cause:  "kubelet",
			why:    "it is terminating, but the kubelet has not ended it; " + clock,
			never:  late >= inVain,
			remedy: "look in the kubelet's log for what does not end, a process or a volume; or, where the pod is known not to run, " + force,
		}
	case o.returns > 0:
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
func (o obstacle) waiting(now time.Time) finding {
	s := o.situation
	switch {
	case o.refusedBy != "":
		return o.refused(now)
	case o.returns > 0:
		return o.comesBack()
	case o.madeAgain():
		return o.pinned()
	case s.Pinned:
		return finding{
			cause: "pinned", why: fmt.Sprintf("its spec.nodeName is %s, so no scheduler moves it; it goes, and is not made again", s.Pod.NodeName),
			remedy: "make it again elsewhere, or here once the node is back",
		}
	case s.Immovable != "":
		return finding{
			cause: "immovable", why: "its virtual machine cannot migrate, so it is shut down (" + s.Immovable + ")",
			remedy: "shut the virtual machine down in an orderly way first, if that matters",
		}
	case len(s.Finalizers) > 0:
		return finding{
			cause: "finalizer", why: "it will stay, once ended" + held(s),
			remedy: "see to it that whoever set the finalizer is there to take it away",
		}
	}
	return finding{} // it waits for its turn
}

// madeAgain reports that the pod comes back to this node whenever it goes: a
// cordon keeps the scheduler away, which has no part in it.
func (o obstacle) madeAgain() bool {
	return o.situation.Pinned && o.situation.Pod.Owner.UID != ""
}

func (o obstacle) pinned() finding {
	p := o.situation.Pod
	owner := p.Owner.Kind + " " + p.Owner.Name
	return finding{
		cause: "pinned",
		why: fmt.Sprintf("its spec.nodeName is %s, so no scheduler moves it: %s makes it again here as often as it is evicted; after %d returns it is left to go down with the device",
			p.NodeName, owner, maxReturns),
		remedy: "take spec.nodeName out of the template of " + owner + ", or scale it to 0",
	}
}
