package console

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// The kube container is played as it is, at random everything happens on the
// node, and all the time: edgeview's session is untouched, there is no file for
// a machine that is not here, the proxy shows what the file says; and when
// things are quiet the console is open.
func TestWhateverHappensTheConsoleIsTheRightOne(t *testing.T) {
	for _, pace := range []struct {
		name  string
		slow  int           // milliseconds until a proxy listens, at most
		stale time.Duration // how long it may show another machine: what starts is not seen to be unwanted
	}{{"at once", 1, 0}, {"slowly", 8000, rewriteAfter + 12*time.Second}} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("proxies start %s, seed %d", pace.name, seed), func(t *testing.T) {
				tell(t, func(n *node) {
					r := rand.New(rand.NewPCG(seed, 1))
					slow := rand.New(rand.NewPCG(seed, 2))
					w := &world{
						node: n, rand: r, stale: pace.stale, wanted: map[string]bool{}, vmi: map[string]types.VmiVNCConfig{},
						kube: &kubeInit{node: n, slow: func() time.Duration { return time.Duration(slow.IntN(pace.slow)) * time.Millisecond }},
					}
					w.live()
				})
			})
		}
	}
}

func (w *world) live() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.kube.run(ctx) }()
	defer func() { cancel(); <-done }()
	w.start()
	for w.toggled < 100 && !w.Failed() {
		w.happen()
		w.pass(time.Duration(w.rand.IntN(8000)) * time.Millisecond)
	}
	if w.pid != 0 {
		w.endSession(false)
	}
	w.toggle(second, false)
	w.toggle(first, true)
	w.restart(first)
	w.pass(3 * time.Minute)
	w.says(textOf(w.vmi[first]))
	w.because(first, "")
	if got := w.kube.running(); got != w.vmi[first] {
		w.fail("the proxy shows %q", got.VMIName)
	}
}
