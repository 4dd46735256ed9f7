package turns

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// replica is one copy of a volume's data.
type replica struct {
	whole   bool
	rebuilt time.Time // when its rebuild ends; zero while there is none
	failed  time.Time
}

// volume is one of Longhorn's, used by one pod.
type volume struct {
	name     string
	engine   string // node, "" while it is detached
	wanted   int
	replicas map[string]*replica // by node
}

// healthy counts the whole replicas on devices that are up.
func (v *volume) healthy(up func(string) bool) (n int) {
	for node, r := range v.replicas {
		if r.whole && up(node) {
			n++
		}
	}
	return n
}

func (v *volume) runs(up func(string) bool) bool {
	return v.engine != "" && up(v.engine) && v.healthy(up) > 0
}

// settle is the engine, which gives up what is on devices that are down, but for the last whole replica.
func (v *volume) settle(up func(string) bool, now time.Time) {
	for node, r := range v.replicas {
		switch runs := v.runs(up); {
		case runs && r.whole && !up(node):
			r.whole, r.failed = false, now
		case !r.rebuilt.IsZero() && (!runs || !up(node)):
			r.rebuilt, r.failed = time.Time{}, now
		case !r.rebuilt.IsZero() && !now.Before(r.rebuilt):
			r.whole, r.rebuilt, r.failed = true, time.Time{}, time.Time{}
		}
	}
}

// shown is the volume as the API server has it.
func (v *volume) shown(nodes []string, up func(string) bool) types.Volume {
	runs := v.runs(up)
	is := types.Volume{Name: v.name, UID: v.name, Claim: types.NamespaceApps + "/" + v.name, Wanted: v.wanted, Engine: v.engine, Running: runs, State: "detached", Robustness: "unknown"}
	if v.engine != "" {
		is.State = "attached"
	}
	for _, node := range nodes {
		r := v.replicas[node]
		if r == nil {
			continue
		}
		row := types.Replica{Name: v.name + "-" + node, Node: node, FailedAt: r.failed, State: "stopped", Started: true}
		if r.whole {
			row.HealthyAt = began
		}
		switch {
		case runs && r.whole:
			row.Running, row.Mode, row.State = true, "RW", "running"
		case runs && !r.rebuilt.IsZero():
			row.Running, row.Mode, row.State, row.FailedAt = true, "WO", "running", time.Time{}
		case v.engine != "" && r.whole:
			row.LastMode = "RW"
		}
		is.Replicas = append(is.Replicas, row)
	}
	switch n := v.healthy(up); {
	case runs && n >= v.wanted:
		is.Robustness = "healthy"
	case runs:
		is.Robustness = "degraded"
	case v.engine != "" && n == 0:
		is.Robustness = "faulted"
	}
	return is
}
