package drain

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// hanging is a cluster of which one verb never answers, while all else does.
type hanging struct {
	*kubetest.Cluster
	verb atomic.Value // its name, "" for none
}

func (h *hanging) hang(ctx context.Context, verb string) error {
	if h.verb.Load() != verb {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second): // the verbs of kubeapi are bounded
	}
	return errors.Join(context.DeadlineExceeded, ctx.Err())
}

func (h *hanging) FreshNodes(ctx context.Context) ([]types.Node, error) {
	if err := h.hang(ctx, "nodes"); err != nil {
		return nil, err
	}
	return h.Cluster.FreshNodes(ctx)
}

func (h *hanging) DrainLock(ctx context.Context) (types.DrainLock, error) {
	if err := h.hang(ctx, "lock"); err != nil {
		return types.DrainLock{}, err
	}
	return h.Cluster.DrainLock(ctx)
}

func (h *hanging) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	if err := h.hang(ctx, "list"); err != nil {
		return nil, err
	}
	return h.Cluster.PodsToEvict(ctx, node)
}

func (h *hanging) Evict(ctx context.Context, pod types.Pod) error {
	if err := h.hang(ctx, "evict"); err != nil {
		return err
	}
	return h.Cluster.Evict(ctx, pod)
}

func (h *hanging) Storage(ctx context.Context, node string) (types.Storage, error) {
	if err := h.hang(ctx, "storage"); err != nil {
		return types.Storage{}, err
	}
	return h.Cluster.Storage(ctx, node)
}

func (h *hanging) Situations(ctx context.Context, node string, pods []types.Pod) ([]types.PodSituation, error) {
	if err := h.hang(ctx, "situations"); err != nil {
		return nil, err
	}
	return h.Cluster.Situations(ctx, node, pods)
}

func TestAVerbThatHangsEndsNoDrainAndHoldsNoWithdrawalUp(t *testing.T) {
	for _, verb := range []string{"nodes", "lock", "list", "evict", "storage", "situations"} {
		for _, at := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprint(verb, " ", at), func(t *testing.T) {
				story(t, 3, func(s *stage) {
					s.kube.Block(appZero, true)
					kube := &hanging{Cluster: s.kube}
					s.via = kube
					defer s.run()()
					s.request(&s.zedagent, deviceOp)
					time.Sleep(at)
					kube.verb.Store(verb)
					s.kube.Block(appZero, false)
					time.Sleep(20 * time.Minute)
					now, _ := s.status.Get(types.Global)
					if final(now.Status) && verb != "situations" && at == 0 {
						t.Errorf("%v with a verb that hangs", now.Status)
					}
					kube.verb.Store("")
					time.Sleep(2 * time.Minute)
					s.is(types.DrainComplete, deviceOp)
					_ = s.zedagent.Unpublish(types.Global)
					kube.verb.Store(verb)
					time.Sleep(time.Second)
					s.is(types.DrainNotRequested, nobody)
					kube.verb.Store("")
					time.Sleep(2 * time.Minute)
					s.nothingLeft()
				})
			})
		}
	}
}

func TestAQuestionThatHangsHoldsNoEvictionUp(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.Block(appZero, true)
		kube := &hanging{Cluster: s.kube}
		kube.verb.Store("situations")
		s.via = kube
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		s.kube.Block(appZero, false)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAnAPIThatGetsSlowInWhateverPhaseIsNotDead(t *testing.T) {
	for name, until := range phasesOf {
		if name == "after FAILEDDRAIN" || name == "after a dead API" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				stop := s.run()
				defer func() { stop() }()
				until(s)
				s.kube.SetLatency(8 * time.Second)
				time.Sleep(20 * time.Minute)
				if p, _ := s.progress.Get(types.Global); p.Journal.Dead {
					t.Errorf("taken for dead: %s", p.Reason)
				}
				s.kube.SetLock(types.DrainLock{})
				s.kube.Block(appZero, false)
				stop()
				stop = s.run()
				if name != "after FAILEDCORDON" {
					time.Sleep(5 * time.Minute)
					s.is(types.DrainComplete, deviceOp)
				}
				_ = s.zedagent.Unpublish(types.Global)
				time.Sleep(5 * time.Minute)
				s.nothingLeft()
				if err := inOrder(s.status.seen); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnAPIThatIsDeadForAWhileInWhateverPhaseOnlyDelays(t *testing.T) {
	for _, fault := range []kubetest.Fault{kubetest.Refused, kubetest.Hung} {
		for at := range 12 {
			t.Run(fmt.Sprintf("%v after %d x 300 ms", fault, at), func(t *testing.T) {
				story(t, 5, func(s *stage) {
					s.kube.SetLatency(200 * time.Millisecond)
					stop := s.run()
					s.request(&s.zedagent, deviceOp)
					time.Sleep(time.Duration(at) * 300 * time.Millisecond)
					s.kube.SetFault(fault)
					time.Sleep(100 * time.Second)
					stop()
					time.Sleep(10 * time.Second)
					defer s.run()()
					time.Sleep(100 * time.Second)
					s.kube.SetFault(kubetest.None)
					time.Sleep(time.Minute)
					s.is(types.DrainComplete, deviceOp)
					s.cordoned(true, true)
					s.oneDrain(5)
					if p := s.phase(types.PhaseComplete, "no pod is left"); p.Pods.Total != 5 {
						t.Errorf("%+v", p.Pods)
					}
				})
			})
		}
	}
}
