package workloads

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestWorkloadsAreDisabledInOrderAndEnabledAsTheyWere(t *testing.T) {
	play(t, func(w *world) {
		before := w.snapshot()
		w.start()
		w.is("n3", types.WorkloadsEnabled, "")
		w.ask("n2", true)
		w.pass(time.Second)
		w.is("n1", types.WorkloadsDisabling, "still stops on node n2")
		w.pass(10 * time.Second)
		for _, node := range []string{"n1", "n2", "n3"} {
			w.is(node, types.WorkloadsDisabling, "Volume pvc-1 of eve-kube-app/vm-data is still attached on node n2.")
		}
		if left := w.running(); len(left) > 0 {
			t.Errorf("there still runs %v", left)
		}
		w.volume("")
		w.pass(2 * fresh)
		w.is("n3", types.WorkloadsDisabled, "")
		if s := w.says("n3"); s.By != "n2" || s.Reason != "new switch" || s.Since.IsZero() {
			t.Errorf("n3 says %+v", s)
		}
		order := []string{"disable", "cordon n1", "cordon n2", "cordon n3", "scale web to 0", "scale vm to 0", "run by-hand-runs Halted"}
		if d := cmp.Diff(order, w.writes[:len(order)]); d != "" {
			t.Error("want -, got +\n" + d)
		}
		now := w.snapshot()
		for _, want := range []string{
			"VirtualMachineInstanceReplicaSet/vm set-1 wanted 0 paused true former &{UID:set-1 Replicas:1 Paused:false Instances:0}",
			"ReplicaSet/helm set-5 wanted 2 paused false former <nil>", // its Deployment would undo it
			"ReplicaSet/none set-7 wanted 0 paused false former <nil>",
			`shop/off "Halted" unset created false former <nil>`,
			`shop/by-hand "Manual" unset created false former <nil>`,
			`shop/ended "RerunOnFailure" unset created false former <nil>`,
			`shop/done "Once" unset created true former <nil>`,
		} {
			if !strings.Contains(now, want) {
				t.Errorf("there is no %q in\n%s", want, now)
			}
		}
		writes := len(w.writes)
		w.pass(time.Hour)
		if more := w.writes[writes:]; len(more) > 0 {
			t.Errorf("once disabled, %v is written", more)
		}
		w.ask("n1", false)
		w.pass(time.Minute)
		w.is("n2", types.WorkloadsEnabled, "")
		if d := cmp.Diff(before, w.snapshot()); d != "" {
			t.Error("before -, after +\n" + d)
		}
		if len(w.running()) != 2 {
			t.Errorf("after it, there run %v", w.running())
		}
	})
}

// TestAnAgentMayBeKilledBeforeAnyWrite kills the one agent that there is before its first
// write, before its second one, and so on: the outcome is the same.
func TestAnAgentMayBeKilledBeforeAnyWrite(t *testing.T) {
	for kill := 1; ; kill++ {
		var killed atomic.Bool
		play(t, func(w *world) {
			before, n := w.snapshot(), 0
			w.before(func(string) {
				if n++; n == kill {
					killed.Store(true)
					w.agents["n1"].cancel()
				}
			})
			revive := func() {
				if killed.Load() {
					w.start("n1")
				}
			}
			w.start("n1")
			w.ask("n1", true)
			w.pass(time.Second)
			revive()
			w.pass(time.Minute)
			revive()
			w.volume("")
			w.pass(time.Minute)
			w.is("n1", types.WorkloadsDisabled, "")
			if left := w.running(); len(left) > 0 {
				t.Errorf("killed before write %d: there still runs %v", kill, left)
			}
			w.ask("n1", false)
			w.pass(time.Second)
			revive()
			w.pass(time.Minute)
			w.is("n1", types.WorkloadsEnabled, "")
			if d := cmp.Diff(before, w.snapshot()); d != "" {
				t.Errorf("killed before write %d: before -, after +\n%s", kill, d)
			}
		})
		if !killed.Load() {
			if kill < 12 {
				t.Errorf("only %d writes were seen", kill)
			}
			return
		}
	}
}

