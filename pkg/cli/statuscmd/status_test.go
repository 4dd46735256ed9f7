package statuscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func TestStatusIsReadBackFromItsJSON(t *testing.T) {
	var b bytes.Buffer
	var o terminal.Outputs
	if err := errors.Join(cmdtest.Output("json", o.Flag, o.Parse), o.Encode(&b, cmdtest.Troubled(), "  ")); err != nil {
		t.Fatal(err)
	}
	var back overview.Overview
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cmdtest.Troubled(), back); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestACheckFindsProblems(t *testing.T) {
	o := cmdtest.Troubled()
	if err := viewStatus(o, true).Err; terminal.ExitCode(err) != terminal.ExitFound {
		t.Errorf("a node in trouble ends with %v", err)
	}
	if err := viewStatus(o, false).Err; err != nil {
		t.Errorf("without --check it ends with %v", err)
	}
	o.Problems = nil
	if err := viewStatus(o, true).Err; err != nil {
		t.Errorf("a node that is well ends with %v", err)
	}
}

func TestStatusReadsADeviceThroughItsFlags(t *testing.T) {
	root := t.TempDir()
	var out terminal.Outputs
	if err := cmdtest.Output("jsonpath={.Problems[*].Name}", out.Flag, out.Parse); err != nil {
		t.Fatal(err)
	}
	if err := device.CheckDevice(device.Options{Root: root}.Paths()); err == nil {
		t.Error("an empty directory is taken for a device")
	}
	if err := os.MkdirAll(filepath.Join(root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err := out.Show(t.Context(), terminal.Terminal{Writer: &b, Fd: -1}, time.Second, func(context.Context) terminal.View {
		o := health.Read(root, cmdtest.Now)
		o.Disks = nil // the disk of the machine that runs the test may be full
		o.Problems = health.Problems(o)
		return viewStatus(o, true)
	})
	if terminal.ExitCode(err) != terminal.ExitFound || b.String() != "AgentDead NoKubeconfig\n" {
		t.Errorf("printed %q, ended with %v", b.String(), err)
	}
}

func views() map[string]string {
	o := cmdtest.Troubled()
	well := overview.Overview{ReadAt: cmdtest.Now, Agent: overview.Agent{Runs: true, Seen: cmdtest.Now}, Node: overview.Node{NoCluster: "This device's hypervisor is kvm, which does not run Kubernetes."}}
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	return map[string]string{
		"status":        text(terminal.Draw(80, false, func(s *terminal.Screen) { putStatus(s, o) })),
		"status-pipe":   text(terminal.Draw(cmdtest.Pipe, false, func(s *terminal.Screen) { putStatus(s, o) })),
		"status-colour": text(terminal.Draw(80, true, func(s *terminal.Screen) { putStatus(s, o) })),
		"status-kvm":    text(terminal.Draw(80, false, func(s *terminal.Screen) { putStatus(s, well) })),
	}
}

// TestViews holds what people see: go test ./pkg/cli/statuscmd -run Views -update
// writes it anew.
func TestViews(t *testing.T) {
	all := views()
	var b bytes.Buffer
	var o terminal.Outputs
	if err := errors.Join(cmdtest.Output("json", o.Flag, o.Parse), o.Encode(&b, cmdtest.Troubled(), "  ")); err != nil {
		t.Fatal(err)
	}
	all["status-json"] = b.String()
	for name, got := range all {
		cmdtest.SameView(t, name, got)
	}
}

func TestStatusShowsWhatChangesK3s(t *testing.T) {
	o := cmdtest.Troubled()
	o.K3s = []string{"Waits: Node n2 is not Ready.", "EVE updates component longhorn: \x1b[31min_progress."}
	got := strings.Join(terminal.Draw(200, false, func(s *terminal.Screen) { putStatus(s, o) }), "\n")
	for _, want := range []string{"Waits: Node n2 is not Ready.", "EVE updates component longhorn: "} {
		if !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
			t.Errorf("there is no %q, or a control character, in\n%s", want, got)
		}
	}
}

func TestStatusShowsThatWorkloadsAreDisabled(t *testing.T) {
	for phase, want := range map[types.WorkloadsPhase]string{
		"":                       "",
		types.WorkloadsEnabled:   "",
		types.WorkloadsDisabled:  "60m  Disabled: new switch",
		types.WorkloadsDisabling: "60m  Disabling: new switch",
		types.WorkloadsEnabling:  "60m  Enabling: new switch",
	} {
		o := cmdtest.Troubled()
		o.Workloads = types.WorkloadsStatus{Phase: phase, Since: cmdtest.Ago(time.Hour), Reason: "new switch"}
		got := ""
		for _, line := range terminal.Draw(200, false, func(s *terminal.Screen) { putStatus(s, o) }) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "workloads "); ok {
				got += strings.TrimSpace(text)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
}
