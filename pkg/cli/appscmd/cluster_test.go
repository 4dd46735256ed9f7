package appscmd

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// TestViewsOfTheCluster holds what people see: go test ./pkg/cli/appscmd -run Views -update
// writes it.
func TestViewsOfTheCluster(t *testing.T) {
	v := device.ClusterView{ReadAt: cmdtest.Now, Nodes: cmdtest.TroubledCluster()}
	for name, width := range map[string]int{"": 80, "-120": 120, "-pipe": cmdtest.Pipe} {
		lines := terminal.Draw(width, false, viewCluster(v, nil, func(all []overview.App) []overview.App { return all }).Draw)
		got := strings.Join(lines, "\n") + "\n"
		if width == 120 {
			cmdtest.Same(t, "testdata/views/cluster-120.txt", got)
			continue
		}
		cmdtest.SameView(t, "cluster"+name, got)
	}
}