func TestWhatTheControllerDoesWhileWorkloadsAreDisabled(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		w.Change(func() {
			_ = w.sets.Unpublish("ReplicaSet/web") // deleted
			w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "later", Wanted: 1})
			s, _ := w.sets.Get("VirtualMachineInstanceReplicaSet/vm") // EVE raises what it finds at 0
			s.Wanted, s.Version = 1, w.next()
			_ = w.sets.Publish(s.Key(), s)
		})
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		if left := w.running(); len(left) > 0 {
			t.Errorf("there runs %v", left)
		}
		w.ask("n3", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "")
		if _, there := w.sets.Get("ReplicaSet/web"); there {
			t.Error("what was deleted is there again")
		}
		for _, key := range []string{"ReplicaSet/later", "VirtualMachineInstanceReplicaSet/vm"} {
			if s, _ := w.sets.Get(key); s.Wanted != 1 || s.Paused || s.Former != nil {
				t.Errorf("%s is %+v", key, s)
			}
		}
		if len(w.running()) != 2 {
			t.Errorf("there run %v", w.running())
		}
	})
}

func TestASetThatSomebodyHasPausedIsAsItWas(t *testing.T) {
	for name, runs := range map[string]bool{"while its machine runs": true, "without a machine": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.volume("")
				w.Change(func() {
					s, _ := w.sets.Get("VirtualMachineInstanceReplicaSet/vm")
					s.Paused, s.Version = true, w.next()
					_ = w.sets.Publish(s.Key(), s)
					for key, p := range w.pods.All() {
						if p.VMI != "" && !runs {
							_, _ = w.vmis.Unpublish(p.VMI), w.pods.Unpublish(key)
						}
					}
				})
				before, running := w.snapshot(), len(w.running())
				w.start()
				w.ask("n1", true)
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsDisabled, "")
				if left := w.running(); len(left) > 0 {
					t.Errorf("there still runs %v", left)
				}
				w.StopControllers(true) // KubeVirt takes its time
				w.ask("n1", false)
				w.pass(time.Minute)
				if runs {
					w.is("n1", types.WorkloadsEnabling, "VirtualMachineInstanceReplicaSet vm is starting.")
				}
				w.StopControllers(false)
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsEnabled, "")
				if d := cmp.Diff(before, w.snapshot()); d != "" {
					t.Error("before -, after +\n" + d)
				}
				if n := len(w.running()); n != running {
					t.Errorf("%d ran before, and now %v", running, w.running())
				}
			})
		})
	}
}

func TestASetThatIsMadeAgainUnderItsNameIsDisabledAsANewOne(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.Change(func() { // the former one's annotation does not count: kubeapi drops it by its UID
			w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "web", Wanted: 3})
		})
		w.pass(time.Minute)
		s, _ := w.sets.Get("ReplicaSet/web")
		if s.Wanted != 0 || s.Former == nil || s.Former.Replicas != 3 || s.Former.UID != s.UID {
			t.Errorf("it is %+v", s)
		}
	})
}

func TestOneNodeWritesAtATimeAndAnotherTakesOverFromOneThatIsDead(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start("n2", "n3") // the first in the order has no agent that runs
		w.ask("n3", true)
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsDisabled, "")
		if n := len(slices.Compact(slices.Sorted(slices.Values(w.writes)))); n != len(w.writes)-1 { // vm: to 0, then paused
			t.Errorf("something was written twice: %v", w.writes)
		}
	})
}

func TestWhileTheClusterDoesNotAnswerTheLastPhaseStays(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.SetFault(kubetest.Refused)
		w.start("n1") // as after a reboot
		w.is("n1", types.WorkloadsDisabled, "The cluster is not fully known")
		if !w.says("n1").Stale {
			t.Error("it is not called stale")
		}
		writes := len(w.writes)
		w.ask("n1", false)
		w.pass(askedFor + time.Minute)
		w.SetFault(kubetest.None)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "was not carried out in time, and is void") // the request is too old by now
		if len(w.writes) > writes {
			t.Errorf("%v was written", w.writes[writes:])
		}
		w.SetFault(kubetest.Refused)
		w.ask("n1", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "has not been carried out yet")
		w.SetFault(kubetest.None)
		w.pass(time.Minute)
		w.is("n2", types.WorkloadsEnabled, "")
	})
}

func TestARequestIsCarriedOutOnce(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.ask("n2", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "")
		writes := len(w.writes)
		w.start("n1") // its request is still there
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "")
		if len(w.writes) > writes {
			t.Errorf("%v was written", w.writes[writes:])
		}
	})
}

