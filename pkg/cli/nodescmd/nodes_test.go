package nodescmd

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

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
)

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
	a := &NodesAsked{Paths: device.Paths{Socket: sock}}
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
	a := &NodesAsked{Paths: device.Options{Root: root}.Paths()}
	defer a.Close()
	v := a.Look(t.Context())
	if v.Nodes.From != fromFile || len(v.Nodes.List) != 1 || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "ask the agent") {
		t.Errorf("nodes %+v, problems %v", v.Nodes, v.Problems)
	}
}

func TestNodesThatCannotBeHadAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		view nodesView
		only []string
		code int
	}{
		"none, and why":          {nodesView{Problems: []string{"no kubeconfig"}}, nil, terminal.ExitNotPublished},
		"none":                   {nodesView{}, nil, terminal.ExitNotPublished},
		"some":                   {nodesView{Nodes: cmdtest.TroubledNodes()}, nil, 0},
		"one":                    {nodesView{Nodes: cmdtest.TroubledNodes()}, []string{"node-1"}, 0},
		"one that is not":        {nodesView{Nodes: cmdtest.TroubledNodes()}, []string{"node-9"}, terminal.ExitUsage},
		"one, of nobody's nodes": {nodesView{Problems: []string{"no kubeconfig"}}, []string{"node-1"}, terminal.ExitNotPublished},
	} {
		s := shownNodes(c.view, c.only)
		if got := terminal.ExitCode(s.Err); got != c.code {
			t.Errorf("%s: exit code %d, want %d", name, got, c.code)
		}
		said := strings.Join(terminal.Draw(80, false, s.Draw), "\n")
		if s.Err != nil && len(c.view.Problems) > 0 && (strings.Contains(said, "no kubeconfig") || !strings.Contains(s.Err.Error(), "no kubeconfig")) {
			t.Errorf("%s: %q and %v", name, said, s.Err)
		}
	}
}

func nodesText(v nodesView, alone bool, width int) string {
	return strings.Join(terminal.Draw(width, false, func(s *terminal.Screen) { putNodes(s, v, alone) }), "\n") + "\n"
}

// TestViewsOfNodes holds what people see: go test ./pkg/cli/nodescmd -run Views
// -update writes it anew.
func TestViewsOfNodes(t *testing.T) {
	v := nodesView{ReadAt: cmdtest.Now, Nodes: cmdtest.TroubledNodes(), Problems: []string{"the agent does not run: process 4711 is gone"}}
	cmdtest.SameView(t, "nodes", nodesText(v, false, 80))
	cmdtest.SameView(t, "nodes-pipe", nodesText(v, false, cmdtest.Pipe))
	cmdtest.SameView(t, "nodes-40", nodesText(v, false, 40))
	v.Nodes.List, v.Problems = v.Nodes.List[1:2], nil
	cmdtest.SameView(t, "node", nodesText(v, true, 80))
}
