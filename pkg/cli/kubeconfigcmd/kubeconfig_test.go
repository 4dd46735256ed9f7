package kubeconfigcmd

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/kubeconfigs"
	"github.com/zedkube/zedkube/types"
)

// agent answers on the socket of a device with that, and returns what it was asked.
func agent(t *testing.T, code int, text string) (device.Paths, func() string) {
	p := device.Options{Root: t.TempDir()}.Paths()
	if err := os.MkdirAll(filepath.Dir(p.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.Method + " " + r.URL.Path + " " + string(body)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return p, func() string { return <-asked }
}

func TestTheAgentIsAskedAndItsAnswerPrintedAsItIs(t *testing.T) {
	p, asked := agent(t, 201, "# a\nkind: Config\n")
	text, err := issue(t.Context(), p, kubeconfigs.Request{For: "2h", Role: "edit", Reason: "new disk"})
	if err != nil || string(text) != "# a\nkind: Config\n" {
		t.Errorf("%q, %v", text, err)
	}
	if got := asked(); got != `POST /api/v1alpha1/kubeconfig {"for":"2h","role":"edit","reason":"new disk"}` {
		t.Errorf("asked was %s", got)
	}
}

func TestARefusalHasItsExitCodeAndItsReason(t *testing.T) {
	for _, r := range []struct {
		code, want int
		text, says string
	}{
		{400, terminal.ExitUsage, "a reason is required\n", "a reason is required"},
		{409, exitRefused, "too many\n", "too many"},
		{403, exitRefused, "only root\n", "only root"},
		{404, terminal.ExitNotPublished, "404 page", "another version"},
		{503, terminal.ExitNotPublished, "silent\x1b[2J\n", "silent"},
		{500, 1, "broken\n", "broken"},
		{201, 1, strings.Repeat("x", maxKubeconfig+1), "HTTP 201"},
		{200, 1, "kind: Config", "HTTP 200"},
	} {
		p, _ := agent(t, r.code, r.text)
		text, err := issue(t.Context(), p, kubeconfigs.Request{Reason: "x"})
		if err == nil || terminal.ExitCode(err) != r.want || !strings.Contains(err.Error(), r.says) || strings.Contains(err.Error(), "\x1b") || len(text) > 0 {
			t.Errorf("%d: exit code %d, %v", r.code, terminal.ExitCode(err), err)
		}
	}
	if _, err := issue(t.Context(), device.Options{Root: t.TempDir()}.Paths(), kubeconfigs.Request{}); terminal.ExitCode(err) != terminal.ExitNotPublished {
		t.Errorf("without an agent: %v", err)
	}
}

func TestTheListShowsWhatIsKeptAndNothingForATerminalToAct(t *testing.T) {
	at := time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)
	v := issued{ReadAt: at, Kubeconfigs: []types.IssuedKubeconfig{{Name: "zedkube-kubeconfig-x7k2p", Role: "view", Node: "n1", Reason: "new\x1b[2J disk", From: "uid 0", Expires: at.Add(time.Hour)}}}
	text := strings.Join(terminal.Draw(120, false, v.draw), "\n")
	for _, want := range []string{"NAME", "ASKED BY", "zedkube-kubeconfig-x7k2p", "view", "n1", "uid 0", "07:41:17"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}
