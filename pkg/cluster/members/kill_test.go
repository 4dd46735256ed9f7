package members

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// A kill comes just before a request of the agent, or just after one whose
// answer is lost, or while it is on its way and the agent long dead.
const (
	beforeRequest = iota
	afterRequest
	onItsWay
	killModes
)

var errKilled = errors.New("killed")

// life is a process that ends at its n-th request as SIGKILL ends it: nothing
// it asks for from then on arrives, nor is its right to repair given back.
type life struct {
	*kubetest.Cluster
	t        testing.TB
	mu       sync.Mutex
	requests int
	at, mode int // the last request; 0 for none
	dead     bool
	died     chan struct{}
}

// do asks for what the kill points call by that name, "" for a look.
func (l *life) do(ctx context.Context, effect string, act func(context.Context) error) error {
	l.mu.Lock()
	l.requests++
	was, last := l.dead, l.requests == l.at
	l.dead = was || last
	l.mu.Unlock()
	if last && !was && effect != "" && l.mode != onItsWay {
		seeds.Killed(l.t, "members/"+effect+[]string{"/before", "/after"}[l.mode])
	}
	switch {
	case was:
		return errKilled
	case !last:
		return act(ctx)
	case l.mode == afterRequest:
		_ = act(context.WithoutCancel(ctx))
	case l.mode == onItsWay:
		time.AfterFunc(3*time.Second, func() { _ = act(context.WithoutCancel(ctx)) })
	}
	close(l.died)
	return errKilled
}

func (l *life) Repair(ctx context.Context, identity string, do func(context.Context) error) error {
	err := l.Cluster.Repair(ctx, identity, do)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead && !errors.Is(err, types.ErrHeld) {
		l.SetRepairer(identity, 10*time.Second)
	}
	return err
}

// ask is do for a request with an answer, which may come when nobody waits for
// it any more.
func ask[T any](ctx context.Context, l *life, effect string, act func(context.Context) (T, error)) (T, error) {
	var got struct {
		sync.Mutex
		answer T
	}
	err := l.do(ctx, effect, func(ctx context.Context) error {
		answer, err := act(ctx)
		got.Lock()
		defer got.Unlock()
		got.answer = answer
		return err
	})
	got.Lock()
	defer got.Unlock()
	return got.answer, err
}

func (l *life) DrainLock(ctx context.Context) (types.DrainLock, error) {
	return ask(ctx, l, "", l.Cluster.DrainLock)
}

func (l *life) FreshNodes(ctx context.Context) ([]types.Node, error) {
	return ask(ctx, l, "", l.Cluster.FreshNodes)
}

func (l *life) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	effect := "take drain lock: create leases"
	if lock.Version != "" {
		effect = "take drain lock: patch leases"
	}
	return ask(ctx, l, effect, func(ctx context.Context) (types.DrainLock, error) { return l.Cluster.SetDrainLock(ctx, lock) })
}

func (l *life) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	return l.do(ctx, "free drain lock: delete leases", func(ctx context.Context) error { return l.Cluster.FreeDrainLock(ctx, lock) })
}

func (l *life) DeleteNode(ctx context.Context, node types.Node) error {
	return l.do(ctx, "delete node: delete nodes", func(ctx context.Context) error { return l.Cluster.DeleteNode(ctx, node) })
}

func (l *life) Cordon(ctx context.Context, node string, cordon types.Cordon) error {
	return l.do(ctx, "cordon: patch nodes", func(ctx context.Context) error { return l.Cluster.Cordon(ctx, node, cordon) })
}

func (l *life) Event(ctx context.Context, e types.Event) error {
	return l.do(ctx, l.EventEffect(e), func(ctx context.Context) error { return l.Cluster.Event(ctx, e) })
}

// killed tells of the removal of n3 with n1 killed at its n-th request. It
// reports whether there was one.
func (s *stage) killed(n, mode int, again bool, others ...string) bool {
	l := &life{Cluster: s.cluster, t: s, at: n, mode: mode, died: make(chan struct{})}
	a := s.start("n1", func(a *agent) { a.kube = l })
	for _, name := range others {
		s.start(name)
	}
	select {
	case <-l.died:
	case <-time.After(2 * time.Minute):
		return false
	}
	synctest.Wait()
	a.stop()
	if again {
		s.after(time.Second)
		s.start("n1", func(a *agent) { a.kube = s.cluster })
	}
	s.after(4 * time.Minute)
	return true
}

// removesOnce has n1 remove n3, whose kubelet then makes its Node again.
func (s *stage) removesOnce() {
	before, _ := s.nodes.Get("n3")
	s.start("n1")
	s.after(2 * time.Minute)
	if s.there("n3") {
		s.Fatalf("it is not removed: %+v", s.says(s.agents["n1"]))
	}
	s.agents["n1"].stop()
	before.UID += "-again"
	_ = s.nodes.Publish("n3", before)
}

func TestARemovalThatIsKilledAnywhereIsDoneAllTheSameAndLeavesNoLock(t *testing.T) {
	for range seeds.Each(t, 1) {
		removals(t)
	}
}

func removals(t *testing.T) {
	t.Helper()
	for mode := range killModes {
		for _, row := range []struct {
			rule   string
			again  bool
			others []string
			lock   types.DrainLock
			before int // how often the Node was removed before
		}{
			{"it comes back", true, nil, types.DrainLock{}, 0},
			{"it comes back, and a Node that is gone holds the lock", true, nil, types.DrainLock{Holder: "n9", BootID: "boot"}, 0},
			{"it comes back beside another", true, []string{"n2"}, types.DrainLock{}, 0},
			{"it stays away", false, []string{"n2"}, types.DrainLock{}, 0},
			{"it comes back, and the Node was removed before", true, nil, types.DrainLock{}, 1},
		} {
			t.Run(fmt.Sprintf("mode %d, %s", mode, row.rule), func(t *testing.T) {
				for n, died := 1, true; died; n++ {
					play(t, func(s *stage) {
						if row.lock.Holder != "" {
							s.cluster.SetLock(row.lock)
						}
						for range row.before {
							s.removesOnce()
						}
						died = s.killed(n, mode, row.again, row.others...)
						if s.there("n3") || !s.there("n1") || !s.there("n2") {
							s.Errorf("killed at %d: not the stale one alone is removed", n)
						}
						// A node that never comes back keeps what it took until its Node goes.
						if lock := s.cluster.Lock(); lock.Holder != "" && row.again {
							s.Errorf("killed at %d: the lock is left %+v", n, lock)
						}
						if told := len(s.cluster.Events()); told < row.before || told > row.before+1 || !died && told == row.before {
							s.Errorf("killed at %d: after %d removals %d Events were told", n, row.before+1, told)
						}
					})
					if t.Failed() || n > 50 {
						t.Fatalf("at request %d", n)
					}
				}
			})
		}
	}
}
