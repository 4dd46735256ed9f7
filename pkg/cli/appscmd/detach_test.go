package appscmd

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

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
		code: terminal.ExitDetachRefused, out: "evidence: n3 is?[2J gone\n", err: "refused: volume pvc-1 has no healthy replica",
	},
	"given up": {
		say:  []types.AppRepairStatus{{Phase: types.RepairGaveUp, Reason: "it did not help"}},
		code: terminal.ExitDetachRefused, err: "given up: it did not help",
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
			asked := "requested: detach application " + detachDomain + " from node n3\n"
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
		if code, _ := s.run(t.Context(), "--force", "press-line-3.plant", app); code != terminal.ExitDetachRefused {
			t.Errorf("exit code %d", code)
		}
		r := <-s.heard
		if r.Node != "press-line-3.plant" || r.AppDomain != app || !r.Force || r.Asked.Before(before) || r.Uptime <= 0 || r.Uptime > device.Uptime() {
			t.Errorf("asked for %+v", r)
		}
	}
	if n := strings.Count(s.logFile(), "even if its storage is not proved to be redundant\n"); n != 2 {
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
	p := device.Options{Root: s.root}.Paths()
	request := types.AppDetachRequest{Node: "n3", AppDomain: detachApp, ID: uuid.New()}
	d := detaching{paths: p, request: request, key: detachApp, settle: 50 * time.Millisecond, log: openDetachLog(p, s, &terminal.Outputs{}, &s.err)}
	defer d.log.close()
	if err := d.run(t.Context()); err != nil {
		t.Error(err)
	}
	if out := s.printed(); !strings.HasSuffix(out, "done: there was nothing to do\n") {
		t.Errorf("printed %s", out)
	}
}

func TestVMIDetachTakesItsRequestBackWhenTheTimeIsUpOrItIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout string
		code    int
	}{"timed out": {"300ms", terminal.ExitDetachTimeout}, "interrupted": {"0", terminal.ExitUsage}} {
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
			if code, err := s.run(ctx, "--timeout", c.timeout, "n3", detachDomain); code != c.code || !strings.Contains(err.Error(), "the request has been withdrawn") {
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
	if code := <-first; code != terminal.ExitDetachTimeout || len(s.lies()) != 1 {
		t.Errorf("exit code %d, left: %v", code, s.lies())
	}
	cancel()
	if code := <-second; code != terminal.ExitUsage || len(s.lies()) != 0 {
		t.Errorf("exit code %d, left: %v", code, s.lies())
	}
	if !strings.Contains(later.printed(), "for node n3, is replaced\n") {
		t.Errorf("it does not say what it replaces: %s", later.printed())
	}
}

func TestVMIDetachTakesBackWhatHasFailed(t *testing.T) {
	t.Parallel()
	s := detachWith(t)
	s.agent(func(w http.ResponseWriter, r *http.Request, carryOut func()) {
		carryOut()
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Error(w, "the disk is broken", http.StatusInternalServerError)
	})
	if code, err := s.run(t.Context(), "n3", detachDomain); code != terminal.ExitNotPublished || !strings.Contains(err.Error(), "the disk is broken") {
		t.Errorf("exit code %d: %v", code, err)
	}
	if len(s.lies()) != 0 {
		t.Errorf("left behind: %v", s.lies())
	}
}

func TestVMIDetachRenewsItsRequestAsLongAsItWaits(t *testing.T) {
	waits := types.AppRepairStatus{Phase: types.RepairWaits, Reason: "n1 repairs the cluster"}
	for name, c := range map[string]struct {
		unheard time.Duration // when the agent no longer takes it into account; 0 for never
		others  bool          // what lies there is another command's
		want    []time.Duration
	}{
		"heard":                 {want: []time.Duration{5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute}},
		"heard no longer":       {unheard: 7 * time.Minute, want: []time.Duration{5 * time.Minute, 7 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute}},
		"of a command of later": {unheard: 7 * time.Minute, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, lies := time.Now(), uuid.New()
				d := &detaching{settle: detachSettles, printed: map[string]bool{}, log: &detachLog{out: t.Output(), outputs: &terminal.Outputs{}}, key: detachApp}
				d.paths = device.Options{Root: t.TempDir()}.Paths()
				if d.request.ID = uuid.New(); !c.others {
					lies = d.request.ID
				}
				cmdtest.Lay(t, filepath.Join(d.paths.RunDir(), device.CommandAgent, "AppDetachRequest", detachApp+".json"), `{"ID":"`+lies.String()+`"}`)
				var got []time.Duration
				ask := func() error {
					if !d.request.Asked.Equal(time.Now()) || d.request.Uptime <= 0 {
						t.Errorf("it is renewed as of %s, uptime %s", d.request.Asked, d.request.Uptime)
					}
					got = append(got, time.Since(began))
					return nil
				}
				repairs, bell := &pubsub.Table[types.AppRepairStatus]{}, make(chan struct{}, 1)
				repairs.Notify(bell)
				waits.Heard = d.request.ID
				_ = repairs.Publish(detachApp, waits)
				if c.unheard > 0 {
					time.AfterFunc(c.unheard, func() { _ = repairs.Publish(detachApp, types.AppRepairStatus{Phase: types.RepairWaits}) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), 22*time.Minute)
				defer cancel()
				_ = d.follow(ctx, repairs, bell, ask)
				if !slices.Equal(got, c.want) {
					t.Errorf("it is renewed after %v, want %v", got, c.want)
				}
			})
		})
	}
}
