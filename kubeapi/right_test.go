package kubeapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/types"
)

func TestARenewalWhoseAnswerIsLateOrLostIsARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		n := repairers(t, s, "n1")[0]
		end, over := n.begin(t)
		for range 10 {
			n.link.set(func() { n.link.slow = 3 * time.Second })
			time.Sleep(9 * time.Second)
			n.link.set(func() { n.link.slow, n.link.deaf = 0, true })
			time.Sleep(3 * time.Second)
			n.link.set(n.link.heal)
			time.Sleep(5 * time.Second)
		}
		select {
		case <-over:
			t.Error("it was stopped")
		default:
		}
		n.link.set(func() { n.link.deaf = true })
		time.Sleep(3 * time.Second)
		n.link.set(n.link.heal)
		if err := end(); err != nil {
			t.Error(err)
		}
		if left := s.repairs(); left != "" {
			t.Errorf("then the right is %s's", left)
		}
	})
}

func TestCallersOfOneProcessTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := repairers(t, newLeaseServer(), "n1")[0]
		end, _ := n.begin(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.c.Repair(ctx, "n1", func(context.Context) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who cannot wait gets %v", err)
		}
		var turns sync.WaitGroup
		var inside, done atomic.Int32
		for range 5 {
			turns.Go(func() {
				err := n.c.Repair(t.Context(), "n1", func(context.Context) error {
					if inside.Add(1) > 1 {
						t.Error("two at a time")
					}
					time.Sleep(time.Second)
					inside.Add(-1)
					done.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		if n := inside.Load(); n > 0 {
			t.Errorf("%d began before the end of another's repair", n)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		turns.Wait()
		if done.Load() != 5 {
			t.Errorf("%d of 5 repaired", done.Load())
		}
	})
}

func TestWhoDoesNotSeeTheAPICannotRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := func(context.Context) error { t.Error("it repairs"); return nil }
		c, _ := newTestClient(t)
		if err := c.Repair(t.Context(), "n1", never); !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("without a kubeconfig: %v", err)
		}
		s := newLeaseServer()
		for name, fault := range map[string]func(*link){
			"hung": func(l *link) { l.cut = true }, "deaf": func(l *link) { l.deaf = true }, "a lie": func(l *link) { l.lie = struct{}{} },
		} {
			n := repairers(t, s, "n1")[0]
			n.link.set(func() { fault(n.link) })
			begin := time.Now()
			if err := n.c.Repair(t.Context(), "n1", never); err == nil || errors.Is(err, types.ErrHeld) || time.Since(begin) > 2*leases.RepairWithin {
				t.Errorf("%s: after %v: %v", name, time.Since(begin), err)
			}
			n.link.set(n.link.heal)
			time.Sleep(20 * time.Second)
			if err := n.try(t); err != nil {
				t.Errorf("%s: afterwards %v", name, err)
			}
		}
	})
}

func TestNeverTwoRepairAtATime(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s := newLeaseServer()
			all := repairers(t, s, "n1", "n2", "n3")
			ctx, cancel := context.WithCancel(t.Context())
			var inside, done atomic.Int32
			var busy sync.WaitGroup
			for _, n := range all {
				long := rand.New(rand.NewPCG(seed, uint64(n.name[1])))
				busy.Go(func() {
					for ctx.Err() == nil {
						_ = n.c.Repair(ctx, n.name, func(ctx context.Context) error {
							if inside.Add(1) > 1 {
								t.Errorf("%s repairs while another does", n.name)
							}
							defer inside.Add(-1)
							select {
							case <-ctx.Done():
							case <-time.After(time.Duration(long.IntN(15000)) * time.Millisecond):
								done.Add(1)
							}
							return nil
						})
						time.Sleep(time.Duration(long.IntN(3000)) * time.Millisecond)
					}
				})
			}
			for range 200 {
				l := all[rng.IntN(3)].link
				how := time.Duration(rng.IntN(9000)) * time.Millisecond
				l.set([]func(){
					func() { l.cut = true }, func() { l.stuck = true }, func() { l.deaf = true },
					func() { l.late = how }, func() { l.slow = how }, func() { l.blind = !l.blind }, l.heal, l.heal, l.heal,
				}[rng.IntN(9)])
				time.Sleep(time.Duration(rng.IntN(8000)) * time.Millisecond)
			}
			cancel()
			busy.Wait()
			if done.Load() < 20 {
				t.Errorf("only %d repairs", done.Load())
			}
			t.Logf("%d repairs", done.Load())
		})
	}
}
