package draincmd

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// TestViewsOfTheCluster holds what people see: go test ./pkg/cli/draincmd -run Views -update
// writes it.
func TestViewsOfTheCluster(t *testing.T) {
	v := device.ClusterView{ReadAt: cmdtest.Now, Nodes: cmdtest.TroubledCluster()}
	for name, width := range map[string]int{"": 80, "-120": 120, "-pipe": cmdtest.Pipe} {
		lines := terminal.Draw(width, false, viewCluster(v, "").Draw)
		got := strings.Join(lines, "\n") + "\n"
		if width == 120 {
			cmdtest.Same(t, "testdata/views/cluster-120.txt", got)
			continue
		}
		cmdtest.SameView(t, "cluster"+name, got)
	}
}

func TestTheDrainOfAnotherNodeIsShownAsItTellsIt(t *testing.T) {
	for _, r := range cmdtest.TroubledCluster() {
		name := map[string]string{"node-2": "other", "node-3": "other-silent", "node-5": "other-eve"}[r.Name]
		if name == "" {
			continue
		}
		s := viewCluster(device.ClusterView{ReadAt: cmdtest.Now, Nodes: []clusterview.Row{r}}, r.Name)
		cmdtest.SameView(t, name, strings.Join(terminal.Draw(80, false, s.Draw), "\n")+"\n")
		if code := terminal.ExitCode(s.Err); (code == terminal.ExitNotPublished) != (r.State == clusterview.Silent) {
			t.Errorf("%s: exit code %d", r.Name, code)
		}
	}
	if s := viewCluster(device.ClusterView{}, "node-9"); terminal.ExitCode(s.Err) != terminal.ExitUsage {
		t.Errorf("of a node that is not there: %v", s.Err)
	}
}

func TestAForceFileOfAnotherNodeThatIsIgnoredForcesNothing(t *testing.T) {
	for _, test := range []struct {
		file   overview.ForceFile
		forced bool
		want   string
	}{
		{overview.ForceFile{Ignored: "it holds no number"}, false, "which is ignored: it holds no number"},
		{overview.ForceFile{Says: "COMPLETE"}, true, "EVE sees COMPLETE instead"},
	} {
		r := clusterview.Row{Name: "node-2", State: clusterview.Answered, View: &clusterview.View{
			At: cmdtest.Now, Drain: overview.Drain{Progress: &types.NodeDrainProgress{Phase: types.PhaseIdle}, Forced: []overview.ForceFile{test.file}},
		}}
		record := told(r, cmdtest.Now)
		if record.Forced != test.forced {
			t.Errorf("%+v: forced is %t", test.file, record.Forced)
		}
		if text := strings.Join(terminal.Draw(200, false, record.put), "\n"); !strings.Contains(text, test.want) {
			t.Errorf("%+v:\n%s", test.file, text)
		}
	}
}