// failing fails the first request to disable, or to enable, which may have been carried out.
type failing struct {
	*world
	made bool
	read bool  // the read before it is what fails
	err  error // nil where the agent dies in the middle of it
	once sync.Once
}

func (f *failing) DisabledWorkloads(ctx context.Context) (d types.DisabledWorkloads, err error) {
	read := func() error { d, err = f.world.DisabledWorkloads(ctx); return err }
	if f.read {
		err = f.do(ctx, read)
		return d, err
	}
	err = read()
	return d, err
}

func (f *failing) DisableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	return f.do(ctx, func() error { return f.world.DisableWorkloads(ctx, d) })
}

func (f *failing) EnableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	return f.do(ctx, func() error { return f.world.EnableWorkloads(ctx, d) })
}

func (f *failing) do(ctx context.Context, write func() error) error {
	first := false
	if f.once.Do(func() { first = true }); !first {
		return write()
	}
	if f.made {
		_ = write()
	}
	if f.err == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

func TestADisableThatMayHaveBeenCarriedOutIsNotRepeated(t *testing.T) {
	const unsure = "may have been carried out, and is not repeated"
	for name, row := range map[string]struct {
		made   bool
		err    error
		phase  types.WorkloadsPhase
		writes int // in the end
	}{
		"the answer is lost":        {true, types.ErrNoAnswer, types.WorkloadsDisabled, 1},
		"the request is lost":       {false, types.ErrNoAnswer, types.WorkloadsEnabled, 0},
		"it was refused":            {false, types.ErrRefused, types.WorkloadsDisabled, 1},
		"nobody was asked":          {false, fmt.Errorf("%w: %w", types.ErrNoAnswer, types.ErrNoAPI), types.WorkloadsDisabled, 1},
		"nobody could be reached":   {false, fmt.Errorf("%w: %w", types.ErrNoAnswer, &net.OpError{Op: "dial", Err: errors.New("connection refused")}), types.WorkloadsDisabled, 1},
		"the agent dies before it":  {false, nil, types.WorkloadsEnabled, 0},
		"the agent dies after that": {true, nil, types.WorkloadsEnabled, 1}, // enabled on another node before it is back
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.volume("")
				n1 := w.agents["n1"]
				n1.kube = &failing{world: w, made: row.made, err: row.err}
				w.start()
				w.ask("n1", true)
				w.pass(time.Second)
				if row.err == nil {
					n1.kill()
					w.pass(time.Minute)
					w.ask("n2", false)
					w.pass(time.Minute)
					w.start("n1")
				}
				w.pass(time.Minute)
				waits := unsure
				if row.phase == types.WorkloadsDisabled {
					waits = ""
				}
				w.is("n1", row.phase, waits)
				w.pass(time.Hour)
				w.is("n1", row.phase, waits)
				made := 0
				for _, what := range w.writes {
					if what == "disable" {
						made++
					}
				}
				if made != row.writes {
					t.Errorf("disabled %d times", made)
				}
				w.ask("n1", true)
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsDisabled, "")
				w.ask("n2", false)
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsEnabled, "")
				w.start("n1")
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsEnabled, "")
			})
		})
	}
}

func TestADisableWhoseAnswerWasLostIsHeardForGood(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.agents["n1"].kube = &failing{world: w, made: true, err: types.ErrNoAnswer}
		w.start()
		w.ask("n1", false) // of that it is known what came of it
		w.pass(time.Minute)
		w.ask("n1", true)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		w.ask("n2", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "")
	})
}

