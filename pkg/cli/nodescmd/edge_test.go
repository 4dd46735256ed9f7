package nodescmd

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
)

func withEdgeNodes() device.NodesView {
	v := device.NodesView{Nodes: cmdtest.TroubledNodes(), ReadAt: cmdtest.Now}
	v.Nodes.Edge = []overview.EdgeNode{
		{Name: "edge-1", Ready: true, Since: cmdtest.Ago(time.Minute), Address: "10.88.1.2", Kubelet: "v1.30.7-kubeedge-v1.20.0", Created: cmdtest.Ago(time.Hour)},
		{Name: "edge-2", Since: cmdtest.Ago(48 * time.Hour), Cordoned: true, Kubelet: "v1\x1b[2J"},
	}
	return v
}

func TestNodesOfKubeEdgeComeAfterTheMembers(t *testing.T) {
	v := viewNodes(withEdgeNodes(), nil)
	lines := terminal.Draw(200, false, v.Draw)
	members := len(cmdtest.TroubledNodes().List)
	for i, want := range [][]string{
		{"edge-1", "Ready", "60s", "edge", "10.88.1.2", "v1.30.7-kubeedge-v1.20.0"},
		{"edge-2", "offline", "48h", "edge", "yes"},
	} {
		words := strings.Fields(lines[1+members+i])
		if len(words) < len(want) || words[0] != want[0] || words[1] != want[1] {
			t.Fatalf("line %d is %q, want %q", 1+members+i, words, want)
		}
		for _, word := range want[3:] {
			if !strings.Contains(lines[1+members+i], word) {
				t.Errorf("there is no %q in %q", word, lines[1+members+i])
			}
		}
	}
	if len(v.Rows) != members+2 || v.Rows[members+1].Text != "offline" || strings.Contains(strings.Join(lines, ""), "\x1b[2J") {
		t.Errorf("the rows are %v", v.Rows)
	}
}

func TestANodeOfKubeEdgeIsShownByName(t *testing.T) {
	v := viewNodes(withEdgeNodes(), []string{"edge-2"})
	got := strings.Join(terminal.Draw(200, false, v.Draw), "\n")
	if v.Err != nil || !strings.HasPrefix(got, "edge-2: offline since ") || !strings.Contains(got, "it is no member") || strings.Contains(got, "edge-1") {
		t.Errorf("%v\n%s", v.Err, got)
	}
	if v := viewNodes(withEdgeNodes(), []string{"edge-3"}); terminal.ExitCode(v.Err) != terminal.ExitUsage {
		t.Errorf("of a name that nobody has: %v", v.Err)
	}
}
