package apps

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// afterBoot is how long after its boot a node still asks for what is its own.
	afterBoot = 30 * time.Minute
	// healthyFor is how long a node must have been ready before anything is moved.
	healthyFor = 2 * time.Minute
	// betweenFailbacks is how far apart they are in the whole cluster: volumes that
	// have moved want to settle.
	betweenFailbacks = 5 * time.Minute
	// eachFailback is how far apart they are for one application: one that does not
	// stay is not to be sent to and fro.
	eachFailback = time.Hour
)

// The words of the setting kubernetes.vmi.deschedule.events.
const (
	onBoot    = "boot"
	onHealthy = "healthy"
)

// failback moves an application that runs elsewhere to this node, its
// designated one, by evicting its pod: the scheduler prefers this node. One that
// is tied to this node was moved by configuration; that needs no setting.
func (f facts) failback(a app) (verdict, bool) {
	p, ok := a.representativePod(f.self.Name)
	if !ok || !a.cfg.IsDesignatedNodeID || p.NodeName == f.self.Name || !a.runs(f.nodes) || !f.wantsBack(a) {
		return verdict{}, false
	}
	v := verdict{
		phase: types.RepairWaits, act: types.ActFailback, again: time.Minute,
		reason: fmt.Sprintf("It runs on %s and will move to this node, its designated node.", p.NodeName),
	}
	why := cmp.Or(f.contested(a.key), f.notYet())
	if why == "" {
		f.wantLook(&v, true)
		if why = f.stale(); why == "" {
			why = unhealthy(a.claims, f.fresh.storage)
		}
	}
	if why != "" {
		v.reason += " " + why
		return v, true
	}
	note := f.noted(a, types.ActFailback, "")
	note.Failback = f.self.BootID
	v.target = &target{app: a, note: note, node: f.self.Name}
	v.target.pods = []types.Pod{p}
	return v, true
}

// wantsBack reports whether the configuration or the settings ask for it now.
// After a boot it is done once.
func (f facts) wantsBack(a app) bool {
	recent := a.set.Note.Act == types.ActFailback && f.now.Sub(a.set.Note.At).Abs() <= eachFailback
	if a.cfg.AffinityType == types.AffinityRequired {
		return !recent
	}
	for event := range strings.SplitSeq(f.events, ",") {
		switch strings.TrimSpace(event) {
		case onHealthy:
			if !recent {
				return true
			}
		case onBoot:
			if f.uptime < afterBoot && f.self.BootID != "" && a.set.Note.Failback != f.self.BootID {
				return true
			}
		}
	}
	return false
}

// notYet says why nothing may be moved to this node now, "" for nothing.
func (f facts) notYet() string {
	switch {
	case f.self.Ready != types.ConditionTrue || f.now.Sub(f.self.ReadySince) < healthyFor:
		return fmt.Sprintf("This node has not been ready for %s yet.", healthyFor)
	case f.self.Unschedulable || f.self.OutOfService:
		return "This node is not schedulable."
	}
	for _, n := range f.nodes {
		if n.Ready != types.ConditionTrue {
			return fmt.Sprintf("Node %s is not ready.", n.Name)
		}
		if n.DrainInProgress == types.ConditionTrue {
			return fmt.Sprintf("Node %s is being drained.", n.Name)
		}
	}
	for _, s := range f.sets {
		if s.Note.Act == types.ActFailback && f.now.Sub(s.Note.At).Abs() < betweenFailbacks {
			return fmt.Sprintf("%s was moved less than %s ago.", s.Name, betweenFailbacks)
		}
	}
	return ""
}

// unhealthy says which volume is not in best health, "" for none: a move over a
// volume that rebuilds would cost it a replica.
func unhealthy(claims []string, s types.Storage) string {
	for _, claim := range claims {
		ok := false
		for _, v := range s.Volumes {
			ok = ok || v.Claim == claim && v.Robustness == "healthy" && v.HealthyReplicas() >= v.Wanted
		}
		if !ok {
			return fmt.Sprintf("Its volume %s is not healthy.", claim)
		}
	}
	return ""
}
