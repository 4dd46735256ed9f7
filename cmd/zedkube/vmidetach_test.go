package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	detachApp    = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	detachDomain = detachApp + ".1.1"
)

// detachStage is a device whose agent is played.
type detachStage struct {
	*testing.T
	root     string
	requests *pubsub.Subscription[types.AppDetachRequest]
	repairs  *pubsub.Publication[types.AppRepairStatus]
	heard    chan types.AppDetachRequest

	mu       sync.Mutex
	out, err bytes.Buffer
}

// detachWith runs an agent that answers each request with what it is told to say,
// in this order.
func detachWith(t *testing.T, say ...types.AppRepairStatus) *detachStage {
	s := &detachStage{T: t, root: t.TempDir(), heard: make(chan types.AppDetachRequest, 10)}
	bus := pubsub.NewBus(s.root, silent())
	s.requests = pubsub.NewSubscription[types.AppDetachRequest](bus, commandAgent)
	s.repairs = pubsub.NewPublication[types.AppRepairStatus](bus, self)
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	bell := make(chan struct{}, 1)
	s.requests.Notify(bell)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { bus.Run(ctx) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-bell:
			}
			if r, ok := s.requests.Get(detachApp); ok {
				s.heard <- r
				for _, status := range say {
					status.Heard = r.ID
					s.says(status)
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

func (s *detachStage) says(status types.AppRepairStatus) {
	if err := s.repairs.Publish(detachApp, status); err != nil {
		s.Error(err)
	}
}

// Write collects the command's output, which the stage may read meanwhile.
func (s *detachStage) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// run runs the command with these words.
func (s *detachStage) run(ctx context.Context, args ...string) (int, error) {
	c := newCommand()
	c.SetArgs(append([]string{"--root", s.root, "vmiDetach"}, args...))
	c.SetOut(s)
	c.SetErr(&s.err)
	err := c.ExecuteContext(ctx)
	return exitCode(err), err
}

var detachStamp = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ `)

// printed is the output without the times, which every line has.
func (s *detachStage) printed() string {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutTimes(s.T, s.out.String())
}

func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	if lines, times := strings.Count(text, "\n"), len(detachStamp.FindAllString(text, -1)); lines != times {
		t.Errorf("%d lines with %d times: %s", lines, times, text)
	}
	return detachStamp.ReplaceAllString(text, "")
}

// logFile is what the log file holds.
func (s *detachStage) logFile() string {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.root, "persist/kubelog/detach.log"))
	if err != nil {
		s.Error(err)
	}
	return withoutTimes(s.T, string(content))
}

// lies are the requests that lie there for the agent.
func (s *detachStage) lies() []string {
	files, _ := filepath.Glob(filepath.Join(s.root, "run", commandAgent, "AppDetachRequest", "*.json"))
	return files
}

func stepAt(second int, text, failed string) types.RepairStep {
	return types.RepairStep{At: time.Date(2026, 5, 3, 6, 41, second, 0, time.UTC), Act: types.ActFailover, Step: text, Failed: failed}
}

// detachEnds are the ways in which an agent ends with a request.
var detachEnds = map[string]struct {
	say  []types.AppRepairStatus
	code int
	out  string // after what was asked
	err  string
}{
	"done": {
		say: []types.AppRepairStatus{
			{Phase: types.RepairWaits, Reason: "node n1 repairs the cluster"},
			{Phase: types.RepairActs, Reason: "the node is gone", Steps: []types.RepairStep{stepAt(1, "fenced node n3", "")}},
			{Phase: types.RepairWell, Node: "n2", Steps: []types.RepairStep{stepAt(1, "fenced node n3", ""), stepAt(2, "deleted the pod", "")}},
		},
		out: "step: fenced node n3\nstep: deleted the pod\ndone: the application is on node n2\n",
	},
	"a step fails and is taken again": {
		say: []types.AppRepairStatus{
			{Phase: types.RepairActs, Steps: []types.RepairStep{stepAt(1, "delete the pod", "no answer")}},
			{Phase: types.RepairWell, Node: "n2", Steps: []types.RepairStep{stepAt(1, "delete the pod", "no answer"), stepAt(2, "delete the pod", "")}},
		},
		out: "step: delete the pod: failed: no answer\nstep: delete the pod\ndone: the application is on node n2\n",
	},
	"refused": {
		say:  []types.AppRepairStatus{{Phase: types.RepairRefused, Reason: "volume pvc-1 has no healthy replica", Evidence: []string{"n3 is\x1b[2J gone"}}},
		code: exitDetachRefused, out: "evidence: n3 is?[2J gone\n", err: "refused: volume pvc-1 has no healthy replica",
	},
	"given up": {
		say:  []types.AppRepairStatus{{Phase: types.RepairGaveUp, Reason: "it did not help"}},
		code: exitDetachRefused, err: "given up: it did not help",
	},
}

func TestVMIDetachTellsWhatTheAgentDoesUntilItEnds(t *testing.T) {
	for name, c := range detachEnds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := detachWith(t, c.say...)
			code, err := s.run(t.Context(), "n3", detachDomain)
			if code != c.code || c.err != "" && err.Error() != c.err {
				t.Errorf("exit code %d: %v", code, err)
			}
			asked := "asked: to let application " + detachDomain + " go from node n3\n"
			out := regexp.MustCompile(`(?m)^(waits|acts).*\n`).ReplaceAllString(s.printed(), "") // a phase may be too short to be seen
			if d := cmp.Diff(asked+c.out, out); d != "" {
				t.Error("want -, got +\n" + d)
			}
			want := s.printed()
			if c.err != "" {
				want += "ended: " + c.err + "\n"
			}
			if d := cmp.Diff(want, s.logFile()); d != "" {
				t.Error("log: want -, got +\n" + d)
			}
			if got := s.lies(); len(got) != 0 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestVMIDetachAsksForWhatItWasTold(t *testing.T) {
	t.Parallel()
	s := detachWith(t, types.AppRepairStatus{Phase: types.RepairRefused})
	before := time.Now().Add(-time.Second)
	for _, app := range []string{detachDomain, detachApp} {
		if code, _ := s.run(t.Context(), "--force", "press-line-3.plant", app); code != exitDetachRefused {
			t.Errorf("exit code %d", code)
		}
		r := <-s.heard
		if r.Node != "press-line-3.plant" || r.AppDomain != app || !r.Force || r.Asked.Before(before) {
			t.Errorf("asked for %+v", r)
		}
	}
	if n := strings.Count(s.logFile(), "although its storage is not proved redundant\n"); n != 2 {
		t.Errorf("the log does not say that it was forced: %s", s.logFile())
	}
}

func TestVMIDetachHeedsTheAnswerToItsOwnRequestAlone(t *testing.T) {
	t.Parallel()
	old := []types.RepairStep{stepAt(1, "an old step", "")}
	s := detachWith(t, types.AppRepairStatus{Phase: types.RepairWell, Node: "n2", Steps: append(old, stepAt(2, "a new step", ""))})
	s.says(types.AppRepairStatus{Phase: types.RepairRefused, Reason: "of the failover before", Steps: old})
	if code, err := s.run(t.Context(), "n3", detachDomain); code != 0 {
		t.Errorf("exit code %d: %v", code, err)
	}
	if out := s.printed(); strings.Contains(out, "old") || !strings.Contains(out, "step: a new step\n") {
		t.Errorf("printed %s", out)
	}
}

func TestVMIDetachOfAnApplicationThatIsWellSaysSoAfterAWhile(t *testing.T) {
	t.Parallel()
	s := detachWith(t, types.AppRepairStatus{Phase: types.RepairWell})
	p := options{root: s.root}.paths()
	d := detaching{paths: p, key: detachApp, settle: 50 * time.Millisecond, log: openDetachLog(p, s, &s.err)}
	defer d.log.close()
	if err := d.run(t.Context()); err != nil {
		t.Error(err)
	}
	if out := s.printed(); !strings.HasSuffix(out, "done: nothing was to be done\n") {
		t.Errorf("printed %s", out)
	}
}

func TestVMIDetachTakesItsRequestBackWhenTheTimeIsUpOrItIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout string
		code    int
	}{"the time is up": {"300ms", exitDetachTimeout}, "interrupted": {"0", exitUsage}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := detachWith(t, types.AppRepairStatus{Phase: types.RepairWaits, Reason: "n2 has not looked often enough"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-s.heard
				if len(s.lies()) != 1 {
					t.Errorf("no request lies there: %v", s.lies())
				}
				if c.timeout == "0" {
					cancel()
				}
			}()
			if code, err := s.run(ctx, "--timeout", c.timeout, "n3", detachDomain); code != c.code || !strings.Contains(err.Error(), "nothing is requested any more") {
				t.Errorf("exit code %d: %v", code, err)
			}
			if len(s.lies()) != 0 {
				t.Errorf("left behind: %v", s.lies())
			}
		})
	}
}

func TestVMIDetachLeavesTheRequestOfALaterCommand(t *testing.T) {
	t.Parallel()
	s := detachWith(t)
	first := make(chan int)
	go func() {
		code, _ := s.run(t.Context(), "--timeout", "500ms", "n3", detachDomain)
		first <- code
	}()
	<-s.heard
	later := &detachStage{T: t, root: s.root}
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan int)
	go func() {
		code, _ := later.run(ctx, "n4", detachDomain)
		second <- code
	}()
	if r := <-s.heard; r.Node != "n4" {
		t.Fatalf("heard %+v", r)
	}
	if code := <-first; code != exitDetachTimeout || len(s.lies()) != 1 {
		t.Errorf("exit code %d, left: %v", code, s.lies())
	}
	cancel()
	if code := <-second; code != exitUsage || len(s.lies()) != 0 {
		t.Errorf("exit code %d, left: %v", code, s.lies())
	}
	if !strings.Contains(later.printed(), "for node n3, is replaced\n") {
		t.Errorf("it does not say what it replaces: %s", later.printed())
	}
}

func TestVMIDetachWithoutAnAgentRequestsNothing(t *testing.T) {
	t.Parallel()
	s := &detachStage{T: t, root: t.TempDir()}
	began := time.Now()
	if code, err := s.run(t.Context(), "n3", detachDomain); code != exitNotPublished || len(s.lies()) != 0 {
		t.Errorf("exit code %d: %v; left: %v", code, err, s.lies())
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("that took %s", took)
	}
	if !strings.Contains(s.logFile(), "ended: no agent answers") {
		t.Errorf("logged %s", s.logFile())
	}
}

func TestVMIDetachRefusesWordsThatNameNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"n3"},
		{"n3", detachDomain, "more"},
		{"", detachDomain},
		{"N3", detachDomain},
		{"../n3", detachDomain},
		{"n3\n", detachDomain},
		{"-", detachDomain},
		{strings.Repeat("n", 254), detachDomain},
		{"n3", ""},
		{"n3", "camera"},
		{"n3", detachApp + "/.."},
		{"n3", "../" + detachApp},
		{"n3", "." + detachApp},
		{"n3", "{" + detachApp + "}"},
		{"n3", "00000000-0000-0000-0000-000000000000.1.1"},
		{detachDomain, "n3"},
		{"--timeout", "-1s", "n3", detachDomain},
		{"--timeout", "soon", "n3", detachDomain},
	} {
		s := &detachStage{T: t, root: t.TempDir()}
		if code, err := s.run(t.Context(), args...); code != exitUsage {
			t.Errorf("%q: exit code %d: %v", args, code, err)
		}
		if files, _ := os.ReadDir(s.root); len(files) != 0 {
			t.Errorf("%q left %v", args, files)
		}
	}
}

func TestVMIDetachGoesOnWhereItsLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := detachWith(t, types.AppRepairStatus{Phase: types.RepairRefused, Reason: "no"})
	if err := os.MkdirAll(filepath.Join(s.root, "persist"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.root, "persist/kubelog"), nil, 0o600); err != nil { // in the folder's place
		t.Fatal(err)
	}
	if code, err := s.run(t.Context(), "n3", detachDomain); code != exitDetachRefused {
		t.Errorf("exit code %d: %v", code, err)
	}
	if !strings.Contains(s.err.String(), "The log file cannot be written") {
		t.Errorf("it does not say so: %q", s.err.String())
	}
}

// closed is an output that nobody reads any more.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestVMIDetachThatCannotTellAsksForNothing(t *testing.T) {
	t.Parallel()
	s := detachWith(t)
	c := newCommand()
	c.SetArgs([]string{"--root", s.root, "vmiDetach", "n3", detachDomain})
	c.SetOut(closed{})
	if err := c.ExecuteContext(t.Context()); err == nil || len(s.lies()) != 0 {
		t.Errorf("%v, left: %v", err, s.lies())
	}
}
