package drain

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// ahead is an API server whose lists show pods before the watch does: each list
// shows those that were bound to the node a moment ago.
type ahead struct {
	Kube
	s    *stage
	lag  time.Duration // of the watch; negative for a pod that it never shows
	mu   sync.Mutex
	next []types.Pod // bound to the node at the next list
	from int         // of the lists that show them, 1 for the first
}

func (a *ahead) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	pods, err := a.Kube.PodsToEvict(ctx, node)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.from--; a.from > 0 {
		return pods, err
	}
	for _, p := range a.next {
		pods = append(pods, p)
		if a.lag >= 0 {
			time.AfterFunc(a.lag, func() { a.shown(p) })
		}
	}
	a.next = nil
	return pods, err
}

func (a *ahead) shown(p types.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.s.pods.Publish(p.Key(), p)
}

func TestAPodThatAListShowsBeforeTheWatchIsEvictedToo(t *testing.T) {
	for name, row := range map[string]struct {
		list int // that shows it first
		lag  time.Duration
	}{
		"in the first list":             {1, 20 * time.Millisecond},
		"in the list before COMPLETE":   {2, 20 * time.Millisecond},
		"gone before the watch told it": {1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				a := &ahead{Kube: s.kube, s: s, lag: row.lag, from: row.list}
				s.via = a
				a.next = []types.Pod{{Namespace: "eve-kube-app", Name: "late", UID: "late", NodeName: "n1"}}
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(2 * time.Minute)
				s.is(types.DrainComplete, deviceOp)
				if _, there := s.pods.Get("eve-kube-app/late"); there {
					t.Error("COMPLETE with the pod still on the node")
				}
			})
		})
	}
}

// stuck is a list that holds a pod which the watch never shows and which no
// eviction removes.
type stuck struct {
	Kube
	pod types.Pod
}

func (s *stuck) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	pods, err := s.Kube.PodsToEvict(ctx, node)
	return append(pods, s.pod), err
}

func TestAPodThatOnlyListsShowHoldsCompleteBackAndIsNamed(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.via = &stuck{Kube: s.kube, pod: types.Pod{Namespace: "apps", Name: "ghost", UID: "ghost", NodeName: "n1"}}
		s.hours(1)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		p, _ := s.progress.Get(types.Global)
		if p.Pods != (types.DrainPods{Total: 2, Evicted: 1, Waiting: 1}) {
			t.Errorf("%+v", p.Pods)
		}
		time.Sleep(time.Hour)
		s.is(types.DrainFailedDrain, deviceOp)
		if p, _ = s.progress.Get(types.Global); !strings.Contains(p.Reason, "apps/ghost") {
			t.Errorf("the reason is %q", p.Reason)
		}
		if lists := len(s.kube.Calls("list")); lists > 700 {
			t.Errorf("%d lists in an hour", lists)
		}
	})
}
