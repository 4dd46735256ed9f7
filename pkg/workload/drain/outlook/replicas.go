package outlook

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// evicting are the values of Longhorn's node-drain-policy by which it moves
// replicas away from a node that is cordoned.
var evicting = []string{"block-for-eviction", "block-for-eviction-if-contains-last-replica"}

// replicaElsewhere says of a volume that needs a healthy replica on another node
// that is ready, and has none, how it may come to one.
func replicaElsewhere(v types.Volume, policy, node string, ready map[string]bool, d types.DrainVolume) finding {
	p := finding{why: "no other node that is Ready has a healthy replica of it", never: true}
	if d.LastHere {
		p.why = "its last healthy replica is on this node"
	}
	away := awayReplicas(v, node, ready)
	switch {
	case !v.Running && v.State != detached:
		return inBetween(v)
	case d.Healthy == 0:
		p.why = "it has no healthy replica at all"
		p.remedy = "salvage the volume in Longhorn, or delete it if its data is not needed"
	case rebuilds(v, node, ready):
		p.never, p.why = false, fmt.Sprintf("%s; one is being rebuilt on node %s, %d %%", p.why, d.Rebuilding, d.Percent)
	case len(away) > 0:
		p.why += "; a healthy one is on " + Some(away) + map[bool]string{true: " which is not Ready", false: " which are not Ready"}[len(away) == 1]
		p.remedy = "bring that node back"
	case !ReadyPeer(ready, node):
		p.remedy = "bring another node back, or " + allow
	case slices.Contains(evicting, policy):
		p.never, p.why = false, p.why+"; Longhorn is to move it to another node"
		p.remedy = "if it does not, look for space on the disks of the other nodes"
	case joins(v, node, ready):
		p.never, p.why = false, p.why+"; another one is about to be rebuilt"
	case v.State == detached:
		p.remedy = "nothing is rebuilt while it is detached: start what uses it, or " + allow
	case v.Wanted == 1:
		p.remedy = "it is configured to have one replica only: give it two in Longhorn, or " + allow
	default:
		p.remedy = "nothing is being rebuilt: look for space and failed disks in Longhorn, or " + allow
	}
	return p
}

// allow is for a reboot, after which the data is back with the node.
const allow = "for a reboot only, never for a leave (the data would be lost): set storage.longhorn.node-drain-policy to always-allow if the volume may be unavailable meanwhile, and set it back afterwards"

// inBetween is a volume of which nobody knows which replicas are healthy.
func inBetween(v types.Volume) finding {
	p := finding{
		why:    fmt.Sprintf("it is %s and its engine is not running, so it is not known which replicas are healthy", v.State),
		never:  true,
		remedy: "look at its engine in Longhorn: what uses the volume has to stop",
	}
	switch v.State {
	case "creating", "attaching", "detaching", "deleting":
		p.never, p.remedy = false, ""
	case "":
		p.why = "its state is not known, nor which replicas are healthy"
	}
	return p
}

// rebuilds reports whether a replica is being rebuilt on another ready node.
func rebuilds(v types.Volume, node string, ready map[string]bool) bool {
	return v.Running && slices.ContainsFunc(v.Replicas, func(r types.Replica) bool {
		return r.Mode == "WO" && r.Deleted.IsZero() && r.Node != node && ready[r.Node]
	})
}

// joins reports whether a replica on another ready node waits for its rebuild.
func joins(v types.Volume, node string, ready map[string]bool) bool {
	return v.Running && slices.ContainsFunc(v.Replicas, func(r types.Replica) bool {
		return r.Mode == "" && r.FailedAt.IsZero() && r.Deleted.IsZero() && r.Node != node && ready[r.Node]
	})
}

// awayReplicas are the other nodes with a healthy replica, none of them ready.
func awayReplicas(v types.Volume, node string, ready map[string]bool) []string {
	var nodes []string
	for _, r := range v.Replicas {
		if r.Node != node && r.Node != "" && !ready[r.Node] && isHealthy(v, r) {
			nodes = append(nodes, r.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// RebuiltElsewhere returns the volumes whose last healthy replica is on node while
// another one is rebuilt on a node that is Ready, by name.
func RebuiltElsewhere(s types.Storage, node string, ready map[string]bool) []types.DrainVolume {
	var out []types.DrainVolume
	for _, v := range s.Volumes {
		if s.Longhorn && needsReplica(v, s.Policy, node) && !survives(v, node, ready) && rebuilds(v, node, ready) {
			out = append(out, blockingVolume(v, s.Policy, node, ready, false))
		}
	}
	slices.SortFunc(out, func(a, b types.DrainVolume) int { return strings.Compare(a.Name, b.Name) })
	return out
}

const (
	// etaSteps is how many changes of a rebuild's percentage its rate is taken
	// from: it changes with the load.
	etaSteps = 6
	// etaForgets is how long a volume may go unasked for before it is forgotten.
	etaForgets = 10 * time.Minute
)

// RebuildRates remembers how fast rebuilds go.
type RebuildRates struct {
	volumes map[string]*rate
	swept   time.Duration
}

type rate struct {
	asked time.Duration
	steps []step // each of a higher percentage than the one before
}

type step struct {
	percent int
	at      time.Duration
}

// ETA returns in how many seconds the rebuild of a volume will be done that is
// at percent now, 0 for unknown. One that goes backwards has begun again; one that
// stands still gets slower.
func (r *RebuildRates) ETA(volume string, percent int, now time.Duration) int {
	r.sweep(now)
	if percent <= 0 {
		delete(r.volumes, volume)
		return 0
	}
	v := r.volumes[volume]
	if v == nil || percent < v.steps[len(v.steps)-1].percent {
		v = &rate{}
		r.volumes[volume] = v
	}
	v.asked = now
	if n := len(v.steps); n == 0 || percent > v.steps[n-1].percent {
		v.steps = append(v.steps, step{percent, now})
	}
	v.steps = v.steps[max(0, len(v.steps)-etaSteps):]
	first := v.steps[0]
	done, took := percent-first.percent, now-first.at
	if done <= 0 || took <= 0 {
		return 0
	}
	return int(math.Ceil(took.Seconds() * float64(100-percent) / float64(done)))
}

// sweep forgets what was not asked for lately.
func (r *RebuildRates) sweep(now time.Duration) {
	if r.volumes == nil {
		r.volumes = map[string]*rate{}
	}
	if now-r.swept < etaForgets {
		return
	}
	for name, v := range r.volumes {
		if now-v.asked >= etaForgets {
			delete(r.volumes, name)
		}
	}
	r.swept = now
}
