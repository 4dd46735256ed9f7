package device

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func TestTheAgentJudgesTheStampsOfAPlan(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	n2 := types.Node{Name: "n2", Agent: &types.AgentStamp{Version: "1"}, StampedAt: at}
	seen := &pubsub.Table[types.Node]{}
	known := n2
	known.StampStale = true
	_ = seen.Publish("n2", known)
	p := Paths{Socket: filepath.Join(t.TempDir(), "s")}
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
	mux.Handle(overview.NodesPath, overview.Live{Node: seen, Edge: &pubsub.Table[types.Node]{}, EdgeMetrics: &pubsub.Table[types.KubeNodeMetrics]{}, Info: &pubsub.Table[types.EdgeNodeInfo]{}, API: &pubsub.Table[types.APIStatus]{}})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if n := judged(); !n.StampStale || n.StampUnconfirmed {
		t.Errorf("with one: %+v", n)
	}
}

// nodesOf asks an agent that answers so.
func nodesOf(t *testing.T, answer http.HandlerFunc) (overview.Nodes, error) {
	t.Helper()
	sock := filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}}
	server.Start()
	defer server.Close()
	a := &NodesAsked{Paths: Paths{Socket: sock}}
	defer a.Close()
	return a.OfAgent(t.Context())
}

func TestWhateverAnAgentAnswersNodesAreNodes(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		fails  string
	}{
		"an old agent":  {http.NotFound, "answers 404"},
		"no JSON":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }, "invalid character"},
		"another shape": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"List":7}`)) }, "cannot unmarshal"},
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxNodes+2)) // at once: there are two seconds for it
		}, "more than"},
		"it hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		"nodes":    {func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(cmdtest.TroubledNodes()) }, ""},
	} {
		nodes, err := nodesOf(t, c.answer)
		if c.fails == "" && (err != nil || len(nodes.List) != 4) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || len(nodes.List) > 0) {
			t.Errorf("%s: %d nodes, %v", name, len(nodes.List), err)
		}
	}
}

func TestNodesComeFromTheReportWhereNoAgentAnswers(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"run/zedkube.pid": strconv.Itoa(os.Getpid()), "run/zedkube.touch": "",
		"run/zedkube/KubeClusterInfo/global.json": `{"Nodes":[{"Name":"node-1","Status":1,"Schedulable":true}]}`,
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &NodesAsked{Paths: Options{Root: root}.Paths()}
	defer a.Close()
	v := a.Look(t.Context())
	if v.Nodes.From != overview.FromReport || len(v.Nodes.List) != 1 || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "ask the agent") {
		t.Errorf("nodes %+v, problems %v", v.Nodes, v.Problems)
	}
}
