package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/screen"
)

// TestANewcomerGetsAnAnswerToEveryCommandThatTheDocumentsShow runs what README.md and the documents for
// operators give to be typed, in their order, on the stage that make run KEEP=1 leaves up.
func TestANewcomerGetsAnAnswerToEveryCommandThatTheDocumentsShow(t *testing.T) {
	n := newNewcomer(t)
	n.looksHealthy(t)
	run := 0
	for _, name := range []string{"README.md", "docs/operations.md", "docs/runbook.md", "docs/alerts.md"} {
		for _, line := range n.commands(t, name) {
			if _, not := notRun[line]; not {
				n.left[line] = true
				continue
			}
			run++
			n.types(t, name, line)
		}
	}
	if run < 35 {
		t.Errorf("only %d commands were found", run)
	}
	for line := range notRun {
		if !n.left[line] {
			t.Errorf("no document has %q any longer", line)
		}
	}
}

// notRun are the commands that are not run here, each with its reason.
var notRun = map[string]string{
	"zedkube --root /path/to/copy status":                       "the directory is the reader's",
	"zedkube kubeconfig revoke zedkube-kubeconfig-x7k2p":        "the name is that of another kubeconfig",
	"zedkube workloads disable --reason 'new switch in hall 4'": "cmd/zedkube/testdata/disabled.txtar",
	"zedkube workloads status --watch":                          "cmd/zedkube/testdata/disabled.txtar",
	"zedkube workloads enable":                                  "cmd/zedkube/testdata/disabled.txtar",
	"make run":                                                  "it is what this test is on",
	"make run KEEP=1":                                           "it is what this test is on",
	"make test":                                                 "it is what this test is a part of",
}

// refusals are the commands that a healthy node refuses, with what they then end with.
var refusals = map[string]int{
	"zedkube k3s certs reset":                   3, // nothing expires soon
	"jq . /run/zedkube/AppConsoleStatus/*.json": 2, // no application is a virtual machine
}

// newcomer is somebody with a terminal beside the stage, in a directory like that of the repository.
type newcomer struct {
	*stage
	dir  string
	left map[string]bool // of notRun, those that were met
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	dir, err := os.MkdirTemp("", "demo-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	program := agent.Build(t)
	quiet, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{dir: dir, left: map[string]bool{}}
	if n.stage, err = begin(t.Context(), screen.New(quiet), nil, options{program: []string{program}, dir: filepath.Join(dir, "d")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.end()
		_ = quiet.Close()
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	if err := n.tell(t.Context(), n.beginning(), 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if on, err := n.holdBack(t.Context()); err != nil || n.nodes[on].Name != "node-1" {
		t.Fatalf("README.md drains node-1, and %s could be watched: %v", n.nodes[on].Name, err)
	}
	err = errors.Join(os.Mkdir(bin, 0o755), os.Symlink(program, filepath.Join(bin, "zedkube")), os.Symlink(filepath.Join(dir, "d"), filepath.Join(bin, "devices")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// looksHealthy waits until no node finds fault with itself, as a stranger expects of a demo.
func (n *newcomer) looksHealthy(t *testing.T) {
	t.Helper()
	for _, node := range n.nodes {
		say := fmt.Sprintf("bin/zedkube --root bin/devices/%s status --check && bin/zedkube --root bin/devices/%[1]s doctor", node.Name)
		deadline := time.Now().Add(2 * time.Minute)
		for {
			out, err := n.shell(t, say)
			if err == nil && !strings.Contains(out, "WARN") {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: %v:\n%s", say, err, out)
				break
			}
			time.Sleep(time.Second)
		}
	}
}

func (n *newcomer) shell(t *testing.T, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "timeout", "60", "bash", "-c", line)
	cmd.Dir = n.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var (
	typed   = regexp.MustCompile(`^    (?:bin/)?((?:zedkube|curl|jq|make run|make test|\(umask)\b.*|\(umask.*)$`)
	remark  = regexp.MustCompile(`\s{2,}# .*$`)
	choices = regexp.MustCompile(`[a-z-]\|[a-z-]|\[|\b(?:APP|NODE|HOST|TEXT)\b`) // of usage, not to be typed
)

// commands are the lines of a document that are to be typed, in order.
func (n *newcomer) commands(t *testing.T, name string) (lines []string) {
	t.Helper()
	content, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "\\\n ", "")
	inUsage := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		inUsage = strings.HasPrefix(line, "    ") && (inUsage || choices.MatchString(line) && !strings.Contains(line, "jq"))
		m := typed.FindStringSubmatch(line)
		if m == nil || inUsage || strings.Contains(line, "$S") { // those are cmd/zedkube/curl_test.go's
			continue
		}
		lines = append(lines, remark.ReplaceAllString(m[1], ""))
	}
	return lines
}

// types runs a line as somebody on node-2 does, unless it names a node.
func (n *newcomer) types(t *testing.T, name, line string) {
	t.Helper()
	on := n.drained()
	root := "bin/devices/" + on.Name
	own := strings.Replace(line, "zedkube ", "bin/zedkube ", 1)
	if !strings.Contains(line, "--root") {
		own = strings.Replace(line, "zedkube ", "bin/zedkube --root "+root+" ", 1)
	}
	own = strings.NewReplacer(
		" /run/", " "+root+"/run/", " /persist/", " "+root+"/persist/", "127.0.0.1:12347", fmt.Sprintf("127.0.0.1:%d", n.ports[1]),
		"http://ADDRESS:12346", "http://"+on.IP.String()+":12346", " join wait", fmt.Sprintf(" join wait --api-port %d", on.APIPort),
		" join plan", fmt.Sprintf(" join plan --api-port %d", on.APIPort),
	).Replace(own)
	out, err := n.shell(t, own)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	if err != nil || code != refusals[line] || strings.Contains(out, "not allowed") || strings.Contains(out, "dial ") {
		t.Errorf("%s: %s\ntyped as %s: %v, exit code %d:\n%s", name, line, own, err, code, out)
	}
	if out == "" && strings.HasPrefix(line, "zedkube") {
		t.Errorf("%s: %s\nprints nothing", name, line)
	}
}
