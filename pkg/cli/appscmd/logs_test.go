package appscmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// logsDevice is a device with three applications, and an API server with their pods.
func logsDevice(t *testing.T, serve http.HandlerFunc) (root string) {
	t.Helper()
	root = t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for id, rest := range map[string]string{
		"9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34": `"DisplayName":"Label_Printer","FixedResources":{"VirtualizationMode":4}`,
		"9f27b6c9-4e15-4a02-b3d9-60c5d8e1fa34": `"DisplayName":"scale","FixedResources":{"VirtualizationMode":1}`,
		"11111111-4e15-4a02-b3d9-60c5d8e1fa34": `"DisplayName":"idle","FixedResources":{"VirtualizationMode":4}`,
	} {
		put("run/zedagent/AppInstanceConfig/"+id+".json", fmt.Sprintf(`{"UUIDandVersion":{"UUID":%q,"Version":"1"},%s}`, id, rest))
	}
	put("run/zedagent/AppInstanceConfig/broken.json", "{")
	server := httptest.NewTLSServer(serve)
	t.Cleanup(server.Close)
	put("run/.kube/k3s/k3s.yaml", "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {certificate-authority-data: "+authorityOf(server)+", server: '"+server.URL+
		"'}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\nusers:\n- name: u\n  user: {token: t}\n")
	return root
}

// authorityOf is the certificate of a server, as a kubeconfig has it.
func authorityOf(server *httptest.Server) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func serveLogs(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/log") {
		q := r.URL.Query()
		what := "log of"
		if q.Get("previous") == "true" {
			what = "former log of"
		}
		if q.Get("follow") == "true" {
			what = "followed " + what
		}
		_, _ = fmt.Fprintf(w, "2026-05-03T06:09:30Z %s %s\n2026-05-03T06:09:31Z end", what, q.Get("container"))
		return
	}
	pod := func(name string, labels map[string]string, containers ...string) map[string]any {
		var spec, status []any
		for i, c := range containers {
			spec = append(spec, map[string]any{"name": c})
			s := map[string]any{"name": c, "containerID": "containerd://" + c, "state": map[string]any{"running": map[string]any{"startedAt": "2026-05-03T06:00:00Z"}}}
			if i == 0 && name == "label-printer-9f27b-0-abcde" {
				s["restartCount"], s["lastState"] = 1, map[string]any{"terminated": map[string]any{"containerID": "containerd://old"}}
			}
			status = append(status, s)
		}
		return map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "eve-kube-app", "uid": name, "labels": labels},
			"spec":     map[string]any{"containers": spec}, "status": map[string]any{"containerStatuses": status},
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "7"},
		"items": []any{
			pod("label-printer-9f27b-0-abcde", map[string]string{"app": "label-printer-9f27b-0"}, "web", "side"),
			pod("virt-launcher-scale", map[string]string{"App-Domain-Name": "9f27b6c9-4e15-4a02-b3d9-60c5d8e1fa34.1.1"}, "compute", "guest-console-log"),
			pod("somebody", nil, "x"),
		},
	})
}

func TestLogsPrintsWhatAnApplicationWrites(t *testing.T) {
	root := logsDevice(t, serveLogs)
	const printer = "label-printer-9f27b-0-abcde/"
	for line, want := range map[string]struct {
		out []string
		err string // its beginning
	}{
		"label-printer-9f27b-0 --container web": {out: []string{"2026-05-03T06:09:30Z log of web", "2026-05-03T06:09:31Z end"}},
		"9F27B6C8-4e15-4a02-b3d9-60c5d8e1fa34": {out: []string{
			printer + "web 2026-05-03T06:09:30Z log of web", printer + "web 2026-05-03T06:09:31Z end",
			printer + "side 2026-05-03T06:09:30Z log of side", printer + "side 2026-05-03T06:09:31Z end",
		}},
		"Label_Printer --previous":    {out: []string{"2026-05-03T06:09:30Z former log of web", "2026-05-03T06:09:31Z end"}},
		"scale -f":                    {out: []string{"2026-05-03T06:09:30Z followed log of guest-console-log", "2026-05-03T06:09:31Z end"}},
		"9f27b6c9":                    {out: []string{"2026-05-03T06:09:30Z log of guest-console-log", "2026-05-03T06:09:31Z end"}},
		"9f27":                        {err: "2 applications are called \"9f27\"; this device knows\n  11111111-"},
		"nobody":                      {err: "no application is called \"nobody\"; this device knows\n  11111111-4e15-4a02-b3d9-60c5d8e1fa34  idle\n"},
		"idle":                        {err: "application idle has no pod on any node"},
		"Label_Printer --container x": {err: "application Label_Printer has no container \"x\"; it has side, web"},
		"scale --previous":            {err: "application scale has not restarted"},
		"scale --since -1m":           {err: "--since: time \"-1m\": want"},
		"":                            {err: "usage: zedkube logs APP"},
	} {
		var out bytes.Buffer
		c := device.NewRoot(&device.Options{}, NewLogsCommand)
		c.SetOut(&out)
		c.SetArgs(append([]string{"--root", root, "logs"}, strings.Fields(line)...))
		err := c.ExecuteContext(t.Context())
		if (err != nil) != (want.err != "") || err != nil && !strings.HasPrefix(err.Error(), want.err) {
			t.Errorf("logs %s: %v", line, err)
		}
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if d := cmp.Diff(want.out, got); want.err == "" && d != "" {
			t.Errorf("logs %s: %s", line, d)
		}
	}
}

