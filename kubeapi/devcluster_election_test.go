//go:build linux

package kubeapi_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

const StatsLease = "eve-kube-stats-leader"

// part is what a candidate was told last.
type part struct {
	mu     sync.Mutex
	leader string
	leads  bool
}

func (p *part) set(leader string, leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader, p.leads = leader, leads
}

func (p *part) is(leader string, leads bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leader == leader && p.leads == leads
}

// stands lets an agent stand for election.
func stands(t *testing.T, a *agent, name string) (p *part, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	p, ended := &part{}, make(chan error, 1)
	go func() { ended <- a.Elect(ctx, name, p.set) }()
	return p, func() error { cancel(); return <-ended }
}

func elections(t *testing.T, c *devcluster.Cluster) {
	leases := c.Client().CoordinationV1().Leases(kubeapi.Namespace)
	eve, long, now := "eve", int32(300), metav1.NowMicro()
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: StatsLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &eve, LeaseDurationSeconds: &long, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := newAgent(t, c, 0), newAgent(t, c, 8) // whose requests are counted: no other story has it
	first, stopFirst := stands(t, a, c.Nodes[0].Name)
	eventually(t, "EVE's agent leads", 5*time.Second, func() bool { return first.is("eve", false) })
	time.Sleep(27 * time.Second) // longer than ours would
	if !first.is("eve", false) {
		t.Errorf("one that holds it for 300 s was not respected: %+v", first)
	}
	nobody, short := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &short
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	within(t, "ours leads", 2*time.Second, func() bool { return first.is(c.Nodes[0].Name, true) })
	t.Logf("taken %v after EVE gave it back", time.Since(begin).Round(time.Millisecond))

	second, stopSecond := stands(t, b, c.Nodes[8].Name)
	eventually(t, "the second follows", 5*time.Second, func() bool { return second.is(c.Nodes[0].Name, false) })
	sent := c.NodeTraffic(8).Requests
	time.Sleep(20 * time.Second)
	if n := c.NodeTraffic(8).Requests - sent; n > 5 {
		t.Errorf("an idle follower sent %d requests in 20 s", n)
	}
	if row, _ := b.leases.Get(StatsLease); row.Holder != c.Nodes[0].Name || row.Duration != 25*time.Second {
		t.Errorf("its row is %+v", row)
	}
	begin = time.Now()
	if err := stopFirst(); err != nil || !first.is("", false) {
		t.Errorf("the first ends with %v, %+v", err, first)
	}
	within(t, "the second leads", 2*time.Second-time.Since(begin), func() bool { return second.is(c.Nodes[8].Name, true) })
	t.Logf("the second leads %v after the first was told to stop", time.Since(begin).Round(time.Millisecond))
	if err := stopSecond(); err != nil {
		t.Errorf("the second ends with %v", err)
	}
	lease, err = leases.Get(t.Context(), StatsLease, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("lease is %+v, %v", lease, err)
	}
}

func repairs(t *testing.T, c *devcluster.Cluster) {
	a, b := newAgent(t, c, 0), newAgent(t, c, 2)
	held := func() string {
		lease, err := c.Client().CoordinationV1().Leases(kubeapi.Namespace).Get(t.Context(), "zedkube-repair", metav1.GetOptions{})
		if err != nil {
			return ""
		}
		for _, m := range lease.ManagedFields {
			if m.Manager != "zedkube" {
				t.Errorf("written by %s", m.Manager)
			}
		}
		return *lease.Spec.HolderIdentity
	}
	err := a.Repair(t.Context(), "node-1", func(ctx context.Context) error {
		for range 4 { // longer than the right lasts without renewal
			time.Sleep(3 * time.Second)
			if err := b.Repair(t.Context(), "node-3", func(context.Context) error { return nil }); !errors.Is(err, types.ErrHeld) || held() != "node-1" {
				t.Errorf("while %s has it the other gets %v", held(), err)
			}
		}
		return ctx.Err()
	})
	if err != nil || held() != "" {
		t.Errorf("ends with %v, then the right is %q's", err, held())
	}
	// Both at once, again and again: nobody waits for long, and nobody else is let in.
	var inside, done int
	var mu sync.Mutex
	var racing sync.WaitGroup
	begin := time.Now()
	for i, n := range []*agent{a, b} {
		racing.Go(func() {
			for range 20 {
				err := errors.New("not yet")
				for ; err != nil; time.Sleep(time.Millisecond) {
					err = n.Repair(t.Context(), c.Nodes[2*i].Name, func(context.Context) error {
						mu.Lock()
						if inside++; inside > 1 {
							t.Error("both repair")
						}
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
						mu.Lock()
						inside, done = inside-1, done+1
						mu.Unlock()
						return nil
					})
					if err != nil && !errors.Is(err, types.ErrHeld) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	racing.Wait()
	t.Logf("%d repairs of two nodes at once in %v", done, time.Since(begin).Round(time.Millisecond))
}
