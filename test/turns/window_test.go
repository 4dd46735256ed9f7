package turns

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// shared is a table of the API server, with the windows of the nodes' agents on it.
type shared[T any] struct {
	pubsub.Table[T]
	windows []*window[T]
}

func (s *shared[T]) Publish(key string, v T) error {
	_ = s.Table.Publish(key, v)
	s.tell(key)
	return nil
}

func (s *shared[T]) Unpublish(key string) error {
	_ = s.Table.Unpublish(key)
	s.tell(key)
	return nil
}

func (s *shared[T]) tell(key string) {
	v, there := s.Get(key)
	for _, w := range s.windows {
		w.hear(key, v, there && (w.shows == nil || w.shows(v)))
	}
}

// open is the window of a node, which shows only what it is to show; nil for all.
func (s *shared[T]) open(n *node, shows func(T) bool) *window[T] {
	w := &window[T]{node: n, of: s, shows: shows}
	s.windows = append(s.windows, w)
	return w
}

// window is a table as an agent's watch has it: late, and not at all while its API server is silent.
type window[T any] struct {
	pubsub.Table[T]
	node  *node
	of    *shared[T]
	shows func(T) bool

	mu    sync.Mutex
	queue []news[T]
}

type news[T any] struct {
	due   time.Time
	key   string
	row   T
	there bool
}

func (w *window[T]) hear(key string, v T, there bool) {
	w.mu.Lock()
	due := time.Now().Add(time.Duration(w.node.lag.Load()))
	if n := len(w.queue); n > 0 && due.Before(w.queue[n-1].due) {
		due = w.queue[n-1].due
	}
	w.queue = append(w.queue, news[T]{due, key, v, there})
	w.mu.Unlock()
	time.AfterFunc(time.Until(due), w.flush)
}

// flush shows what has arrived.
func (w *window[T]) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && !w.queue[0].due.After(time.Now()) && w.node.answers.Load() {
		if n := w.queue[0]; n.there {
			_ = w.Table.Publish(n.key, n.row)
		} else {
			_ = w.Table.Unpublish(n.key)
		}
		w.queue = w.queue[1:]
	}
}

// relist shows all that there is, as a watch does that begins again.
func (w *window[T]) relist() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = nil
	rows := map[string]T{}
	for key, v := range w.of.All() {
		if w.shows == nil || w.shows(v) {
			rows[key] = v
		}
	}
	_ = w.Replace(rows)
}

// life is a run of the agent of a node: what it calls after its end has no effect.
type life struct {
	*node
	dead func() bool
}

type callerKey struct{}

// gate is what a call of an agent meets. A write takes no time, so that it is written down in its order.
func gate(ctx context.Context, verb string) error {
	l := ctx.Value(callerKey{}).(*life)
	if verb != "setlock" && verb != "freelock" {
		time.Sleep(time.Duration(5+2*l.i) * time.Millisecond)
	}
	time.AfterFunc(time.Duration(11+l.i)*time.Millisecond, l.rings.Ring) // by then the caller has the answer
	switch {
	case l.dead():
		return kubetest.ErrKilled
	case !l.answers.Load():
		return fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)
	}
	return nil
}

// kube is the API server as one node's agent asks it.
type kube struct {
	*kubetest.Cluster
	*node
}

// FreshNodes has the renewals of kubelets that run.
func (k kube) FreshNodes(ctx context.Context) ([]types.Node, error) {
	nodes, err := k.Cluster.FreshNodes(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, n := range nodes {
		if of := k.nodes[n.Name]; !of.runs {
			nodes[i].RenewedAt = of.stopped
		}
	}
	return nodes, err
}

// Storage has what is attached to that node.
func (k kube) Storage(ctx context.Context, node string) (types.Storage, error) {
	s, err := k.Cluster.Storage(ctx, node)
	for _, v := range s.Volumes {
		if v.Engine == node {
			s.Attachments = append(s.Attachments, types.Attachment{Name: "csi-" + v.Name, Node: node, Volume: v.Name})
		}
	}
	return s, err
}

// SetDrainLock and FreeDrainLock write down what the lock is after them, also where the answer is lost.
func (k kube) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	k.locking.Lock()
	defer k.locking.Unlock()
	set, err := k.Cluster.SetDrainLock(ctx, lock)
	k.lockMay(k.name)
	return set, err
}

func (k kube) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	k.locking.Lock()
	defer k.locking.Unlock()
	err := k.Cluster.FreeDrainLock(ctx, lock)
	k.lockMay(k.name)
	return err
}
