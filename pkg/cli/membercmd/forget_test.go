package membercmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestOnlyAStaleStampIsForgotten(t *testing.T) {
	at := time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)
	for name, row := range map[string]struct {
		node string
		seen overview.ClusterNode
		code int // 0 for done
		gone bool
		says string
	}{
		"a stale one":                       {"n2", overview.ClusterNode{Name: "n2", AgentAt: at, AgentStale: true}, 0, true, "The stamp of node n2 was removed"},
		"a fresh one":                       {"n2", overview.ClusterNode{Name: "n2", AgentAt: at}, exitRefused, false, "is fresh"},
		"one that was written a moment ago": {"n2", overview.ClusterNode{Name: "n2", AgentAt: at.Add(-time.Hour), AgentStale: true}, exitRefused, false, "is fresh"},
		"one of a node not seen yet":        {"n2", overview.ClusterNode{Name: "n3", AgentAt: at, AgentStale: true}, exitRefused, false, "does not know node n2"},
		"none":                              {"n1", overview.ClusterNode{}, 0, false, "Node n1 has no stamp"},
		"no such node":                      {"n9", overview.ClusterNode{}, 1, false, "no node n9"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &kubetest.Cluster{Nodes: &pubsub.Table[types.Node]{}}
			_ = c.Nodes.Publish("n1", types.Node{Name: "n1", UID: "u1"})
			_ = c.Nodes.Publish("n2", types.Node{Name: "n2", UID: "u2", Agent: &types.AgentStamp{Version: "1"}, StampedAt: at})
			var out bytes.Buffer
			err := forgetting{name: row.node, seen: overview.Nodes{List: []overview.ClusterNode{row.seen}}, out: &out}.run(t.Context(), c)
			if got := err != nil; got != (row.code != 0) || row.code > 1 && terminal.ExitCode(err) != row.code {
				t.Errorf("want %d: %v", row.code, err)
			}
			if err != nil {
				out.WriteString(err.Error())
			}
			if n, _ := c.Nodes.Get("n2"); (n.Agent == nil) != row.gone || !strings.Contains(out.String(), row.says) {
				t.Errorf("%+v, %s", n.Agent, out.String())
			}
		})
	}
}
