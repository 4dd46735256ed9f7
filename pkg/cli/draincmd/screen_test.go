package draincmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// emptying is a drain in the middle of everything.
func emptying() drainRecord {
	r := drainRecord{
		Node: "node-2", ReadAt: cmdtest.Now, Agent: device.AgentLife{Runs: true, Seen: cmdtest.Ago(3 * time.Second)}, WrittenAt: cmdtest.Ago(time.Second),
		Status:   &types.NodeDrainStatus{Status: types.DrainRetrying, RequestedBy: types.DrainRequesterDeviceOp},
		Progress: cmdtest.Emptying(),
	}
	r.Advice = adviseFor(r, device.Options{}.Paths())
	return r
}

func screens() map[string][]string {
	advised := func(r drainRecord) drainRecord {
		r.Advice = adviseFor(r, device.Options{}.Paths())
		return r
	}
	of := func(p types.NodeDrainProgress, status types.DrainStatus) drainRecord {
		return advised(drainRecord{
			Node: "node-2", ReadAt: cmdtest.Now, Agent: device.AgentLife{Runs: true}, Progress: &p,
			Status: &types.NodeDrainStatus{Status: status, RequestedBy: types.DrainRequesterDeviceOp},
		})
	}
	dead := emptying()
	dead.Agent = device.AgentLife{Why: "process 4711 is gone"}
	ended := func(phase types.DrainPhase, reason, cordon string) types.NodeDrainProgress {
		return types.NodeDrainProgress{
			Phase: phase, Reason: reason, Since: cmdtest.Ago(time.Minute), Requesters: []string{"DEVICEOP"}, Attempt: 1, Attempts: 5,
			Started: cmdtest.Ago(time.Hour), Deadline: cmdtest.Ago(-23 * time.Hour), Ended: cmdtest.Ago(time.Minute), Pods: types.DrainPods{Total: 3, Evicted: 3}, Cordon: cordon,
		}
	}
	gates := types.NodeDrainProgress{
		Phase: types.PhaseGates, Reason: "waits for the drain lock", Since: cmdtest.Ago(90 * time.Second), Requesters: []string{"UPDATE"}, Attempts: 5,
		Started: cmdtest.Ago(2 * time.Minute), Deadline: cmdtest.Ago(-24 * time.Hour),
		Lock:   types.DrainLockView{Holder: "node-1", Since: cmdtest.Ago(50 * time.Hour), Waits: "node node-1, which was drained, is not Ready again"},
		Quorum: "without this node 1 of 3 etcd members would be Ready, which is no quorum: node-1 is not",
	}
	ownLock := gates
	ownLock.Quorum, ownLock.Lock = "", types.DrainLockView{Holder: "node-2", Since: cmdtest.Ago(time.Minute), Waits: "node node-2 changes the version of k3s"}
	forced := ended(types.PhaseComplete, "forced by the force file", "zedkube")
	forced.Forced, forced.Pods = true, types.DrainPods{Total: 3, Evicted: 2, Waiting: 1}
	forced.Blockers = emptying().Progress.Blockers[:1]
	forcing := func(ignored string) drainRecord {
		r := of(types.NodeDrainProgress{Phase: types.PhaseIdle}, types.DrainNotSupported)
		r.Force = []overview.ForceFile{{Source: overview.Source{File: types.PathForceDrain}, Says: "NOTSUPPORTED"}}
		if r.Force[0].Ignored = ignored; ignored != "" {
			r.Force[0].Says = ""
		}
		return advised(r)
	}
	return map[string][]string{
		"forced":        drainLines(of(forced, types.DrainComplete), 100, false),
		"force-file":    drainLines(forcing(""), 100, false),
		"force-garbage": drainLines(forcing("parse: invalid character 'g' looking for beginning of value"), 100, false),
		"idle":          drainLines(of(types.NodeDrainProgress{Phase: types.PhaseIdle, Cordon: "kept"}, types.DrainNotRequested), 100, false),
		"gates":         drainLines(of(gates, types.DrainStarting), 100, false),
		"gates-own":     drainLines(of(ownLock, types.DrainStarting), 100, false),
		"emptying":      drainLines(emptying(), 100, false),
		"emptying-50":   drainLines(emptying(), 50, false),
		"emptying-dead": drainLines(dead, 100, false),
		"complete":      drainLines(of(ended(types.PhaseComplete, "the node is empty", "zedkube"), types.DrainComplete), 100, false),
		"notempty":      drainLines(of(ended(types.PhaseNotEmpty, "2 pods are left after 24h0m0s", ""), types.DrainFailedDrain), 100, false),
		"left":          drainLines(of(types.NodeDrainProgress{Phase: types.PhaseIdle, Left: true}, types.DrainNotSupported), 100, false),
		"nothing":       drainLines(advised(drainRecord{ReadAt: cmdtest.Now, Agent: device.AgentLife{Why: "it has no pid file /run/zedkube.pid"}}), 100, false),
		"plan":          planLines(foreseen(), 100, false),
		"plan-80":       planLines(foreseen(), 80, false),
		"plan-120":      planLines(foreseen(), 120, false),
		"plan-clear":    planLines(drain.Forecast{Node: "node-2", Made: cmdtest.Now, Verdict: "nothing is in the way: 0 pods would go", Peers: []string{"node-1"}, Evicts: true}, 100, false),
	}
}