func TestAnEnableThatMayHaveBeenCarriedOutDoesNotEndALaterDisable(t *testing.T) {
	for name, row := range map[string]struct {
		made  bool
		err   error
		again bool // enabled and disabled on other nodes meanwhile
		phase types.WorkloadsPhase
	}{
		"the answer is lost":  {true, types.ErrNoAnswer, false, types.WorkloadsEnabled},
		"the request is lost": {false, types.ErrNoAnswer, false, types.WorkloadsEnabled},
		"it was refused":      {false, types.ErrRefused, false, types.WorkloadsEnabled},
		"the answer is lost, and they are disabled again":      {true, types.ErrNoAnswer, true, types.WorkloadsDisabled},
		"the read is lost, and they are disabled again":        {false, types.ErrNoAnswer, true, types.WorkloadsDisabled},
		"it was refused, and they are disabled again":          {false, types.ErrRefused, true, types.WorkloadsDisabled},
		"the agent dies before it":                             {false, nil, false, types.WorkloadsEnabled},
		"the agent dies after it":                              {true, nil, false, types.WorkloadsEnabled},
		"the agent dies after it, and they are disabled again": {true, nil, true, types.WorkloadsDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.volume("")
				n1 := w.agents["n1"]
				w.start()
				w.ask("n2", true)
				w.pass(time.Minute)
				w.is("n1", types.WorkloadsDisabled, "")
				n1.kube = &failing{world: w, made: row.made, read: strings.Contains(name, "read"), err: row.err}
				w.start("n1")
				w.ask("n1", false)
				w.pass(time.Second)
				if row.err == nil {
					n1.kill()
				}
				if row.again {
					w.ask("n2", false)
					w.pass(time.Second)
					w.ask("n3", true)
				}
				w.pass(2 * time.Second)
				if row.err == nil {
					w.start("n1")
				}
				w.pass(2 * time.Minute)
				w.is("n1", row.phase, "")
				w.pass(time.Hour)
				w.is("n1", row.phase, "")
			})
		})
	}
}

func TestAnEnableWhereNothingIsDisabledDoesNotEndALaterDisable(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.agents["n1"].kube = &failing{world: w, read: true, err: types.ErrNoAnswer}
		w.start()
		w.pass(time.Minute)
		w.ask("n1", false)
		w.pass(time.Second)
		w.ask("n3", true)
		w.pass(2 * time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
	})
}

// slow takes long for the first read, and no longer than a request may.
type slow struct {
	*world
	once sync.Once
}

func (s *slow) DisabledWorkloads(ctx context.Context) (types.DisabledWorkloads, error) {
	s.once.Do(func() { time.Sleep(8 * time.Second) })
	return s.world.DisabledWorkloads(ctx)
}

func TestAnEnableWhoseReadTakesLongDoesNotEndALaterDisable(t *testing.T) {
	for name, disabled := range map[string]bool{"nothing was disabled": false, "they are enabled and disabled again": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.volume("")
				w.start()
				if disabled {
					w.ask("n2", true)
				}
				w.pass(time.Minute)
				w.agents["n1"].kube = &slow{world: w}
				w.start("n1")
				w.pass(time.Second)
				w.ask("n1", false)
				w.pass(time.Second)
				if disabled {
					w.ask("n2", false)
					w.pass(5 * time.Second)
				}
				w.ask("n3", true)
				w.pass(3 * time.Minute)
				w.is("n1", types.WorkloadsDisabled, "")
				w.is("n3", types.WorkloadsDisabled, "")
			})
		})
	}
}

// Where another node before it makes all changes, this one has no other task.
func TestTheErrorOfALostAnswerEndsWithItsRequest(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.agents["n3"].kube = &failing{world: w, made: true, err: types.ErrNoAnswer}
		w.start()
		w.ask("n3", true)
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsDisabled, "")
		w.Change(func() {
			for _, n := range []string{"n1", "n2"} {
				is, _ := w.nodes.Get(n)
				is.Drained = types.ConditionTrue
				_ = w.nodes.Publish(n, is)
			}
		})
		w.SetRepairer("somebody", 4*time.Second) // so that something is to be changed for a while
		w.ask("n1", false)
		for range 60 {
			w.pass(time.Second)
			if waits := strings.Join(w.says("n3").Waits, "\n"); strings.Contains(waits, "The last try failed") {
				t.Fatalf("n3: %s", waits)
			}
		}
		w.is("n3", types.WorkloadsEnabling, "is being drained")
	})
}

