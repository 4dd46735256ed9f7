package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/audit"
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
	if _, text := askPage(socket, http.MethodGet, actions.EdgePath, "", ""); !strings.Contains(text, `"Missing":"`+actions.ErrNoEdge.Error()) {
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
		code, text := askPage(socket, http.MethodPost, actions.EdgePlanPath, body, "")
		if err := json.Unmarshal([]byte(text), &plan); err != nil || code != http.StatusOK || plan.ID == "" {
			t.Fatalf("%d %s", code, text)
		}
		_, text = askPage(socket, http.MethodPost, actions.EdgeDoPath, "", plan.ID)
		return plan, text
	}
	plan, text := do(`{"Do":"join","Name":"press-1"}`)
	if plan.Plan != "planned: --root "+p.Root+" --kubeconfig "+p.Kubeconfig+" join press-1 --dry-run\n" || !strings.Contains(text, "SECRET-TOKEN") {
		t.Errorf("%+v, %s", plan, text)
	}
	if _, text = do(`{"Do":"set","Settings":{"image":"$(touch hacked)"}}`); !strings.Contains(text, `"Error":"refused: set"`) {
		t.Errorf("what is refused: %s", text)
	}
	if plan, text = do(`{"Do":"leave","Name":"press-2","Lost":true}`); !strings.HasSuffix(plan.Plan, " leave press-2 --lost --dry-run\n") || !strings.Contains(text, `"Error":"refused: leave"`) {
		t.Errorf("a leave: %+v, %s", plan, text)
	}
	all, _, err := audit.Read(p.Audit)
	var lines []string
	for _, o := range all {
		lines = append(lines, o.Op+" "+o.Target+" "+string(o.Outcome)+" "+o.Error)
	}
	trail := strings.Join(lines, "\n")
	if err != nil || !strings.Contains(trail, "run command/edge join press-1 ok") || !strings.Contains(trail, "run command/edge set image=$(touch hacked) failed refused: set") ||
		!strings.Contains(trail, "run command/edge leave press-2 --lost failed refused: leave") || strings.Contains(trail, "SECRET") {
		t.Errorf("audited is %s, %v", trail, err)
	}

	begun := filepath.Join(dir, "begun")
	script("case \"$*\" in\n*--dry-run) exit 0;;\nesac\n: >" + begun + "\nexec /bin/sleep 3600\n")
	last := stopAmid(t, begun, func() string {
		_, text := do(`{"Do":"disable"}`)
		return text
	}, stop, ended, p.Audit)
	if last.Target != "command/edge disable" {
		t.Errorf("audited is %+v", last)
	}
}
