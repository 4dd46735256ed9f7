package workloads

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// TestWhateverHappensEverythingIsAsItWasInTheEnd plays random histories: requests on any node,
// agents killed before any write, a control plane that does not answer, nodes that are lost or
// drain, EVE that raises sets, deletes them and makes new ones. What is there when all is well
// again, and enabled, is what was configured.
func TestWhateverHappensEverythingIsAsItWasInTheEnd(t *testing.T) {
	for seed := range seeds.Each(t, 300) {
		play(t, func(w *world) {
			r := rand.New(rand.NewPCG(seed, 18))
			node := func() string { return fmt.Sprintf("n%d", r.IntN(3)+1) }
			change := func(name string, do func(n *types.Node)) {
				w.Change(func() {
					n, _ := w.nodes.Get(name)
					do(&n)
					_ = w.nodes.Publish(name, n)
				})
			}
			want := map[string]int32{}
			for key, s := range w.sets.All() {
				want[key] = s.Wanted
			}
			w.start()
			for range 30 {
				switch name := node(); r.IntN(10) {
				case 0, 1:
					w.ask(name, r.IntN(3) > 0)
				case 2: // it dies before one of the next writes, whoever makes that
					var left atomic.Int32
					left.Store(r.Int32N(4) + 1)
					kill := w.agents[name].cancel
					w.before(func(string) {
						if left.Add(-1) == 0 {
							kill()
						}
					})
				case 3:
					w.start(name)
				case 4:
					w.SetFault([]kubetest.Fault{kubetest.None, kubetest.Refused}[r.IntN(2)])
				case 5:
					change(name, func(n *types.Node) {
						n.Ready = []types.ConditionStatus{types.ConditionTrue, types.ConditionUnknown}[r.IntN(2)]
					})
				case 6:
					change(name, func(n *types.Node) {
						n.Drained = []types.ConditionStatus{types.ConditionTrue, types.ConditionFalse}[r.IntN(2)]
					})
				case 7: // EVE raises what it finds at 0
					w.Change(func() {
						if s, ok := w.sets.Get("VirtualMachineInstanceReplicaSet/vm"); ok && s.Wanted == 0 {
							s.Wanted, s.Version = 1, w.next()
							_ = w.sets.Publish(s.Key(), s)
						}
					})
				case 8: // and creates another one
					w.Change(func() {
						w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "web", Wanted: 1})
					})
				case 9:
					w.volume([]string{"", "n2"}[r.IntN(2)])
				}
				w.pass(time.Duration(r.IntN(12000)) * time.Millisecond)
			}
			w.before(nil)
			w.SetFault(kubetest.None)
			for i := range 3 {
				change(fmt.Sprintf("n%d", i+1), func(n *types.Node) { n.Ready, n.Drained = types.ConditionTrue, types.ConditionFalse })
			}
			w.Change(func() { // what was to stop on a lost node stops when it is back
				for key, p := range w.pods.All() {
					if p.Terminating() {
						_ = w.pods.Unpublish(key)
					}
				}
			})
			w.start()
			w.ask(node(), false)
			w.pass(5 * time.Minute)
			if s := w.says("n1"); s.Phase != types.WorkloadsEnabled { // a request to disable that may have been carried out stays in Waits
				t.Errorf("seed %d: n1 says %+v", seed, s)
			}
			for key, s := range w.sets.All() {
				if s.Wanted != want[key] || s.Paused || s.Former != nil {
					t.Errorf("seed %d: %s is %+v", seed, key, s)
				}
			}
			for key, m := range w.machines.All() {
				if runs := key == "shop/till" || key == "shop/done" || len(key) > 5 && key[len(key)-5:] == "-runs"; m.Created != runs || m.Former != nil {
					t.Errorf("seed %d: %s is %+v", seed, key, m)
				}
			}
			for key, n := range w.nodes.All() {
				if n.Unschedulable {
					t.Errorf("seed %d: %s is cordoned by %q", seed, key, n.Cordoner())
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}
