package nodescmd

import (
	"context"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
)

func TestNodesThatCannotBeHadAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		view device.NodesView
		only []string
		code int
	}{
		"none, and why":          {device.NodesView{Problems: []string{"no kubeconfig"}}, nil, terminal.ExitNotPublished},
		"none":                   {device.NodesView{}, nil, terminal.ExitNotPublished},
		"some":                   {device.NodesView{Nodes: cmdtest.TroubledNodes()}, nil, 0},
		"one":                    {device.NodesView{Nodes: cmdtest.TroubledNodes()}, []string{"node-1"}, 0},
		"one that is not":        {device.NodesView{Nodes: cmdtest.TroubledNodes()}, []string{"node-9"}, terminal.ExitUsage},
		"one, of nobody's nodes": {device.NodesView{Problems: []string{"no kubeconfig"}}, []string{"node-1"}, terminal.ExitNotPublished},
	} {
		s := viewNodes(c.view, c.only)
		if got := terminal.ExitCode(s.Err); got != c.code {
			t.Errorf("%s: exit code %d, want %d", name, got, c.code)
		}
		said := strings.Join(terminal.Draw(80, false, s.Draw), "\n")
		if s.Err != nil && len(c.view.Problems) > 0 && (strings.Contains(said, "no kubeconfig") || !strings.Contains(s.Err.Error(), "no kubeconfig")) {
			t.Errorf("%s: %q and %v", name, said, s.Err)
		}
	}
}

func TestANodeThatIsNotThereIsNotWatchedForEver(t *testing.T) {
	all, without := device.NodesView{Nodes: cmdtest.TroubledNodes()}, device.NodesView{Nodes: cmdtest.TroubledNodes()}
	without.Nodes.List = without.Nodes.List[:1]
	unread := device.NodesView{Problems: []string{"the API server does not answer"}}
	name := all.Nodes.List[1].Name
	for what, c := range map[string]struct {
		looks []device.NodesView
		only  []string
		ended bool
	}{
		"a wrong name":                   {[]device.NodesView{all}, []string{"nosuch"}, true},
		"a wrong name, known later":      {[]device.NodesView{unread, all}, []string{"nosuch"}, true},
		"while nothing can be read":      {[]device.NodesView{unread, unread}, []string{"nosuch"}, false},
		"a node":                         {[]device.NodesView{all, all}, []string{name}, false},
		"a node that was there and left": {[]device.NodesView{all, without}, []string{name}, false},
		"all nodes":                      {[]device.NodesView{all, without}, nil, false},
	} {
		looks := c.looks
		look := watched(func(context.Context) device.NodesView {
			v := looks[0]
			looks = looks[1:]
			return v
		}, c.only)
		var last terminal.View
		for range c.looks {
			last = look(t.Context())
		}
		if last.Ended != c.ended || c.ended && terminal.ExitCode(last.Err) != terminal.ExitUsage {
			t.Errorf("%s: ended %t, %v", what, last.Ended, last.Err)
		}
	}
}

func nodesText(v device.NodesView, alone bool, width int) string {
	return strings.Join(terminal.Draw(width, false, func(s *terminal.Screen) { putNodes(s, v, alone) }), "\n") + "\n"
}

// TestViewsOfNodes holds what people see: go test ./pkg/cli/nodescmd -run Views
// -update writes it anew.
func TestViewsOfNodes(t *testing.T) {
	v := device.NodesView{ReadAt: cmdtest.Now, Nodes: cmdtest.TroubledNodes(), Problems: []string{"the agent is not running: process 4711 is gone"}}
	cmdtest.SameView(t, "nodes", nodesText(v, false, 80))
	cmdtest.SameView(t, "nodes-pipe", nodesText(v, false, cmdtest.Pipe))
	cmdtest.SameView(t, "nodes-40", nodesText(v, false, 40))
	v.Nodes.List, v.Problems = v.Nodes.List[1:2], nil
	cmdtest.SameView(t, "node", nodesText(v, true, 80))
}
