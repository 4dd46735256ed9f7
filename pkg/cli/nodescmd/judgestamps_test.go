package nodescmd

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestTheAgentJudgesTheStampsOfAPlan(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	n2 := types.Node{Name: "n2", Agent: &types.AgentStamp{Version: "1"}, StampedAt: at}
	seen := &pubsub.Table[types.Node]{}
	known := n2
	known.StampStale = true
	_ = seen.Publish("n2", known)
	p := device.Paths{Socket: filepath.Join(t.TempDir(), "s")}
	judged := func() types.Node {
		nodes := []types.Node{n2}
		JudgeStamps(t.Context(), p, nodes)
		return nodes[0]
	}
	if n := judged(); n.StampStale || !n.StampUnconfirmed {
		t.Errorf("without an agent: %+v", n)
	}
	l, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(overview.NodesPath, overview.Live{Node: seen, Info: &pubsub.Table[types.EdgeNodeInfo]{}, API: &pubsub.Table[types.APIStatus]{}})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if n := judged(); !n.StampStale || n.StampUnconfirmed {
		t.Errorf("with one: %+v", n)
	}
}
