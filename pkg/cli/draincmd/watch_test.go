package draincmd

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// asData is -o json, or nothing.
func asData(json bool) *terminal.Outputs {
	var o terminal.Outputs
	if json {
		_ = cmdtest.Output("json", o.Flag, o.Parse)
	}
	return &o
}

// shows plays a drain's records, one each second, to a watcher and returns
// what it printed and its exit code.
func shows(ctx context.Context, live, asJSON bool, records ...drainRecord) (string, int) {
	var out bytes.Buffer
	i := -1
	look := watch(func() drainRecord {
		i = min(i+1, len(records)-1)
		return records[i]
	})
	err := asData(asJSON).Follow(ctx, terminal.Terminal{Writer: &out, Fd: -1, Live: live}, terminal.Watch{Look: look, Every: terminal.WatchEvery})
	code := terminal.ExitCode(err)
	return out.String(), code
}

func inPhase(phase types.DrainPhase, evicted int) drainRecord {
	r := emptying()
	p := *r.Progress
	p.Phase, p.Pods.Evicted, p.Ended, p.Reason = phase, evicted, cmdtest.Now, "for a reason"
	r.Progress = &p
	return r
}

func TestWatchEndsWithTheDrain(t *testing.T) {
	under := inPhase(types.PhaseEmptying, 1)
	anew := inPhase(types.PhaseNotEmpty, 1)
	anew.Request = &types.NodeDrainRequest{RequestedAt: cmdtest.Now.Add(time.Second)}
	idle := inPhase(types.PhaseIdle, 0)
	again := inPhase(types.PhaseIdle, 0)
	again.Request = &types.NodeDrainRequest{RequestedAt: cmdtest.Now}
	left := inPhase(types.PhaseIdle, 0)
	left.Progress.Left = true
	heard := inPhase(types.PhaseIdle, 0)
	heard.left = true
	only := func(s types.DrainStatus) drainRecord {
		return drainRecord{ReadAt: cmdtest.Now, Agent: device.AgentLife{Runs: true}, Status: &types.NodeDrainStatus{Status: s}}
	}
	for name, c := range map[string]struct {
		records []drainRecord
		code    int
	}{
		"complete":                             {[]drainRecord{under, under, inPhase(types.PhaseComplete, 30)}, 0},
		"complete already":                     {[]drainRecord{inPhase(types.PhaseComplete, 30)}, 0},
		"not empty":                            {[]drainRecord{under, inPhase(types.PhaseNotEmpty, 2)}, 3},
		"no cordon":                            {[]drainRecord{under, inPhase(types.PhaseNoCordon, 2)}, 3},
		"failed, asked anew, complete":         {[]drainRecord{anew, under, inPhase(types.PhaseComplete, 30)}, 0},
		"taken back":                           {[]drainRecord{under, under, idle}, 3},
		"idle, then it begins":                 {[]drainRecord{idle, idle, under, inPhase(types.PhaseComplete, 30)}, 0},
		"taken back, but asked for again":      {[]drainRecord{under, again, under, inPhase(types.PhaseComplete, 30)}, 0},
		"the node has left":                    {[]drainRecord{under, left}, 0},
		"the node has left already":            {[]drainRecord{left}, 0},
		"it left between two looks":            {[]drainRecord{under, heard}, 0},
		"it left before, then a drain begins":  {[]drainRecord{heard, under, inPhase(types.PhaseComplete, 30)}, 0},
		"no record at first":                   {[]drainRecord{{ReadAt: cmdtest.Now}, under, inPhase(types.PhaseComplete, 30)}, 0},
		"an agent without a record: complete":  {[]drainRecord{only(types.DrainRetrying), only(types.DrainComplete)}, 0},
		"an agent without a record: no cordon": {[]drainRecord{only(types.DrainRetrying), only(types.DrainFailedCordon)}, 3},
		"an agent without a record: failed":    {[]drainRecord{only(types.DrainFailedDrain)}, 3},
	} {
		for _, live := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if _, code := shows(t.Context(), live, false, c.records...); code != c.code {
					t.Errorf("%s: exit code %d, want %d", name, code, c.code)
				}
				if took, want := time.Since(began), time.Duration(len(c.records)-1)*time.Second; took != want {
					t.Errorf("%s: took %s, want %s", name, took, want)
				}
			})
		}
	}
}

func TestInterruptedWatchIsNotADrainThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		out, code := shows(ctx, true, false, inPhase(types.PhaseEmptying, 1))
		if code != terminal.ExitUsage {
			t.Errorf("exit code %d", code)
		}
		if strings.Count(out, "\x1b[?1049h") != 1 || strings.Count(out, "\x1b[?1049l") != 1 || !strings.Contains(out, "\x1b[?25h") {
			t.Errorf("the terminal is not as it was: %q", out)
		}
	})
}

func TestWithoutATerminalThereIsOneLineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := inPhase(types.PhaseEmptying, 1), inPhase(types.PhaseEmptying, 2)
		out, _ := shows(t.Context(), false, false, one, one, one, two, two, inPhase(types.PhaseComplete, 30))
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], "2 of 30 gone") || !strings.Contains(lines[2], "Complete") {
			t.Errorf("got %q", lines)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("escapes in %q", out)
		}
		out, _ = shows(t.Context(), true, true, one, one, inPhase(types.PhaseComplete, 30))
		if n := strings.Count(out, "\n"); n != 2 || strings.Contains(out, "\x1b") {
			t.Errorf("%d lines of JSON for two changes: %q", n, out)
		}
	})
}

func TestTheLiveScreenFitsTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := inPhase(types.PhaseEmptying, 1)
		for range 60 {
			long.Progress.Blockers = append(long.Progress.Blockers, types.DrainBlocker{Pod: "a/b"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		out, _ := shows(ctx, true, false, long)
		drawn, _, _ := strings.Cut(out, "\x1b[J")
		if n := strings.Count(drawn, "\n"); n != 24-1 {
			t.Errorf("%d lines on a terminal of 24", n)
		}
		if !strings.Contains(drawn, "lines 1 to 22 of 131") {
			t.Errorf("it does not say that there is more: %q", drawn)
		}
	})
}
