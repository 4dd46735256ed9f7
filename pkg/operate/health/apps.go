package health

import (
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// noNode is how a repair begins to say that the scheduler finds no node.
const noNode = "The scheduler finds no node"

// down reports that an application should run, and runs nowhere. While the
// cluster is not fully known, that is unknown.
func down(a overview.App) bool {
	return a.Activate && (a.State == types.AppKubeNotRunning.String() || a.State == types.AppKubeNotInCluster.String())
}

// repairing reports that the repair of an application is in that phase.
func repairing(a overview.App, in types.RepairPhase) bool {
	return a.Repair != nil && a.Repair.Phase == in
}

// reason is the sentence that its repair has for it.
func reason(a overview.App) string {
	if a.Repair == nil {
		return ""
	}
	return a.Repair.Reason
}

// unplaced reports that the scheduler finds no node, and since when.
func unplaced(a overview.App) (time.Time, bool) {
	for _, p := range a.Pods {
		if p.Status == types.KubePodPending && p.Reason == "Unschedulable" {
			return p.CreationTimestamp.Time(), true
		}
	}
	if down(a) && strings.HasPrefix(reason(a), noNode) {
		return a.Repair.Since, true
	}
	return time.Time{}, false
}

func findAppRepairRefused(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if repairing(a, types.RepairRefused) {
			tell(bad("Bring back the node named there; zedkube apps "+a.UUID+" shows what was seen.",
				"Application %s does not run, and must not fail over by itself%s", a.Name, because(a.Repair.Reason)).Of(a.Name, a.Repair.Since))
		}
	}
}

func findAppRepairGaveUp(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if repairing(a, types.RepairGaveUp) {
			tell(bad("zedkube apps "+a.UUID+" shows what was seen and done; then the launcher pod's Events.",
				"Application %s does not start, and repairs have failed%s", a.Name, because(a.Repair.Reason)).Of(a.Name, a.Repair.Since))
		}
	}
}

func findAppNotPlaceable(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if at, ok := unplaced(a); ok && a.Activate && o.older(at, startPatience) {
			tell(bad("Make room, or bring back the node that it is tied to: kubectl -n eve-kube-app describe pod.",
				"No node takes application %s%s", a.Name, because(reason(a))).Of(a.Name, at))
		}
	}
}

func findAppDown(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		_, explained := unplaced(a)
		explained = explained || repairing(a, types.RepairRefused) || repairing(a, types.RepairGaveUp)
		if down(a) && o.older(a.Since, startPatience) && !explained {
			tell(bad("zedkube apps "+a.UUID+" shows what is known of it.", "Application %s does not run%s", a.Name, because(reason(a))).Of(a.Name, a.Since))
		}
	}
}

func findAppWaits(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if repairing(a, types.RepairWaits) && !down(a) && o.older(a.Repair.Since, repairPatience) {
			tell(warn("Nothing yet: the message says what it waits for.", "Application %s waits%s", a.Name, because(a.Repair.Reason)).Of(a.Name, a.Repair.Since))
		}
	}
}

func findAppRestarts(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		for _, p := range a.Pods {
			if p.Reason == "CrashLoopBackOff" {
				tell(bad("zedkube logs "+a.UUID+" --previous", "Application %s crashes repeatedly: %d restarts.", a.Name, p.RestartCount).Of(a.Name, p.RestartTimestamp.Time()))
				break
			}
		}
	}
}