// KubeVirt makes no instance for a paused set, nor one in place of one that has failed.
func TestWhenASetThatWasPausedIsPausedAgain(t *testing.T) {
	former := &types.FormerScale{UID: "u1", Replicas: 1, Paused: true, Instances: 1}
	up := types.AppSet{UID: "u1", Wanted: 1, Former: former}
	for name, row := range map[string]struct {
		set    types.AppSet
		copies []running
		paused bool
	}{
		"its instance is there":   {up, []running{{}}, true},
		"it has none yet":         {up, nil, false},
		"it ends":                 {up, []running{{ends: true}}, false},
		"it has failed":           {up, []running{{over: true}}, false},
		"it is not scaled up yet": {types.AppSet{UID: "u1", Former: former}, []running{{}}, false},
		"it is not scaled up, and is still paused": {types.AppSet{UID: "u1", Paused: true, Former: former}, []running{{}}, false},
		"it had none": {types.AppSet{UID: "u1", Paused: true, Former: &types.FormerScale{UID: "u1", Replicas: 1, Paused: true}}, nil, true},
	} {
		to := facts{copies: map[string][]running{"u1": row.copies}}.former(row.set)
		if to.Replicas != 1 || to.Paused != row.paused || (to.Former == nil) != row.paused {
			t.Errorf("%s: %+v", name, to)
		}
	}
}

func TestTheCordonOfANodeThatDrainsOutlastsTheEnd(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		if err := w.Cordon(t.Context(), "n2", types.Cordon{Reason: "drain"}); err != nil { // by a drain: it stays that of the workloads
			t.Fatal(err)
		}
		n, _ := w.nodes.Get("n2")
		n.DrainInProgress = types.ConditionTrue
		_ = w.nodes.Publish("n2", n)
		w.ask("n1", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabling, "Node n2 is being drained")
		if n, _ := w.nodes.Get("n2"); !n.Unschedulable {
			t.Error("a node that drains is schedulable")
		}
		if len(w.running()) != 2 {
			t.Errorf("the applications wait for it: %v", w.running())
		}
		n, _ = w.nodes.Get("n2")
		n.DrainInProgress, n.Drained = types.ConditionFalse, types.ConditionTrue // it is empty, and about to reboot
		_ = w.nodes.Publish("n2", n)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabling, "Node n2 is being drained")
		if n, _ := w.nodes.Get("n2"); !n.Unschedulable {
			t.Error("a node that is about to reboot is schedulable")
		}
		n.Drained = types.ConditionFalse
		_ = w.nodes.Publish("n2", n)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "")
	})
}

func TestOneNodeAlone(t *testing.T) {
	play(t, func(w *world) {
		_, _ = w.nodes.Unpublish("n1"), w.nodes.Unpublish("n3")
		w.mu.Lock()
		w.storage = types.Storage{} // without Longhorn
		w.mu.Unlock()
		before := w.snapshot()
		w.start("n2")
		w.ask("n2", true)
		w.pass(time.Minute)
		w.is("n2", types.WorkloadsDisabled, "")
		w.SetFault(kubetest.Refused) // its k3s dies, and the device reboots
		w.start("n2")
		w.pass(time.Minute)
		w.is("n2", types.WorkloadsDisabled, "The cluster is not fully known")
		w.SetFault(kubetest.None)
		w.ask("n2", false)
		w.pass(time.Minute)
		w.is("n2", types.WorkloadsEnabled, "")
		if d := cmp.Diff(before, w.snapshot()); d != "" {
			t.Error("before -, after +\n" + d)
		}
	})
}

func TestCordonsOfOthersStay(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		for node, by := range map[string]*types.Cordon{"n1": nil, "n3": {By: "zedkube", Reason: "this node is the cluster's tie-breaker"}} {
			n, _ := w.nodes.Get(node)
			n.Unschedulable, n.CordonedBy, n.TieBreaker = true, by, by != nil
			_ = w.nodes.Publish(node, n)
		}
		before := w.snapshot()
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		w.ask("n1", false)
		w.pass(time.Minute)
		if d := cmp.Diff(before, w.snapshot()); d != "" {
			t.Error("before -, after +\n" + d)
		}
	})
}

func TestALostNodeHoldsUpTheEndAndIsNamed(t *testing.T) {
	play(t, func(w *world) {
		n, _ := w.nodes.Get("n2")
		n.Ready = types.ConditionUnknown
		_ = w.nodes.Publish("n2", n)
		w.start("n1", "n3")
		w.ask("n1", true)
		w.pass(time.Hour)
		w.is("n1", types.WorkloadsDisabling, "on node n2, which is not Ready")
		w.ask("n1", false)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsEnabled, "") // what is left there is for the failover
	})
}

