package eventscmd

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// TestViewsOfEvents holds what people see: go test ./pkg/cli/eventscmd -run Views -update
// writes it.
func TestViewsOfEvents(t *testing.T) {
	found := types.KubeEvents{More: true, List: []types.KubeEvent{
		{At: cmdtest.Ago(time.Minute), Type: "Warning", Reason: "BackOff", About: "pod/eve-kube-app/cam-6ba7b810-abcde", Node: "node-2", By: "kubelet", Count: 12, Message: "Back-off restarting\x1b[31m failed container"},
		{At: cmdtest.Ago(time.Hour), Type: "Normal", Reason: "NodeNotSchedulable", About: "node/node-2", Node: "node-2", By: "kubelet", Count: 1, Message: "Node node-2 status is now: NodeNotSchedulable"},
	}}
	for name, width := range map[string]int{"events": 80, "events-pipe": cmdtest.Pipe} {
		cmdtest.SameView(t, name, strings.Join(terminal.Draw(width, false, view(found, cmdtest.Now).Draw), "\n")+"\n")
	}
	for range mostShown {
		found.List = append(found.List, found.List[0])
	}
	if text := strings.Join(terminal.Draw(80, false, view(found, cmdtest.Now).Draw), "\n"); !strings.Contains(text, "2 older events are not shown") {
		t.Error(text)
	}
}
