package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// TestThePageRunsTheProgramZedkubeEdge has a script of that name beside the agent's program, and later one
// that hangs.
func TestThePageRunsTheProgramZedkubeEdge(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	edge := filepath.Join(dir, "zedkube-edge")
	script := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(edge+".new", []byte("#!/bin/sh\n"+text), 0o755), os.Rename(edge+".new", edge)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	socket, p, ended := runLocalUntil(t, ctx, filepath.Join(dir, "zedkube"))
	t.Cleanup(func() { stop(); <-ended })
	ask := func(method, path, body, id string) (int, string) {
		r, err := http.NewRequestWithContext(context.Background(), method, "http://127.0.0.1:12347"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(actions.PlanHeader, id)
		resp, err := socket.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(all) + textOf(err)
	}
	if _, text := ask(http.MethodGet, actions.EdgePath, "", ""); !strings.Contains(text, `"Missing":"`+actions.ErrNoEdge.Error()) {
		t.Errorf("without the program: %s", text)
	}
	script(`case "$*" in
*--dry-run) echo "planned: $*";;
*press-1*) echo '{"token":"SECRET-TOKEN"}';;
*) echo "zedkube-edge: refused: $5" >&2; exit 3;;
esac
`)
	do := func(body string) (plan struct{ Plan, Command, ID string }, text string) {
		t.Helper()
		code, text := ask(http.MethodPost, actions.EdgePlanPath, body, "")
		if err := json.Unmarshal([]byte(text), &plan); err != nil || code != http.StatusOK || plan.ID == "" {
			t.Fatalf("%d %s", code, text)
		}
		_, text = ask(http.MethodPost, actions.EdgeDoPath, "", plan.ID)
		return plan, text
	}
	plan, text := do(`{"Do":"join","Name":"press-1"}`)
	if plan.Plan != "planned: --root "+p.Root+" --kubeconfig "+p.Kubeconfig+" join press-1 --dry-run\n" || !strings.Contains(text, "SECRET-TOKEN") {
		t.Errorf("%+v, %s", plan, text)
	}
	if _, text = do(`{"Do":"set","Settings":{"image":"$(touch hacked)"}}`); !strings.Contains(text, `"Error":"refused: set"`) {
		t.Errorf("what is refused: %s", text)
	}
	all, _, err := audit.Read(p.Audit)
	var lines []string
	for _, o := range all {
		lines = append(lines, o.Op+" "+o.Target+" "+string(o.Outcome)+" "+o.Error)
	}
	trail := strings.Join(lines, "\n")
	if err != nil || !strings.Contains(trail, "run command/edge join press-1 ok") || !strings.Contains(trail, "run command/edge set image=$(touch hacked) failed refused: set") || strings.Contains(trail, "SECRET") {
		t.Errorf("audited is %s, %v", trail, err)
	}

	begun := filepath.Join(dir, "begun")
	script("case \"$*\" in\n*--dry-run) exit 0;;\nesac\n: >" + begun + "\nexec /bin/sleep 3600\n")
	said := make(chan string, 1)
	go func() {
		_, text := do(`{"Do":"disable"}`)
		said <- text
	}()
	if err := eventually(func() string {
		_, err := os.Stat(begun)
		return textOf(err)
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("a minute later the agent still waits for zedkube-edge")
	}
	if text := <-said; !strings.Contains(text, "the agent stopped before the command had ended") {
		t.Errorf("the page is answered with %s", text)
	}
	all, _, err = audit.Read(p.Audit)
	if n := len(all); err != nil || n == 0 || all[n-1].Outcome != types.OperationFailed || all[n-1].Target != "command/edge disable" {
		t.Errorf("audited is %+v, %v", all, err)
	}
}