func TestASetIsNotStartedBeforeItsVolumesCanBeAttached(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		for _, node := range []string{"n1", "n2"} { // those with the replicas
			n, _ := w.nodes.Get(node)
			n.Ready = types.ConditionFalse
			_ = w.nodes.Publish(node, n)
		}
		w.ask("n3", false)
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsEnabling, "volume pvc-1 of eve-kube-app/vm-data has no healthy replica on a Ready node")
		if s, _ := w.sets.Get("ReplicaSet/web"); s.Former != nil {
			t.Error("an application without volumes waits for them")
		}
		n, _ := w.nodes.Get("n1")
		n.Ready = types.ConditionTrue
		_ = w.nodes.Publish("n1", n)
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsEnabled, "")
	})
}

func TestAVolumeThatWasNeverAttachedHoldsUpNothing(t *testing.T) {
	for name, row := range map[string]struct {
		change func(r *types.Replica)
		phase  types.WorkloadsPhase
		waits  string
	}{
		"never attached": {func(r *types.Replica) { r.HealthyAt = time.Time{} }, types.WorkloadsEnabled, ""},
		"faulted":        {func(r *types.Replica) { r.HealthyAt, r.FailedAt = time.Time{}, time.Now() }, types.WorkloadsEnabling, "no healthy replica"},
		"nowhere":        {func(r *types.Replica) { r.HealthyAt, r.Node = time.Time{}, "" }, types.WorkloadsEnabling, "no healthy replica"},
	} {
		play(t, func(w *world) {
			w.volume("")
			w.start()
			w.ask("n1", true)
			w.pass(time.Minute)
			w.mu.Lock()
			for i := range w.storage.Volumes[0].Replicas {
				row.change(&w.storage.Volumes[0].Replicas[i])
			}
			w.mu.Unlock()
			w.ask("n1", false)
			w.pass(time.Minute)
			t.Log(name)
			w.is("n1", row.phase, row.waits)
		})
	}
}

func TestAFailureIsTriedAgainAndWhatChangedMeanwhileIsNotOverwritten(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.FailVerb("repair", errTest)
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabling, "Node n1 is still schedulable.")
		w.is("n1", types.WorkloadsDisabling, "The last try failed: "+errTest.Error())
		w.FailVerb("repair", nil)
		w.before(func(what string) { // somebody is faster, once
			if strings.HasPrefix(what, "scale web") {
				w.before(nil)
				w.Change(func() {
					s, _ := w.sets.Get("ReplicaSet/web")
					s.Wanted, s.Version = 4, w.next()
					_ = w.sets.Publish(s.Key(), s)
				})
			}
		})
		w.pass(2 * time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		if s, _ := w.sets.Get("ReplicaSet/web"); s.Former == nil || s.Former.Replicas != 4 {
			t.Errorf("web is %+v", s)
		}
	})
}

// TestAnAgentThatSeesTheClusterAsItWasStopsNothing has the object go between a decision and
// what it decided.
func TestAnAgentThatSeesTheClusterAsItWasStopsNothing(t *testing.T) {
	play(t, func(w *world) {
		c := &Component{Kube: w}
		s, _ := w.sets.Get("ReplicaSet/web")
		f := facts{disabled: types.DisabledWorkloads{UID: "of-yesterday"}}
		err := c.carryOut(context.Background(), f, []change{{set: &s, scale: types.SetScale{Former: &types.FormerScale{UID: s.UID, Replicas: 1}}}})
		if err == nil || len(w.writes) > 0 {
			t.Errorf("%v, and it wrote %v", err, w.writes)
		}
	})
}

func TestReasonsAndSentencesAreBounded(t *testing.T) {
	play(t, func(w *world) {
		for i := range 100 {
			w.Change(func() { w.add(types.AppSet{Kind: types.KindReplicaSet, Name: fmt.Sprintf("a%02d", i), Wanted: 1}) })
		}
		w.start("n1")
		_ = w.agents["n1"].request.Publish(types.Global, types.WorkloadsRequest{RequestedAt: time.Now().Round(0), Disable: true, Reason: strings.Repeat("é\xff", 40_000)})
		w.pass(time.Second)
		s := w.says("n1")
		if len(s.Waits) > mostWaits+1 || len(s.Reason) > longestReason+10 {
			t.Errorf("%d sentences, a reason of %d bytes", len(s.Waits), len(s.Reason))
		}
		w.pass(time.Minute)
		w.is("n1", types.WorkloadsDisabling, "pvc-1")
	})
}

