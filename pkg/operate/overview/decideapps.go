package overview

import (
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

func appRules() []rule {
	return []rule{
		{"AppRepairRefused", anchorApps, findAppRepairRefused},
		{"AppRepairGaveUp", anchorApps, findAppRepairGaveUp},
		{"AppNotPlaceable", anchorApps, findAppNotPlaceable},
		{"AppDown", anchorApps, findAppDown},
		{"AppWaits", anchorApps, findAppWaits},
		{"AppRestarts", anchorApps, findAppRestarts},
	}
}

// down reports that an application should run, and runs nowhere. While the
// cluster is out of view nobody knows.
func (a App) down() bool {
	return a.Activate && (a.State == types.AppKubeNotRunning.String() || a.State == types.AppKubeNotInCluster.String())
}

// told reports that another rule says why it does not run.
func (a App) told() bool {
	_, unplaced := a.unplaced()
	return unplaced || a.Repair != nil && (a.Repair.Phase == types.RepairRefused || a.Repair.Phase == types.RepairGaveUp)
}

func (a App) waits() bool { return a.Repair != nil && a.Repair.Phase == types.RepairWaits }

// reason is the sentence that its repair has for it.
func (a App) reason() string {
	if a.Repair == nil {
		return ""
	}
	return a.Repair.Reason
}

// unplaced reports that the scheduler finds no node, and since when.
func (a App) unplaced() (time.Time, bool) {
	for _, p := range a.Pods {
		if p.Status == types.KubePodPending && p.Reason == "Unschedulable" {
			return p.CreationTimestamp.Time(), true
		}
	}
	if a.down() && a.Repair != nil && strings.HasPrefix(a.Repair.Reason, noNode) {
		return a.Repair.Since, true
	}
	return time.Time{}, false
}

func findAppRepairRefused(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		if a.Repair != nil && a.Repair.Phase == types.RepairRefused {
			tell(Problem{
				Severity: Bad, About: a.Name, Since: a.Repair.Since, What: sentence("Application "+a.Name+" does not run, and must not be repaired by itself", a.Repair.Reason),
				Remedy: "Bring back the node that it names; zedkube apps " + a.UUID + " shows what was seen.",
			})
		}
	}
}

func findAppRepairGaveUp(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		if a.Repair != nil && a.Repair.Phase == types.RepairGaveUp {
			tell(Problem{
				Severity: Bad, About: a.Name, Since: a.Repair.Since, What: sentence("Application "+a.Name+" does not start, and repairs did not help", a.Repair.Reason),
				Remedy: "zedkube apps " + a.UUID + " shows what was seen and done; then the launcher pod's Events.",
			})
		}
	}
}

func findAppNotPlaceable(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		if at, ok := a.unplaced(); ok && a.Activate && o.older(at, startPatience) {
			tell(Problem{
				Severity: Bad, About: a.Name, Since: at, What: sentence("No node takes application "+a.Name, a.reason()),
				Remedy: "Make room, or bring back the node that it is tied to: kubectl -n eve-kube-app describe pod.",
			})
		}
	}
}

func findAppDown(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		if a.down() && o.older(a.Since, startPatience) && !a.told() {
			tell(Problem{
				Severity: Bad, About: a.Name, Since: a.Since, What: sentence("Application "+a.Name+" does not run", a.reason()),
				Remedy: "zedkube apps " + a.UUID + " shows what is known of it.",
			})
		}
	}
}

func findAppWaits(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		if a.waits() && !a.down() && o.older(a.Repair.Since, repairPatience) {
			tell(Problem{
				Severity: Warn, About: a.Name, Since: a.Repair.Since, What: sentence("Application "+a.Name+" waits", a.Repair.Reason),
				Remedy: "Nothing yet: what it waits for is in the sentence.",
			})
		}
	}
}

func findAppRestarts(o Overview, tell func(Problem)) {
	for _, a := range o.Apps.List {
		for _, p := range a.Pods {
			if p.Reason == "CrashLoopBackOff" {
				tell(Problem{
					Severity: Bad, About: a.Name, Since: p.RestartTimestamp.Time(), What: "Application " + a.Name + " ends again and again: " + count(int(p.RestartCount)) + " restarts.",
					Remedy: "zedkube logs " + a.UUID + " --previous",
				})
				break
			}
		}
	}
}
