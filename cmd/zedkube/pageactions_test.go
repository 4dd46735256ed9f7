package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/types"
)

// TestAnActionOfThePageDoesNotKeepTheAgentFromStopping has a command that takes an hour.
func TestAnActionOfThePageDoesNotKeepTheAgentFromStopping(t *testing.T) {
	dir := t.TempDir()
	program, begun := filepath.Join(dir, "program"), filepath.Join(dir, "begun")
	script := "#!/bin/sh\ncase \"$*\" in\n*'drain cancel') touch " + begun + "; exec sleep 3600;;\nesac\necho planned\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	socket, p, ended := runLocalUntil(t, ctx, program)
	const path = actions.Path + "/drain-cancel"
	var plan struct{ Plan, ID string }
	if _, text := askPage(socket, http.MethodGet, path, "", ""); json.Unmarshal([]byte(text), &plan) != nil || plan.Plan != "planned\n" {
		t.Fatalf("the plan is %s", text)
	}
	stopAmid(t, begun, func() string {
		_, text := askPage(socket, http.MethodPost, path, "", plan.ID)
		return text
	}, stop, ended, p.Audit)
}

// TestThePageDoesWithoutAnAPIServerWhatTheCommandsDo requests a drain, which needs none, and keeps a
// cordon, which is on the Node.
func TestThePageDoesWithoutAnAPIServerWhatTheCommandsDo(t *testing.T) {
	program := agent.Build(t)
	ctx, cancel := context.WithCancel(context.Background())
	socket, p, ended := runLocalUntil(t, ctx, program)
	t.Cleanup(func() { cancel(); <-ended })
	info := p.TopicFile("zedagent", "EdgeNodeInfo")
	if err := errors.Join(os.MkdirAll(filepath.Dir(info), 0o700), os.WriteFile(info, []byte(`{"DeviceName":"node-1"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	act := func(name string) (plan, said, failed string) {
		var shown struct{ Plan, Error, ID string }
		var done struct{ Said, Error string }
		for _, step := range []struct {
			method string
			into   any
		}{{http.MethodGet, &shown}, {http.MethodPost, &done}} {
			code, text := askPage(socket, step.method, actions.Path+"/"+name, "", shown.ID)
			if code != http.StatusOK || json.Unmarshal([]byte(text), step.into) != nil {
				t.Fatalf("%s %s: %d %s", step.method, name, code, text)
			}
		}
		return shown.Plan, done.Said, done.Error
	}
	plan, said, failed := act("drain-request")
	if !strings.HasPrefix(plan, "unknown: zedkube --root "+p.Root+" drain plan: ") || !strings.HasPrefix(said, "A drain of this node has been requested.") || failed != "" {
		t.Errorf("drain request: planned %q, said %q, failed %q", plan, said, failed)
	}
	if _, err := os.Stat(p.TopicFile(device.CommandAgent, "NodeDrainRequest")); err != nil {
		t.Error(err)
	}
	_, said, failed = act("keep-cordon")
	out, _ := exec.CommandContext(t.Context(), program, "--root", p.Root, "drain", "keep-cordon").CombinedOutput() // it fails
	if inAShell := strings.TrimPrefix(strings.TrimSpace(string(out)), "zedkube: "); said != "" || failed == "" || inAShell != failed {
		t.Errorf("keep-cordon: said %q, failed %q; in a shell %q", said, failed, inAShell)
	}
}

// TestASiteInABrowserBehindATunnelDoesNothing withdraws the drain request of a device from
// the page, after others have tried to.
func TestASiteInABrowserBehindATunnelDoesNothing(t *testing.T) {
	socket, p := runLocal(t)
	topic, err := operator.Open[types.NodeDrainRequest](p.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := topic.Publish(types.Global, types.NodeDrainRequest{Context: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	file, progress := p.TopicFile(device.CommandAgent, "NodeDrainRequest"), p.TopicFile(device.Self, "NodeDrainProgress")
	if err := errors.Join(os.MkdirAll(filepath.Dir(progress), 0o700), os.WriteFile(progress, []byte(`{"Phase":"Gates","Reason":"node-1 drains","Requesters":["OPERATOR"]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	ask := func(method string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:12347"+actions.Path+"/drain-cancel", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
			if name == "Host" {
				r.Host = value
			}
		}
		resp, err := socket.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	code, body := ask(http.MethodGet)
	var plan struct{ Plan, Error, ID string }
	if err := json.Unmarshal([]byte(body), &plan); err != nil || code != http.StatusOK || plan.ID == "" {
		t.Fatalf("%d %s, %v", code, body, err)
	}
	is := actions.PlanHeader + ": " + plan.ID
	for what, header := range map[string][]string{
		"another site":                  {is, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"},
		"another port of the same host": {is, "Origin: http://127.0.0.1:8080", "Sec-Fetch-Site: same-site"},
		"a frame without an address":    {is, "Origin: null"},
		"a link of another site":        {is, "Sec-Fetch-Site: cross-site"},
		"a name of DNS":                 {is, "Host: evil.example:12347"},
		"the page, without a plan":      {"Origin: http://127.0.0.1:12347", "Sec-Fetch-Site: same-origin"},
	} {
		if code, body := ask(http.MethodPost, header...); code != http.StatusForbidden && code != http.StatusConflict {
			t.Errorf("%s: %d %s", what, code, body)
		}
	}
	for _, method := range []string{http.MethodOptions, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if code, body := ask(method, is); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", method, code, body)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the request is gone: %v", err)
	}
	code, body = ask(http.MethodPost, is, "Origin: http://127.0.0.1:12347", "Sec-Fetch-Site: same-origin")
	if code != http.StatusOK || !strings.Contains(body, "withdrawn") {
		t.Errorf("the page: %d %s", code, body)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the request is still there: %v", err)
	}
	all, _, err := audit.Read(p.Audit)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, o := range all {
		lines = append(lines, o.Op+" "+o.Target+" "+string(o.Outcome))
	}
	for _, want := range []string{"run command/drain cancel ok", "ask no more topic/NodeDrainRequest/global ok"} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return line != want })); n != 1 {
			t.Errorf("audited is %q %d times: %q", want, n, lines)
		}
	}
}
