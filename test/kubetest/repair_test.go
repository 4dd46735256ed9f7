package kubetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

func nothing(context.Context) error { return nil }

func TestTheRightToRepairIsOneNodesAndGoesWithItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		err := c.Repair(t.Context(), "n1", func(ctx context.Context) error {
			time.Sleep(time.Minute)
			if err := c.Repair(ctx, "n2", nothing); !errors.Is(err, types.ErrHeld) || c.Repairer() != "n1" {
				t.Errorf("while %q repairs n2 gets %v", c.Repairer(), err)
			}
			return ctx.Err()
		})
		if err != nil || c.Repairer() != "" {
			t.Errorf("ends with %v, then the right is %q's", err, c.Repairer())
		}
		c.SetRepairer("n2", 10*time.Second) // and dies
		if err := c.Repair(t.Context(), "n1", nothing); !errors.Is(err, types.ErrHeld) {
			t.Errorf("n1 gets %v", err)
		}
		time.Sleep(10 * time.Second)
		if err := c.Repair(t.Context(), "n1", nothing); err != nil {
			t.Errorf("after its death n1 gets %v", err)
		}
		c.SetFault(Refused)
		if err := c.Repair(t.Context(), "n1", nothing); err == nil {
			t.Error("who does not see the API repairs")
		}
	})
}

func TestARepairIsStoppedWhereItsRightCannotBeKept(t *testing.T) {
	for name, spoil := range map[string]func(*Cluster){
		"the API is silent": func(c *Cluster) { c.SetFault(Hung) },
		"another took it":   func(c *Cluster) { c.SetRepairer("n2", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				began := time.Now()
				err := c.Repair(t.Context(), "n1", func(ctx context.Context) error {
					spoil(c)
					<-ctx.Done()
					return ctx.Err()
				})
				if took := time.Since(began); err == nil || took > rightLasts-rightMargin {
					t.Errorf("stopped after %v with %v", took, err)
				}
			})
		})
	}
}

func TestRepairsUnderOneNameTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		go func() {
			_ = c.Repair(t.Context(), "n1", func(context.Context) error { time.Sleep(5 * time.Second); return nil })
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Repair(ctx, "n1", nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who cannot wait gets %v", err)
		}
		begin := time.Now()
		if err := c.Repair(t.Context(), "n1", nothing); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("who waits begins after %v: %v", time.Since(begin), err)
		}
	})
}

func TestACandidateThatSeesNoAPIKnowsNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leader, leads := "", false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Elect(ctx, "n1", func(l string, is bool) { leader, leads = l, is })
		}()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if leader != "n1" || !leads {
			t.Errorf("at first %q, %v", leader, leads)
		}
		c.SetFault(Refused)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if leader != "" || leads || c.Leader() != "" {
			t.Errorf("during a silence %q, %v; the lease is %q's", leader, leads, c.Leader())
		}
		c.SetFault(None)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if leader != "n1" || !leads {
			t.Errorf("afterwards %q, %v", leader, leads)
		}
		cancel()
		<-done
	})
}
