package draincmd

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func (c *askedCluster) OperatorUncordon(_ context.Context, node string) error {
	c.did = append(c.did, "uncordon "+node)
	return c.err
}

func TestAnOperatorUndoesOnlyWhatNoAgentUndoes(t *testing.T) {
	ours, drained := &types.Cordon{By: "zedkube"}, types.Node{Unschedulable: true, CordonedBy: &types.Cordon{By: "zedkube"}}
	theirs := types.Node{Unschedulable: true, TaintedAt: cmdtest.Ago(time.Hour), Agent: &types.AgentStamp{}, Writers: []types.FieldWriter{{Field: types.FieldCordon, Manager: "kubectl-cordon"}}}
	eves := theirs
	eves.Agent = nil
	tie := theirs
	tie.TieBreaker = true
	for name, c := range map[string]struct {
		node  types.Node
		named string // "" for this one
		yes   bool
		piped bool
		types string
		err   error
		did   bool
		code  int
		says  string
	}{
		"none":                   {node: types.Node{}, says: "Node node-2 is schedulable.\n"},
		"kept":                   {node: types.Node{Unschedulable: true, CordonedBy: ours, CordonKept: true}, did: true, says: "Node node-2 is schedulable again.\n"},
		"a drain's":              {node: drained, yes: true, code: exitRefused, says: "cordoned for its drain. See who requests it with \"zedkube drain status\"; \"zedkube drain cancel\" withdraws"},
		"of a drain elsewhere":   {node: drained, named: "node-1", yes: true, code: exitRefused, says: "\"zedkube drain cancel\" there"},
		"the workloads'":         {node: types.Node{Unschedulable: true, CordonKept: true, CordonedBy: &types.Cordon{Kind: types.CordonWorkloads}}, yes: true, code: exitRefused, says: "zedkube workloads enable"},
		"a tie-breaker's":        {node: tie, yes: true, code: exitRefused, says: "is the tie-breaker"},
		"theirs, confirmed":      {node: theirs, types: "node-2\n", did: true, says: "not cordoned by zedkube but by kubectl-cordon, 1h0m ago"},
		"theirs, not confirmed":  {node: theirs, types: "node-1\n", code: 1, says: "the answer is not node-2: nothing was changed"},
		"theirs, of a script":    {node: theirs, piped: true, code: 1, says: "add --yes"},
		"theirs, with --yes":     {node: theirs, named: "node-3", yes: true, piped: true, did: true, says: "Node node-3 is schedulable again."},
		"theirs, EVE's node":     {node: eves, yes: true, did: true, says: "it may be draining"},
		"ours in the meantime":   {node: theirs, yes: true, err: fmt.Errorf("uncordon: %w", types.ErrOwnCordon), did: true, code: exitRefused, says: "in the meantime"},
		"no answer":              {node: theirs, yes: true, err: types.ErrNoAnswer, did: true, code: terminal.ExitNotPublished, says: ""},
		"a node that is not one": {named: "node-9", code: 1, says: "the cluster has no node node-9"},
	} {
		nodes := cmdtest.ThreeNodes()
		at := map[string]int{"node-1": 0, "": 1, "node-3": 2, "node-9": 1}[c.named]
		c.node.Name, c.node.UUID = nodes[at].Name, nodes[at].UUID
		nodes[at] = c.node
		cluster := &askedCluster{nodes: nodes, err: c.err}
		var out bytes.Buffer
		u := uncordoning{name: c.named, yes: c.yes, asks: !c.piped, info: cmdtest.OwnInfo, in: strings.NewReader(c.types), out: &out}
		err := device.APIError(u.run(t.Context(), cluster, cmdtest.Now))
		if (len(cluster.did) > 0) != c.did || terminal.ExitCode(err) != c.code || !strings.Contains(fmt.Sprint(out.String(), err), c.says) {
			t.Errorf("%s: did %q, exit code %d, says %q, %v", name, cluster.did, terminal.ExitCode(err), out.String(), err)
		}
	}
}
