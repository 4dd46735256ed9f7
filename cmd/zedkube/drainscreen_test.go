package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

// screenNow is when the screens of these tests are drawn.
var screenNow = time.Date(2026, 11, 20, 14, 3, 12, 0, time.UTC)

func ago(d time.Duration) time.Time { return screenNow.Add(-d) }

// emptying is a drain in the middle of everything.
func emptying() drainRecord {
	r := drainRecord{
		Node: "node-2", ReadAt: screenNow, Agent: agentLife{Runs: true, Seen: ago(3 * time.Second)}, WrittenAt: ago(time.Second),
		Status: &types.NodeDrainStatus{Status: types.DrainRetrying, RequestedBy: types.DrainRequesterDeviceOp},
		Progress: &types.NodeDrainProgress{
			Phase: types.PhaseEmptying, Reason: "1 pod will not go by itself: eve-kube-app/cam-0; waits for 1 pod: eve-kube-app/plc-0; 3 more in the way", Since: ago(130 * time.Second),
			Requesters: []string{"DEVICEOP", "OPERATOR"}, Attempt: 2, Attempts: 5,
			Started: ago(5 * time.Hour), Deadline: ago(-19 * time.Hour),
			Pods: types.DrainPods{Total: 30, Evicted: 24, Terminating: 4, Waiting: 2},
			Blockers: []types.DrainBlocker{
				{
					Pod: "eve-kube-app/cam-0", Node: "node-2", Since: ago(4 * time.Hour), Cause: "budget", Outlook: types.OutlookNever,
					Why:    "PodDisruptionBudget eve-kube-app/cam wants 1 of 1 pods healthy and allows 0 disruptions",
					Remedy: "kubectl -n eve-kube-app edit pdb cam, or run a second replica",
				},
				{
					Pod: "eve-kube-app/plc-0", Node: "node-2", Since: ago(20 * time.Second), Cause: "grace", Outlook: types.OutlookSlow,
					Why: "it is given 60 s to end",
				},
			},
			BlockersOmitted: 3,
			Volumes: []types.DrainVolume{{
				Name: "pvc-4711", Claim: "eve-kube-app/cam-data", Since: ago(time.Minute), Why: "Its last healthy replica is on this node. One is being rebuilt on node node-3, 42 %.", Replicas: 3, Healthy: 1,
				LastHere: true, Rebuilding: "node-3", Percent: 42, ETA: 200, Outlook: types.OutlookSlow,
			}},
			Stranded: []string{"eve-kube-app/dongle"},
			Lock:     types.DrainLockView{Holder: "node-2", Mine: true, Since: ago(5 * time.Hour)}, Cordon: "zedkube",
		},
	}
	r.Advice = adviseOn(r, options{}.paths())
	return r
}

func screens() map[string][]string {
	advised := func(r drainRecord) drainRecord {
		r.Advice = adviseOn(r, options{}.paths())
		return r
	}
	of := func(p types.NodeDrainProgress, status types.DrainStatus) drainRecord {
		return advised(drainRecord{
			Node: "node-2", ReadAt: screenNow, Agent: agentLife{Runs: true}, Progress: &p,
			Status: &types.NodeDrainStatus{Status: status, RequestedBy: types.DrainRequesterDeviceOp},
		})
	}
	dead := emptying()
	dead.Agent = agentLife{Why: "process 4711 is gone"}
	ended := func(phase types.DrainPhase, reason, cordon string) types.NodeDrainProgress {
		return types.NodeDrainProgress{
			Phase: phase, Reason: reason, Since: ago(time.Minute), Requesters: []string{"DEVICEOP"}, Attempt: 1, Attempts: 5,
			Started: ago(time.Hour), Deadline: ago(-23 * time.Hour), Ended: ago(time.Minute), Pods: types.DrainPods{Total: 3, Evicted: 3}, Cordon: cordon,
		}
	}
	gates := types.NodeDrainProgress{
		Phase: types.PhaseGates, Reason: "waits for the drain lock", Since: ago(90 * time.Second), Requesters: []string{"UPDATE"}, Attempts: 5,
		Started: ago(2 * time.Minute), Deadline: ago(-24 * time.Hour),
		Lock:   types.DrainLockView{Holder: "node-1", Since: ago(50 * time.Hour), Waits: "node node-1, which was drained, is not Ready again"},
		Quorum: "without this node 1 of 3 etcd members would be Ready, which is no quorum: node-1 is not",
	}
	return map[string][]string{
		"idle":          drainLines(of(types.NodeDrainProgress{Phase: types.PhaseIdle, Cordon: "kept"}, types.DrainNotRequested), 100, false),
		"gates":         drainLines(of(gates, types.DrainStarting), 100, false),
		"emptying":      drainLines(emptying(), 100, false),
		"emptying-50":   drainLines(emptying(), 50, false),
		"emptying-dead": drainLines(dead, 100, false),
		"complete":      drainLines(of(ended(types.PhaseComplete, "the node is empty", "zedkube"), types.DrainComplete), 100, false),
		"notempty":      drainLines(of(ended(types.PhaseNotEmpty, "2 pods are left after 24h0m0s", ""), types.DrainFailedDrain), 100, false),
		"left":          drainLines(of(types.NodeDrainProgress{Phase: types.PhaseIdle, Left: true}, types.DrainNotSupported), 100, false),
		"nothing":       drainLines(advised(drainRecord{ReadAt: screenNow, Agent: agentLife{Why: "it has no pid file /run/zedkube.pid"}}), 100, false),
		"plan":          planLines(foreseen(), 100, false),
		"plan-clear":    planLines(drain.Forecast{Node: "node-2", Made: screenNow, Verdict: "nothing is in the way: 0 pods would go", Peers: []string{"node-1"}, Evicts: true}, 100, false),
	}
}

func foreseen() drain.Forecast {
	p := *emptying().Progress
	return drain.Forecast{
		Node: "node-2", Made: screenNow, Verdict: "it would wait for the drain lock: node node-1, which was drained, is not Ready again", Outlook: types.OutlookSlow,
		Lock:  types.DrainLockView{Holder: "node-1", Since: ago(time.Hour), Waits: "node node-1, which was drained, is not Ready again"},
		Peers: []string{"node-1", "node-3"}, Evicts: true, Parallel: 8,
		Pods: []drain.ForecastPod{
			{Pod: "eve-kube-app/cam-0", Refused: "refused by a PodDisruptionBudget"}, {Pod: "eve-kube-app/plc-0"},
		},
		Blockers: p.Blockers, Volumes: p.Volumes, Stranded: p.Stranded,
	}
}

// TestScreens holds what people see: go test ./cmd/zedkube -run Screens -update
// writes it anew.
func TestScreens(t *testing.T) {
	for name, lines := range screens() {
		file := filepath.Join("testdata/screens", name+".txt")
		got := strings.Join(lines, "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s: want -, got +\n%s", name, d)
		}
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
		"14:03:10Z (2s ago)":                       ago(2 * time.Second),
		"14:05:12Z (in 2m0s)":                      ago(-2 * time.Minute),
		"2026-11-19 14:03:12Z (24h0m ago)":         ago(24 * time.Hour),
		"2026-11-13 13:03:12Z (7d1h ago)":          ago(7*24*time.Hour + time.Hour),
		"at an unknown time":                       {},
		"1885-11-20 00:00:00Z (over 10 years ago)": time.Date(1885, 11, 20, 0, 0, 0, 0, time.UTC),
		"9999-12-31 00:00:00Z (in over 10 years)":  time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got := stamp(at, screenNow); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
