package workloads

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// life is what an agent that is killed does to virtual machines.
type life struct {
	*world
	*kubetest.Mortal
}

// The effects, as the kill points name them.
const (
	stopsSet     = "disable set: patch virtualmachineinstancereplicasets.kubevirt.io"
	startsSet    = "enable set: patch virtualmachineinstancereplicasets.kubevirt.io"
	haltsMachine = "disable machine: patch virtualmachines.kubevirt.io"
	runsMachine  = "enable machine: patch virtualmachines.kubevirt.io"
)

func (l life) ScaleSet(ctx context.Context, set types.AppSet, to types.SetScale) error {
	effect := startsSet
	switch {
	case set.Kind != types.KindVMIReplicaSet:
		effect = "another"
	case to.Former != nil:
		effect = stopsSet
	}
	return l.Do(effect, func() error { return l.world.ScaleSet(ctx, set, to) })
}

func (l life) RunMachine(ctx context.Context, m types.VirtualMachine, to types.RunState, former *types.FormerRun) error {
	effect := runsMachine
	if former != nil {
		effect = haltsMachine
	}
	return l.Do(effect, func() error { return l.world.RunMachine(ctx, m, to, former) })
}

func TestWhereverTheAgentDiesMachinesRunAsBeforeInTheEnd(t *testing.T) {
	for range seeds.Each(t, 1) {
		for _, effect := range []string{stopsSet, startsSet, haltsMachine, runsMachine} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after}
				t.Run(m.Point("workloads"), func(t *testing.T) {
					play(t, func(w *world) { w.killed(m) })
				})
			}
		}
	}
}

// killed tells of an agent alone that dies and starts again.
func (w *world) killed(m *kubetest.Mortal) {
	m.Died = make(chan struct{})
	w.volume("")
	want, runs := map[string]int32{}, map[string]types.RunState{}
	for key, s := range w.sets.All() {
		want[key] = s.Wanted
	}
	for key, v := range w.machines.All() {
		runs[key] = v.Run
	}
	n1 := w.agents["n1"]
	n1.kube = life{w, m}
	w.start("n1")
	w.ask("n1", true)
	if m.At == startsSet || m.At == runsMachine {
		w.pass(5 * time.Minute)
		w.is("n1", types.WorkloadsDisabled, "")
		w.ask("n1", false)
	}
	select {
	case <-m.Died:
	case <-time.After(time.Hour):
		w.Fatal("it never came there")
	}
	synctest.Wait()
	n1.kill()
	seeds.Killed(w, m.Point("workloads"))
	n1.kube = w
	w.start("n1")
	w.pass(5 * time.Minute)
	w.ask("n1", false)
	w.pass(5 * time.Minute)
	w.is("n1", types.WorkloadsEnabled, "")
	for key, s := range w.sets.All() {
		if s.Wanted != want[key] || s.Former != nil {
			w.Errorf("%s is %+v", key, s)
		}
	}
	for key, v := range w.machines.All() {
		if v.Run != runs[key] || v.Former != nil {
			w.Errorf("%s is %+v, and ran as %+v", key, v, runs[key])
		}
	}
}
