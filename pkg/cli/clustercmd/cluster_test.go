package clustercmd

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func run(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	out, said, err := cmdtest.Run(t.Context(), device.NewRoot(&device.Options{}, NewClusterCommand), args...)
	return out, said, terminal.ExitCode(err)
}

// newDevice is one whose agent published content and runs.
func newDevice(t *testing.T, content string) (root string, paths device.Paths) {
	t.Helper()
	root = t.TempDir()
	paths = device.Options{Root: root}.Paths()
	cmdtest.Lay(t, paths.PersistentFile(device.Self, "ClusterObject"), content)
	cmdtest.Lay(t, paths.PID, strconv.Itoa(os.Getpid()))
	cmdtest.Lay(t, paths.Touch, "")
	return root, paths
}

func sample(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../types/testdata/ClusterObject.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheObjectIsShownToPeopleAndPrograms(t *testing.T) {
	root, _ := newDevice(t, sample(t))
	out, said, code := run(t, "--root", root, "cluster")
	if code != 0 {
		t.Fatalf("%d %s", code, said)
	}
	for _, want := range []string{
		"Cluster press-line\n", "phase       Leaving, since 2026-05-03 06:41:17Z", "CDI         v1.57.1", "wanted      v1.34.4+k3s1",
		"The data of 3 volumes, as of 2026-05-03 06:41:20Z\n", "pvc-7c1 eve-kube-app/camera", "and 2 more", "The cluster ceases to exist with this node",
		"Consent to that was given at 2026-05-03 06:50:00Z.", "Drain: Emptying", "Without the cluster: nothing has answered", "zedkube leave --cancel", "ControlPlaneReady  True",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var want, got types.ClusterObject
	out, _, _ = run(t, "--root", root, "cluster", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || json.Unmarshal([]byte(sample(t)), &want) != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if out, _, _ := run(t, "--root", root, "cluster", "-o", "yaml"); !strings.Contains(out, "kind: Cluster\n") || !strings.Contains(out, "  phase: Leaving\n") {
		t.Errorf("as YAML:\n%s", out)
	}
	if out, _, _ := run(t, "--root", root, "cluster", "-o", `jsonpath={.status.conditions[?(@.type=="ControlPlaneReady")].status}`); out != "True\n" {
		t.Errorf("by an expression: %q", out)
	}
}

func TestWhatADeadAgentPublishedIsShownAsSuch(t *testing.T) {
	root, paths := newDevice(t, sample(t))
	if err := os.Remove(paths.PID); err != nil {
		t.Fatal(err)
	}
	out, said, code := run(t, "--root", root, "cluster")
	if code != terminal.ExitNotPublished || !strings.Contains(out, "Leaving") || !strings.Contains(said, "the agent is not running, this is what it published last") {
		t.Errorf("%d\n%s\n%s", code, out, said)
	}
}

func TestWithoutAnObjectNothingIsShown(t *testing.T) {
	for content, want := range map[string]string{"": "read the cluster", `{"spec":7}`: "read the cluster", "none": "has not published the cluster yet"} {
		root, paths := newDevice(t, content)
		if content == "none" {
			_ = os.Remove(paths.PersistentFile(device.Self, "ClusterObject"))
		}
		if out, said, code := run(t, "--root", root, "cluster"); code != terminal.ExitNotPublished || out != "" || !strings.Contains(said, want) {
			t.Errorf("%q: %d %q %q", content, code, out, said)
		}
	}
	if _, said, code := run(t, "--root", t.TempDir(), "cluster"); code != 1 || !strings.Contains(said, "not the root directory of a device") {
		t.Errorf("%d %s", code, said)
	}
}

func TestNoTextOfTheObjectActsOnTheTerminal(t *testing.T) {
	text := strings.ReplaceAll(sample(t), `"press-line"`, `"a\u001b[2Jb\nc"`)
	for _, name := range []string{"Leaving", "v1.57.1", "pvc-7c1", "ServersReady", "Emptying: ", "nothing has answered", "server", "10.90.7.22", "flannel", "ControlPlaneReady", "This node is"} {
		text = strings.ReplaceAll(text, name, `\u001b[31m\u0007`+name)
	}
	root, _ := newDevice(t, text)
	for _, form := range []string{"table", "yaml", "json"} {
		if out, said, code := run(t, "--root", root, "cluster", "-o", form); code != 0 || strings.ContainsAny(out+said, "\x1b\a") {
			t.Errorf("%s: %d %q", form, code, out)
		}
	}
}
