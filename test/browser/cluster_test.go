package browser

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// threeTold are the nodes of the busy day, as seen from the second.
func threeTold(now time.Time) []clusterview.Row {
	node := func(name, status string) overview.ClusterNode {
		return overview.ClusterNode{Name: name, Status: status, Since: now.Add(-time.Hour)}
	}
	view := func(at time.Time, phase types.DrainPhase) *clusterview.View {
		return &clusterview.View{
			At: at, Phase: types.ClusterDegraded, Since: at.Add(-5 * time.Hour), Why: "2 of 3 nodes are Ready.",
			Drain:    overview.Drain{Progress: &types.NodeDrainProgress{Phase: phase, Reason: "a budget allows nothing", Since: at.Add(-20 * time.Minute)}},
			Problems: []types.Finding{{Rule: "DrainNever", Severity: types.SeverityBad, Evidence: "It will not end by itself.", Since: at.Add(-15 * time.Minute)}},
			Apps:     []overview.App{{Name: "cam-" + string(phase), State: "RunningState", Here: true}},
		}
	}
	return []clusterview.Row{
		{Name: "node-2", Own: true, State: clusterview.Answered, HeardAt: now, View: view(now.Add(time.Hour), types.PhaseEmptying), Node: node("node-2", "Ready")},
		{Name: "node-1", State: clusterview.Silent, Why: "no answer in 3 s", HeardAt: now.Add(-9 * time.Minute), View: view(now.Add(-9*time.Minute), types.PhaseGates), Node: node("node-1", "NotReady")},
		{Name: "node-3", State: clusterview.NotAsked, Why: "no zedkube that tells of itself is known to run there", Node: node("node-3", "Ready")},
	}
}

// showsTheCluster draws what has answered while others are awaited, and what was known of
// these as the past. Ages count by the clock of who tells: the first is an hour ahead.
func showsTheCluster(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	d.mu.Lock()
	d.hold = make(chan struct{})
	d.mu.Unlock()
	tb := b.open(t, d.url(), wide)
	tb.shows("#state", "Live")
	tb.do(`document.querySelector("#cluster").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#cluster", "node-2", "Emptying", "(20m ago)", "(5h ago)", "BAD DrainNever", "(15m ago)", "cam-Emptying", "node-1", "was Gates", "asking, last known 9m ago")
	close(d.hold)
	tb.shows("#cluster", "no answer in 3 s, last known 9m ago", "was BAD DrainNever", "(29m ago)", "not asked: no zedkube", "3 nodes, as each tells of itself")
	tb.clean(d.url())
}
