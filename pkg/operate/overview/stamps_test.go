package overview

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheAgentTellsWhichStampsAreFresh(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	listed := types.Node{Name: "a", Agent: &types.AgentStamp{Version: "1"}, StampedAt: at, StampUnconfirmed: true}
	for name, c := range map[string]struct {
		seen               ClusterNode
		stale, unconfirmed bool
	}{
		"a fresh one":            {ClusterNode{Name: "a", Agent: "1", AgentAt: at}, false, false},
		"a stale one":            {ClusterNode{Name: "a", Agent: "1", AgentAt: at, AgentStale: true}, true, false},
		"one that is not yet":    {ClusterNode{Name: "a", Agent: "1", AgentAt: at, AgentUnsure: true}, false, true},
		"one that is newer":      {ClusterNode{Name: "a", Agent: "1", AgentAt: at.Add(-time.Hour), AgentStale: true}, false, true},
		"one of another node":    {ClusterNode{Name: "b", Agent: "1", AgentAt: at, AgentStale: true}, false, true},
		"one that was not there": {ClusterNode{Name: "a"}, false, true},
	} {
		rows := []types.Node{listed, {Name: "none"}}
		Nodes{List: []ClusterNode{c.seen}}.Judge(rows)
		if rows[0].StampStale != c.stale || rows[0].StampUnconfirmed != c.unconfirmed || rows[1].StampStale || rows[1].StampUnconfirmed {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	n := listed
	n.StampStale = true
	if c := NodesOf([]types.Node{n}, "")[0]; !c.AgentStale || c.AgentUnsure {
		t.Errorf("a stale one is shown as %+v", c)
	}
	if n.StampStale = false; !NodesOf([]types.Node{n}, "")[0].AgentUnsure {
		t.Error("one that is not known yet is not shown as such")
	}
}
