package drain

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A kill comes just before an effect of the agent, or just after a verb whose
// answer is lost, or while its request is on its way and the agent long dead.
const (
	beforeEffect = iota
	afterEffect
	onItsWay
	killModes
)

var errKilled = errors.New("killed")

// life is one run of an agent that ends at its n-th effect as SIGKILL ends it:
// nothing it does from then on shows. Effects are the writes of the journal, of
// the status and of the progress record, and the verbs.
type life struct {
	Kube
	mu      sync.Mutex
	effects int
	at      int // the last effect; 0 for none
	mode    int
	dead    bool
	died    chan struct{}
}

// do is one effect.
func (l *life) do(ctx context.Context, verb bool, act func(context.Context) error) error {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return gone(verb)
	}
	mode := l.mode
	if mode == beforeEffect || verb { // after a publication is before what follows
		l.effects++
	}
	last := l.effects == l.at && (mode == beforeEffect || verb)
	l.dead = last
	l.mu.Unlock()
	switch {
	case !last:
		return act(ctx)
	case mode == afterEffect:
		_ = act(context.WithoutCancel(ctx))
	case mode == onItsWay:
		time.AfterFunc(3*time.Second, func() { _ = act(context.WithoutCancel(ctx)) })
	}
	close(l.died)
	return gone(verb)
}

// gone ends whoever does something after the kill: the step, or its call.
func gone(verb bool) error {
	if !verb {
		runtime.Goexit()
	}
	return errKilled
}

// mortal is a publication of an agent that may be killed.
type mortal[T any] struct {
	pubsub.Writer[T]
	l *life
}

func (m mortal[T]) Publish(key string, v T) error {
	return m.l.do(context.Background(), false, func(context.Context) error { return m.Writer.Publish(key, v) })
}

func (l *life) verb(ctx context.Context, act func(context.Context) error) error {
	return l.do(ctx, true, act)
}

func (l *life) Cordon(ctx context.Context, node string, by types.Cordon) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.Cordon(ctx, node, by) })
}

func (l *life) Uncordon(ctx context.Context, node string) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.Uncordon(ctx, node) })
}

func (l *life) UncordonLegacy(ctx context.Context, node string, before time.Time) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.UncordonLegacy(ctx, node, before) })
}

func (l *life) Unkeep(ctx context.Context, node string) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.Unkeep(ctx, node) })
}

func (l *life) Evict(ctx context.Context, pod types.Pod) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.Evict(ctx, pod) })
}

func (l *life) SetDrainLock(ctx context.Context, lock types.DrainLock) (set types.DrainLock, err error) {
	err = l.verb(ctx, func(ctx context.Context) error {
		set, err = l.Kube.SetDrainLock(ctx, lock)
		return err
	})
	return set, err
}

func (l *life) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.FreeDrainLock(ctx, lock) })
}

func (l *life) DeleteNode(ctx context.Context, node types.Node) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.DeleteNode(ctx, node) })
}

func (l *life) SetDrainConditions(ctx context.Context, node string, cond types.DrainConditions) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.SetDrainConditions(ctx, node, cond) })
}

func (l *life) Event(ctx context.Context, event types.Event) error {
	return l.verb(ctx, func(ctx context.Context) error { return l.Kube.Event(ctx, event) })
}

// mortalRun starts an agent that dies at its n-th effect, and another one that
// does not, a second later. It returns the stop of whichever runs, and the life.
func (s *stage) mortalRun(n, mode int) (stop func(), l *life) {
	c := s.component()
	l = &life{Kube: c.Kube, at: n, mode: mode, died: make(chan struct{})}
	c.Kube = l
	c.Status = mortal[types.NodeDrainStatus]{c.Status, l}
	c.Progress = mortal[types.NodeDrainProgress]{c.Progress, l}
	c.Journal = mortal[types.NodeDrainJournal]{c.Journal, l}
	over, done := make(chan struct{}), make(chan struct{})
	end := s.start(c)
	go func() {
		defer close(done)
		select {
		case <-l.died:
			end()
			time.Sleep(time.Second)
			end = s.run()
		case <-over:
		}
		<-over
		end()
	}()
	synctest.Wait()
	return func() { close(over); <-done }, l
}

// killedAnywhere tells a story again and again, each time with the agent killed
// at another point of it, until it is killed nowhere. What was before is told
// without an agent, or with one of its own.
func killedAnywhere(t *testing.T, pods int, before, tell func(*stage)) {
	t.Helper()
	for mode := range killModes {
		for n, died := 1, true; died; n++ {
			story(t, pods, func(s *stage) {
				before(s)
				stop, l := s.mortalRun(n, mode)
				defer func() { stop() }()
				tell(s)
				l.mu.Lock()
				died = l.effects >= n
				l.mu.Unlock()
				if s.t.Failed() {
					s.t.Fatalf("killed at effect %d in mode %d; history %s", n, mode, s.status.path())
				}
			})
			if t.Failed() || n > 500 {
				t.Fatalf("at effect %d in mode %d", n, mode)
			}
		}
	}
}

// nothingLeft checks that the node is as if there had been no drain.
func (s *stage) nothingLeft() {
	s.t.Helper()
	s.cordoned(false, false)
	if l := s.kube.Lock(); l.Holder != "" {
		s.t.Errorf("the lock is still %s's", l.Holder)
	}
	if n, ok := s.nodes.Get("n1"); ok && (n.DrainInProgress == types.ConditionTrue || n.Drained == types.ConditionTrue) {
		s.t.Error("the Node's conditions still speak of a drain")
	}
}

// oneDrain checks the history of one drain that was told in order, and that
// each pod went and no other was touched.
func (s *stage) oneDrain(pods int) {
	s.t.Helper()
	if err := inOrder(s.status.seen); err != nil {
		s.t.Error(err)
	}
	starts := 0
	for i, h := range s.status.seen {
		if h.v.Status == types.DrainRequested && (i == 0 || s.status.seen[i-1].v.Status != types.DrainRequested) {
			starts++
		}
	}
	if starts != 1 {
		s.t.Errorf("%d drains", starts)
	}
	evicted := map[string]int{}
	for _, call := range s.kube.Calls("evict") {
		evicted[call.Object]++
	}
	for i := range pods {
		key := fmt.Sprintf("eve-kube-app/app-%d", i)
		if evicted[key] == 0 || evicted[key] > 3 {
			s.t.Errorf("%s was evicted %d times", key, evicted[key])
		}
		delete(evicted, key)
	}
	if len(evicted) > 0 {
		s.t.Errorf("evicted as well: %v", evicted)
	}
}