// TestWhatStopsAlreadyIsWaitedFor is about what others stop while, or just before, the workloads
// are disabled: its volumes are attached for a while after it is gone.
func TestWhatStopsAlreadyIsWaitedFor(t *testing.T) {
	deleted := func(w *world) types.AppSet {
		s, _ := w.sets.Get("VirtualMachineInstanceReplicaSet/vm")
		s.Deleted = time.Now()
		_ = w.sets.Publish(s.Key(), s)
		for _, v := range w.vmis.All() {
			v.Claims = s.Claims
			_ = w.vmis.Publish(v.Name, v)
		}
		w.stop(s)
		return s
	}
	stopped := func(w *world) types.VirtualMachine {
		m, _ := w.machines.Get("shop/till")
		m.Run, m.Claims, m.Version = types.RunState{Strategy: types.StrategyHalted}, []string{"till-data"}, w.next()
		w.mu.Lock()
		w.storage.Volumes = slices.Clone(w.storage.Volumes)
		w.storage.Volumes[0].Claim = "shop/till-data"
		w.mu.Unlock()
		_ = w.machines.Publish(m.Key(), m)
		return m
	}
	for name, row := range map[string]struct {
		begin, end func(w *world)
		object     string // in what would be written
		waits      string
	}{
		"a set that is being deleted": {func(w *world) { deleted(w) }, func(w *world) { _ = w.sets.Unpublish("VirtualMachineInstanceReplicaSet/vm") }, "scale vm", "of vm still stops on node n2"},
		"a set that is gone":          {func(w *world) { _ = w.sets.Unpublish(deleted(w).Key()) }, func(*world) {}, "scale vm", "of vm still stops on node n2"},
		"a machine that was halted": {func(w *world) { stopped(w) }, func(w *world) {
			m, _ := w.machines.Get("shop/till")
			m.Created, m.Stopped = false, true
			_ = w.machines.Publish(m.Key(), m)
		}, "run till", "VirtualMachine shop/till still stops."},
		"a machine that is being deleted": {func(w *world) {
			m := stopped(w)
			m.Run, m.Deleted = types.RunState{Strategy: types.StrategyAlways}, true
			_ = w.machines.Publish(m.Key(), m)
		}, func(w *world) { _ = w.machines.Unpublish("shop/till") }, "run till", "VirtualMachine shop/till still stops."},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.Grace = time.Minute
				w.start()
				w.pass(time.Minute)
				w.Change(func() { row.begin(w) })
				w.ask("n1", true)
				w.pass(20 * time.Second)
				w.is("n3", types.WorkloadsDisabling, row.waits)
				w.mu.Lock()
				if slices.ContainsFunc(w.writes, func(s string) bool { return strings.Contains(s, row.object) }) {
					t.Errorf("what stops is written to: %v", w.writes)
				}
				w.mu.Unlock()
				w.pass(time.Minute)
				w.Change(func() { row.end(w) })
				w.pass(2 * time.Minute)
				w.is("n3", types.WorkloadsDisabling, "Volume pvc-1")
				w.volume("")
				w.pass(2 * fresh)
				w.is("n3", types.WorkloadsDisabled, "")
			})
		})
	}
}

// TestANodeThatWasOffLooksAgain has it return when the workloads were enabled and disabled
// again meanwhile: that it once said Disabled was about another time.
func TestANodeThatWasOffLooksAgain(t *testing.T) {
	play(t, func(w *world) {
		w.volume("")
		w.start()
		w.ask("n1", true)
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsDisabled, "")
		w.agents["n3"].kill()
		w.ask("n1", false)
		w.pass(time.Minute)
		w.volume("n2")
		w.ask("n1", true)
		w.pass(time.Minute)
		w.start("n3")
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsDisabling, "Volume pvc-1 of eve-kube-app/vm-data is still attached on node n2.")
		w.volume("")
		w.pass(2 * fresh)
		w.is("n3", types.WorkloadsDisabled, "")
		w.volume("n2") // by somebody, after that: what was seen once counts for this time
		w.agents["n3"].kill()
		w.start("n3")
		w.pass(time.Minute)
		w.is("n3", types.WorkloadsDisabled, "")
	})
}