func foreseen() drain.Forecast {
	p := *emptying().Progress
	return drain.Forecast{
		Node: "node-2", Made: cmdtest.Now, Verdict: "it would wait for the drain lock: node node-1, which was drained, is not Ready again", Outlook: types.OutlookSlow,
		Lock:  types.DrainLockView{Holder: "node-1", Since: cmdtest.Ago(time.Hour), Waits: "node node-1, which was drained, is not Ready again"},
		Peers: []string{"node-1", "node-3"}, Evicts: true, Parallel: 8,
		Pods: []drain.ForecastPod{
			{Pod: "eve-kube-app/cam-0", Refused: "refused by a PodDisruptionBudget"}, {Pod: "eve-kube-app/plc-0"},
		},
		Blockers: p.Blockers, Volumes: p.Volumes, Stranded: p.Stranded,
	}
}

// TestScreens holds what people see: go test ./pkg/cli/draincmd -run Screens -update
// writes it anew.
func TestScreens(t *testing.T) {
	for name, lines := range screens() {
		cmdtest.Same(t, filepath.Join("testdata/screens", name+".txt"), strings.Join(lines, "\n")+"\n")
	}
}

func TestColourIsAroundLinesAndChangesNoText(t *testing.T) {
	without, with := drainLines(emptying(), 80, false), drainLines(emptying(), 80, true)
	if len(without) != len(with) {
		t.Fatalf("%d lines without colour, %d with", len(without), len(with))
	}
	coloured := 0
	for i, line := range with {
		text := line
		if strings.HasPrefix(line, "\x1b[") {
			coloured++
			_, text, _ = strings.Cut(strings.TrimSuffix(line, "\x1b[0m"), "m")
		}
		if text != without[i] {
			t.Errorf("line %d: %q became %q", i, without[i], line)
		}
	}
	if coloured == 0 || strings.Contains(strings.Join(without, ""), "\x1b") {
		t.Errorf("%d coloured lines with colour; without: %q", coloured, without)
	}
}

func TestTimesAreShownWithTheirAge(t *testing.T) {
	for want, at := range map[string]time.Time{
		"14:03:10Z (2s ago)":                       cmdtest.Ago(2 * time.Second),
		"14:05:12Z (in 2m0s)":                      cmdtest.Ago(-2 * time.Minute),
		"2026-11-19 14:03:12Z (24h0m ago)":         cmdtest.Ago(24 * time.Hour),
		"2026-11-13 13:03:12Z (7d1h ago)":          cmdtest.Ago(7*24*time.Hour + time.Hour),
		"at an unknown time":                       {},
		"1885-11-20 00:00:00Z (over 10 years ago)": time.Date(1885, 11, 20, 0, 0, 0, 0, time.UTC),
		"9999-12-31 00:00:00Z (in over 10 years)":  time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got := terminal.Stamp(at, cmdtest.Now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheManualShowsTheScreens holds docs/commands.md against the program.
func TestTheManualShowsTheScreens(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"emptying", "plan"} {
		want := strings.ReplaceAll("\n    "+strings.Join(screens()[name], "\n    ")+"\n", "    \n", "\n")
		if !strings.Contains(string(manual), want) {
			t.Errorf("docs/commands.md lacks the screen %s: %q", name, want)
		}
	}
}

func drainLines(r drainRecord, width int, colour bool) []string {
	return terminal.Draw(width, colour, func(s *terminal.Screen) { putDrain(s, r) })
}

func planLines(f drain.Forecast, width int, colour bool) []string {
	return terminal.Draw(width, colour, func(s *terminal.Screen) { putPlan(s, f) })
}

func TestTheStatusOfADrainForK3sLeadsToTheChangeOfK3s(t *testing.T) {
	const line = "zedkube k3s status"
	for name, c := range map[string]struct {
		phase      types.DrainPhase
		requesters []string
		says       string
		not        string
	}{
		"it waits":                   {types.PhaseGates, []string{"K3S"}, line, "zedkube drain cancel"},
		"it runs":                    {types.PhaseEmptying, []string{"K3S"}, line, "zedkube drain cancel"},
		"it is complete":             {types.PhaseComplete, []string{"K3S"}, line, "zedkube drain cancel"},
		"a reboot requested it, too": {types.PhaseEmptying, []string{"DEVICEOP", "K3S"}, line, "zedkube drain cancel"},
		"an operator did, too":       {types.PhaseEmptying, []string{"OPERATOR", "K3S"}, "zedkube drain cancel", line},
		"it failed":                  {types.PhaseNotEmpty, []string{"K3S"}, "zedkube drain plan", line},
		"only a reboot did":          {types.PhaseEmptying, []string{"DEVICEOP"}, "zedkube drain status --watch", line},
	} {
		r := emptying()
		r.Progress.Phase, r.Progress.Requesters = c.phase, c.requesters
		r.Advice = adviseFor(r, device.Options{}.Paths())
		text := strings.Join(drainLines(r, 300, false), "\n")
		if !strings.Contains(text, c.says) || strings.Contains(text, c.not) {
			t.Errorf("%s: the status does not say %q, or says %q\n%s", name, c.says, c.not, text)
		}
		if c.says == line && !strings.Contains(text, "before it begins, zedkube k3s hold ends the drain") {
			t.Errorf("%s: the status does not say how to end the drain\n%s", name, text)
		}
		if !strings.Contains(text, strings.Join(c.requesters, ", ")) {
			t.Errorf("%s: it does not say who requested it\n%s", name, text)
		}
	}
}
