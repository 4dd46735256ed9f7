package outlook

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// refused explains why the API server does not let the pod be evicted.
func (o StuckPod) refused(now time.Time) finding {
	s := o.Situation
	if len(s.Budgets) > 1 {
		var names []string
		for _, b := range s.Budgets {
			names = append(names, b.Name)
		}
		return finding{
			cause:  "refused",
			why:    fmt.Sprintf("%d PodDisruptionBudgets cover it, and Kubernetes evicts no such pod: %s", len(names), strings.Join(names, ", ")),
			never:  true,
			remedy: "delete all but one of them, or narrow their selectors",
		}
	}
	late := now.Sub(o.Since) >= NeverAfter
	if !strings.Contains(o.RefusedBy, types.ErrDisruptionBudget.Error()) {
		return finding{
			cause: "refused", why: "its eviction fails: " + o.RefusedBy, never: late,
			remedy: "fix the problem reported by the API server",
		}
	}
	return o.disrupts(late)
}

// disrupts explains the refusal by a budget, or by KubeVirt's in its name, late
// if it has stood for a while.
func (o StuckPod) disrupts(late bool) finding {
	s := o.Situation
	switch {
	case o.kept():
		return finding{
			cause: "immovable", why: "its virtual machine may not be shut down and cannot migrate (" + s.Immovable + ")", never: true,
			remedy: "fix the problem reported by KubeVirt, shut the virtual machine down, or make its evictionStrategy LiveMigrateIfPossible",
		}
	case o.migrates() && s.Fits == 0 && s.Lacks != "":
		return finding{
			cause: "no-room", why: "its virtual machine is to migrate, but has nowhere to go: " + s.Lacks, never: true,
			remedy: "free resources on another node, or shut the virtual machine down",
		}
	case o.migrates():
		return finding{
			cause: "budget", why: "it is kept until its virtual machine has migrated" + itsBudget(s),
			remedy: "if it stays, see why it does not migrate: kubectl -n " + s.Pod.Namespace + " get vmim",
		}
	case len(s.Budgets) == 0:
		return finding{
			cause: "budget", why: "its eviction is refused, but by no known budget: " + o.RefusedBy, never: late,
			remedy: "look for what refuses it: a PodDisruptionBudget (kubectl -n " + s.Pod.Namespace + " get pdb) or a webhook",
		}
	}
	return o.underBudget(s.Budgets[0], late)
}

// kept reports a virtual machine that KubeVirt neither moves nor lets end. By
// which strategy is not always known: the cluster's own holds for a machine
// without one.
func (o StuckPod) kept() bool {
	s := o.Situation
	if s.Immovable == "" {
		return false
	}
	return s.Strategy == "LiveMigrate" || s.Strategy == "External" || s.Strategy == "" && len(s.Budgets) == 0
}

// migrates reports that the refusal of the eviction means that KubeVirt moves
// the virtual machine instead.
func (o StuckPod) migrates() bool {
	s := o.Situation
	if s.Pod.VMI == "" || s.Immovable != "" {
		return false
	}
	return s.Strategy == "LiveMigrate" || s.Strategy == "LiveMigrateIfPossible" || s.Strategy == "" && len(s.Budgets) == 0
}

// itsBudget is the numbers of the budget that covers the pod, if one does.
func itsBudget(s types.PodSituation) string {
	if len(s.Budgets) == 0 {
		return ""
	}
	return "; " + numbers(s.Budgets[0])
}

func numbers(b types.PodBudget) string {
	is := "are"
	if b.Healthy == 1 {
		is = "is"
	}
	return fmt.Sprintf("PodDisruptionBudget %s allows %s: of %s %d %s healthy and %d must remain",
		b.Name, disruptions(b.Allowed), phrase.Counted(b.Expects, "pod"), b.Healthy, is, b.Desired)
}

func disruptions(n int) string {
	if n == 0 {
		return "no disruption"
	}
	return phrase.Counted(n, "disruption")
}

// underBudget explains the refusal by the one budget that covers the pod, late
// if it has stood for a while.
func (o StuckPod) underBudget(b types.PodBudget, late bool) finding {
	s := o.Situation
	f := finding{cause: "budget", why: numbers(b)}
	switch {
	case b.Trouble != "":
		f.why = fmt.Sprintf("PodDisruptionBudget %s cannot be evaluated, so it allows nothing: %s", b.Name, b.Trouble)
		f.never, f.remedy = true, "fix or delete the budget"
	case b.Allowed > 0: // others were faster, or it has just opened
		f.why += "; its eviction is tried again"
	case b.Expects == 0: // not counted yet, or a pod that no controller made
		f.never, f.remedy = late || b.Healthy > 0, "delete the budget, or give it a number instead of a percentage: it expects no pod and yet keeps this one"
	case b.Expects <= b.Desired:
		f.never, f.remedy = true, "lower what the budget requires, or run more pods than it requires: "+editBudget(b.Name)
	case b.Healthy <= b.Desired && s.Fits == 0 && s.Lacks != "":
		f.cause = "no-room"
		f.why += ", and others have nowhere to start: " + s.Lacks
		f.never, f.remedy = true, "free resources on another node, or lower what the budget requires"
	case b.Healthy <= b.Desired:
		f.why += "; it allows evictions when more of them are healthy"
		f.remedy = "if it stays, see why the others are not healthy: kubectl -n " + s.Pod.Namespace + " get pods"
	}
	return f
}

// unharmed is f with a remedy that does no harm where the pod serves Longhorn's
// volumes: an instance manager's budget guards the last healthy replica of one,
// and without pod or budget the data would be out of reach, or lost.
func (o StuckPod) unharmed(f finding) finding {
	guards := f.cause == "budget" || f.cause == "no-room" || f.cause == "pinned" || f.cause == "returns" || len(o.Situation.Budgets) > 1
	if o.Situation.Pod.Namespace == types.NamespaceLonghorn && guards && f.remedy != "" {
		f.remedy = "Longhorn releases it once no volume needs it here: repair the volume's replica, or have one made on another node; change neither the budget nor the pod"
	}
	return f
}

// editBudget is the command that opens a budget, which is called namespace/name.
func editBudget(name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	return "kubectl -n " + namespace + " edit pdb " + name
}
