package kubeapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/types"
)

// repairer is a node that repairs.
type repairer struct {
	name string
	c    *Client
	link *link
}

func repairers(t *testing.T, s *leaseServer, names ...string) (all []*repairer) {
	t.Helper()
	for _, name := range names {
		r := &repairer{name: name}
		r.c, r.link, _ = seat(t, s)
		all = append(all, r)
	}
	time.Sleep(time.Second)
	return all
}

// begin repairs until its context ends or end is called. It returns once the
// right is had; over is closed at the end of do.
func (r *repairer) begin(t *testing.T) (end func() error, over <-chan struct{}) {
	t.Helper()
	began, ended, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	stop := make(chan struct{})
	go func() {
		result <- r.c.Repair(ctx, r.name, func(ctx context.Context) error {
			close(began)
			defer close(ended)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-stop:
				return nil
			}
		})
	}()
	end = sync.OnceValue(func() error { close(stop); defer cancel(); return <-result })
	select {
	case <-began:
	case err := <-result:
		t.Fatalf("%s does not repair: %v", r.name, err)
	}
	return end, ended
}

// try repairs in no time.
func (r *repairer) try(t *testing.T) error {
	return r.c.Repair(t.Context(), r.name, func(context.Context) error { return nil })
}

func (s *leaseServer) repairs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holderOf(leases.RepairLease)
}

func repairOf(holder string) *coordinationv1.Lease {
	lease := statsOf(holder, 10, time.Now())
	lease.Name = leases.RepairLease
	return lease
}

func TestOneNodeAtATimeHasTheRightToRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		all := repairers(t, s, "n1", "n2")
		end, over := all[0].begin(t)
		for range 100 {
			time.Sleep(3 * time.Second)
			sent, begin := all[1].link.asked("GET "+leases.RepairLease), time.Now()
			if err := all[1].try(t); !errors.Is(err, types.ErrHeld) {
				t.Fatalf("while n1 repairs n2 gets %v", err)
			}
			if all[1].link.asked("GET "+leases.RepairLease) != sent || !time.Now().Equal(begin) {
				t.Error("that took a request")
			}
		}
		select {
		case <-over:
			t.Fatal("a long repair was stopped")
		default:
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if left, _ := s.get(leases.RepairLease); left != nil {
			t.Errorf("what is left is %+v", left)
		}
		synctest.Wait()
		if err := all[1].try(t); err != nil {
			t.Errorf("after n1 has ended n2 gets %v", err)
		}
		synctest.Wait()
		failed := errors.New("it is broken")
		if err := all[0].c.Repair(t.Context(), "n1", func(context.Context) error { return failed }); err != failed { //nolint:errorlint // unwrapped
			t.Errorf("an error of do comes back as %v", err)
		}
		if err := all[0].c.Repair(t.Context(), "", func(context.Context) error { return nil }); !errors.Is(err, leases.ErrNoIdentity) {
			t.Errorf("nobody gets %v", err)
		}
	})
}

func TestTheRightToRepairCostsNothingWhileThereIsNothingToRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		n := repairers(t, s, "n1")[0]
		if err := n.try(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		n.link.set(func() {
			got := [3]int{n.link.requests["GET "+leases.RepairLease], n.link.requests["POST leases"], n.link.requests["DELETE "+leases.RepairLease]}
			if got != [3]int{2, 1, 1} {
				t.Errorf("gets, posts, deletes: %v", got)
			}
		})
	})
}

func TestARepairStopsBeforeAnotherNodeMayBeginAndThatOneBeginsWithinSeconds(t *testing.T) {
	for name, fault := range map[string]func(*link){
		"cut off":                func(l *link) { l.cut = true },
		"writes are not made":    func(l *link) { l.stuck = true },
		"writes come too late":   func(l *link) { l.late = 9 * time.Second },
		"answers come too late":  func(l *link) { l.slow = 9 * time.Second },
		"answers of other kinds": func(l *link) { l.lie = struct{}{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				all := repairers(t, s, "n1", "n2")
				end, over := all[0].begin(t)
				time.Sleep(6 * time.Second)
				all[0].link.set(func() { fault(all[0].link) })
				<-over
				stopped := time.Now()
				for all[1].try(t) != nil {
					time.Sleep(100 * time.Millisecond)
				}
				_, written := s.get(leases.RepairLease)
				t.Logf("n1 stopped, n2 began %v later", time.Since(stopped))
				if gap := time.Since(stopped); gap < time.Second || gap > 16*time.Second {
					t.Errorf("n2 began %v after n1 stopped; written %v", gap, written)
				}
				if err := end(); !errors.Is(err, leases.ErrRepairLeaseLost) {
					t.Errorf("n1 ends with %v", err)
				}
			})
		})
	}
}

func TestARepairStopsWhenTheRightIsTakenAway(t *testing.T) {
	for name, take := range map[string]func(*leaseServer, *repairer){
		"by force":              func(s *leaseServer, _ *repairer) { s.put(repairOf("n2")) },
		"by its namesake":       func(s *leaseServer, _ *repairer) { s.put(repairOf("n1")) },
		"deleted":               func(s *leaseServer, _ *repairer) { s.remove(leases.RepairLease) },
		"with a new kubeconfig": func(_ *leaseServer, r *repairer) { r.c.session.Present().Retire() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				n := repairers(t, s, "n1")[0]
				end, over := n.begin(t)
				time.Sleep(5 * time.Second)
				take(s, n)
				synctest.Wait()
				select {
				case <-over:
				default:
					t.Error("it goes on")
				}
				if err := end(); err == nil {
					t.Error("no error")
				}
				if name == "by force" && s.repairs() != "n2" || name == "by its namesake" && s.repairs() != "n1" {
					t.Errorf("then it is %q's", s.repairs())
				}
			})
		})
	}
}