func TestLogsSaysWhenNobodyCanBeAsked(t *testing.T) {
	root := logsDevice(t, serveLogs)
	if err := os.Remove(filepath.Join(root, "run/.kube/k3s/k3s.yaml")); err != nil {
		t.Fatal(err)
	}
	c := device.NewRoot(&device.Options{}, NewLogsCommand)
	c.SetArgs([]string{"--root", root, "logs", "idle"})
	if err := c.ExecuteContext(context.WithoutCancel(t.Context())); terminal.ExitCode(err) != terminal.ExitNotPublished {
		t.Errorf("exit code %d: %v", terminal.ExitCode(err), err)
	}
}

func TestALineWithoutEndIsPrintedInParts(t *testing.T) {
	lines := make(chan loggedLine, 10)
	log := "2026-05-03T06:09:30Z " + strings.Repeat("x", 3*printedLine) + "\n2026-05-03T06:09:31Z end"
	if err := readLines(t.Context(), strings.NewReader(log), loggedLine{Pod: "pod", Container: "c"}, lines); err != nil {
		t.Fatal(err)
	}
	close(lines)
	var all []string
	for l := range lines {
		var b bytes.Buffer
		if err := l.write(&b, &terminal.Outputs{}, true, false); err != nil {
			t.Fatal(err)
		}
		line := b.Bytes()
		if len(line) > printedLine+100 || line[len(line)-1] != '\n' || !bytes.HasPrefix(line, []byte("pod/c ")) {
			t.Errorf("a line of %d bytes: %.60q", len(line), line)
		}
		text := strings.TrimPrefix(strings.TrimPrefix(string(line), "pod/c "), "[continued] ")
		all = append(all, strings.TrimSuffix(text, " [continues]\n"))
	}
	if got := strings.TrimSuffix(strings.Join(all, ""), "\n"); len(all) != 5 || got != log {
		t.Errorf("%d lines, %d bytes of %d", len(all), len(got), len(log))
	}
}

// What a guest writes must not clear root's screen, set its title or fill its
// clipboard.
func TestALogIsNotObeyedByATerminal(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\x07\x1b]52;c;eA==\x07\u009b31m\u202e\b\x7f\rforged"
	root := logsDevice(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			_, _ = fmt.Fprintf(w, "2026-05-03T06:09:30Z a\tb \u00e9 %s\n2026-05-03T06:09:31Z end", evil)
			return
		}
		serveLogs(w, r)
	})
	const escaped = `2026-05-03T06:09:30Z a	b é \u001b[2J\u001b]0;owned\u0007\u001b]52;c;eA==\u0007\u009b31m\u202e\u0008\u007f\u000dforged`
	for name, row := range map[string]struct {
		args     []string
		terminal bool
		want     string
	}{
		"on a terminal":      {nil, true, escaped},
		"as it is, if asked": {[]string{"--raw"}, true, evil},
		"as it is in a pipe": {nil, false, evil},
		"JSON on a terminal": {[]string{"-o", "json"}, true, `\u001b[2J`},
	} {
		c := device.NewRoot(&device.Options{}, NewLogsCommand)
		c.SetArgs(append([]string{"--root", root, "logs", "scale"}, row.args...))
		var piped bytes.Buffer
		screen := cmdtest.NewTerminal(t, 200, 50)
		if c.SetOut(&piped); row.terminal {
			c.SetOut(screen.Other)
		}
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := piped.String()
		if row.terminal {
			screen.Sees("end", 0)
			got = screen.Text()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
		if row.want != evil && strings.ContainsAny(got, "\x1b\a\b\x7f\u009b\u202e") {
			t.Errorf("%s: the terminal gets %q", name, got)
		}
	}
}
