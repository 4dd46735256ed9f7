package drain

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// neighbour is n2 of a stage, with an agent of its own.
type neighbour struct {
	zedagent source
	operator source
	k3s      pubsub.Table[types.KubeLifecycle]
	api      pubsub.Table[types.APIStatus]
	status   recorder
	force    string
	stop     func()
}

// neighbour starts the agent of n2.
func (s *stage) neighbour() *neighbour {
	n := &neighbour{force: filepath.Join(s.t.TempDir(), "force")}
	n.answers(true)
	info := &pubsub.Table[types.EdgeNodeInfo]{}
	_ = info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n2"})
	c := s.component()
	c.DeviceOp, c.Update, c.Operator, c.API, c.Status = &n.zedagent, &source{}, &n.operator, &n.api, &n.status
	c.Info, c.NodePods = info, &pubsub.Table[types.Pod]{}
	c.Progress, c.Journal, c.Lifecycle = &explained{}, &journal{}, &n.k3s
	c.ForceFiles, c.FaultMarker, c.Markers = []string{n.force}, n.force+"-wait", nil
	n.stop = s.start(c)
	return n
}

// answers says whether the API server of n2 does.
func (n *neighbour) answers(yes bool) {
	is := types.APIStatus{Synced: true, Apps: true}
	if !yes {
		is.SilentSince, is.Reason = time.Now(), "cut off"
	}
	_ = n.api.Publish(types.Global, is)
}

func (n *neighbour) is() types.DrainStatus {
	synctest.Wait()
	is, _ := n.status.Get(types.Global)
	return is.Status
}

// drainsAlone lets the drain of n2 become complete without an API server.
func (s *stage) drainsAlone(n *neighbour) {
	s.t.Helper()
	n.answers(false)
	s.request(&n.zedagent, deviceOp)
	time.Sleep(310 * time.Second)
	if is := n.is(); is != types.DrainComplete {
		s.t.Fatalf("n2, which is cut off, is %v", is)
	}
}

// beside lets n2 become complete without the lock, which n1 has for a drain that cannot end yet.
func (s *stage) beside(n *neighbour) {
	s.t.Helper()
	s.drainsAlone(n)
	s.kube.Block(appZero, true)
	s.request(&s.zedagent, deviceOp)
	time.Sleep(20 * time.Second)
	s.cordoned(true, true)
	n.answers(true)
	time.Sleep(time.Second)
	if row, _ := s.nodes.Get("n2"); !row.Unschedulable || row.DrainReason != string(types.PhaseComplete) {
		s.t.Fatalf("n2 is cordoned: %t, reason %s", row.Unschedulable, row.DrainReason)
	}
}

// stays checks that n1 is not Complete in d.
func (s *stage) stays(d time.Duration) {
	s.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if is, _ := s.status.Get(types.Global); final(is.Status) {
		s.t.Fatalf("n1 is %v", is.Status)
	}
}

// uncordonedFor checks that n1 is not cordoned in d.
func (s *stage) uncordonedFor(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		s.cordoned(false, false)
	}
}

func TestADrainWaitsForANodeThatIsCompleteWithoutTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		defer s.run()()
		s.beside(n)
		s.kube.Block(appZero, false)
		s.stays(10 * time.Minute)
		if n.is() != types.DrainComplete || s.waited("drain of node n2 is complete") == 0 {
			t.Errorf("n2 is %v, which has not rebooted; n1 said that it waits for it %d times", n.is(), s.waited("drain of node n2 is complete"))
		}
		_ = n.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestADrainWaitsAtItsGatesForANodeThatIsCompleteWithoutTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		defer s.run()()
		s.beside(n)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(500 * time.Millisecond)
		s.request(&s.zedagent, deviceOp)
		looks := len(s.kube.Calls("nodes"))
		s.uncordonedFor(6 * time.Second)
		if looks = len(s.kube.Calls("nodes")) - looks; s.waited("node n2 ") == 0 || looks > 5 {
			t.Errorf("it said %d times that it waits for n2, and listed the nodes %d times", s.waited("node n2 "), looks)
		}
		s.kube.Block(appZero, false)
		s.stays(10 * time.Minute)
		if l := s.kube.Lock(); l.Holder != "n2" {
			t.Errorf("the lock, which was free, is %q's", l.Holder)
		}
	})
}

func TestADrainWaitsForTheRebootOfANodeThatWasCompleteWithoutTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Etcd = false }) // or quorum would be missing
		n := s.neighbour()
		defer s.run()()
		s.beside(n)
		s.kube.Block(appZero, false)
		s.stays(time.Minute)
		n.stop()
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		s.stays(time.Hour)
		s.kube.ChangeNode("n2", func(n *types.Node) { n.BootID = "boot-9" })
		s.stays(time.Hour)
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionTrue })
		s.stays(time.Hour) // its drain may be complete again, in this boot
		s.kube.ChangeNode("n2", func(n *types.Node) { n.CordonKept = true })
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestADrainDoesNotWaitForWhatAnAgentThatIsGoneHasSaid(t *testing.T) {
	complete := func(n *types.Node) {
		n.Unschedulable, n.CordonedBy, n.DrainReason = true, &types.Cordon{By: "zedkube"}, string(types.PhaseComplete)
	}
	for name, changes := range map[string][]func(*types.Node){
		"its stamp is stale":                 {complete, func(n *types.Node) { n.StampStale = true }},
		"it was off before this drain began": {complete, func(n *types.Node) { n.Ready, n.Etcd = types.ConditionUnknown, false }},
		"it drains again":                    {complete, func(n *types.Node) { n.DrainInProgress = types.ConditionTrue }},
		"it is schedulable":                  {complete, func(n *types.Node) { n.Unschedulable = false }},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				for _, change := range changes {
					s.kube.ChangeNode("n2", change)
				}
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(5 * time.Minute) // with the window for agents that know no lock
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

// refusing is an API server that lets no cordon through.
type refusing struct {
	Kube
	now atomic.Bool
}

func (r *refusing) Cordon(ctx context.Context, node string, by types.Cordon) error {
	if r.now.Load() {
		return errors.New("500")
	}
	return r.Kube.Cordon(ctx, node, by)
}

func TestNoCordonFollowsOnceAnotherNodeIsKnownToBeComplete(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		kube := &refusing{Kube: s.kube}
		kube.now.Store(true)
		s.via = kube
		defer s.run()()
		s.drainsAlone(n)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Second)
		if l := s.kube.Lock(); l.Holder != "n1" {
			t.Fatalf("the lock is %q's", l.Holder)
		}
		n.answers(true)
		time.Sleep(100 * time.Millisecond)
		kube.now.Store(false)
		s.uncordonedFor(10 * time.Second)
		if l := s.kube.Lock(); l.Holder != "n2" {
			t.Errorf("the lock, which nothing was done under, is %q's", l.Holder)
		}
	})
}

// behind is an API server whose lists show no conditions of drains yet.
type behind struct{ Kube }

func (b behind) FreshNodes(ctx context.Context) ([]types.Node, error) {
	nodes, err := b.Kube.FreshNodes(ctx)
	for i := range nodes {
		nodes[i].DrainReason = ""
	}
	return nodes, err
}

func TestWhatTheWatchShowsOfANodeThatIsCompleteCountsAfterTheLook(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		s.via = behind{s.kube}
		defer s.run()()
		s.beside(n)
		s.kube.Block(appZero, false)
		s.stays(10 * time.Minute)
	})
}

func TestANodeThatIsCompleteTakesTheLockOnceItIsFree(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		defer s.run()()
		s.beside(n)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(30 * time.Second)
		if l := s.kube.Lock(); l.Holder != "n2" {
			t.Errorf("the lock is %q's", l.Holder)
		}
		writes := len(s.kube.Calls("setlock"))
		time.Sleep(10 * time.Minute)
		if n := len(s.kube.Calls("setlock")) - writes; n > 0 {
			t.Errorf("it has written its lock %d times since", n)
		}
	})
}

// noting notes the conditions that are written.
type noting struct {
	Kube
	mu      sync.Mutex
	written []string
}

func (w *noting) SetDrainConditions(ctx context.Context, node string, is types.DrainConditions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := fmt.Sprint(is.Reason, " ", is.InProgress); !slices.Contains(w.written, text) {
		w.written = append(w.written, text)
	}
	return w.Kube.SetDrainConditions(ctx, node, is)
}

func (w *noting) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.written)
}

// A change of k3s needs the lock: no drain may wait for it that has that.
func TestAForcedDrainForK3sWaitsForTheLock(t *testing.T) {
	for name, operator := range map[string]bool{"alone": false, "and a person asks as well": true} {
		t.Run(name, func(t *testing.T) { forcedForK3s(t, operator) })
	}
}

func forcedForK3s(t *testing.T, operator bool) {
	t.Helper()
	story(t, 1, func(s *stage) {
		w := &noting{Kube: s.kube}
		s.via = w
		n := s.neighbour()
		s.via = nil
		defer func() { n.stop() }()
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		_ = n.k3s.Publish(types.Global, types.KubeLifecycle{Drain: types.NodeDrainRequest{RequestedAt: time.Now()}})
		if operator {
			s.request(&n.operator, nobody)
		}
		time.Sleep(20 * time.Second)
		s.write(n.force, `{"Status":9}`)
		time.Sleep(20 * time.Second)
		if row, _ := s.nodes.Get("n2"); !row.Unschedulable || row.DrainReason != types.DrainForced || row.DrainInProgress != types.ConditionTrue {
			t.Errorf("n2 is cordoned: %t, reason %s, in progress %s", row.Unschedulable, row.DrainReason, row.DrainInProgress)
		}
		s.kube.Block(appZero, false)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		if row, _ := s.nodes.Get("n2"); s.kube.Lock().Holder != "n2" || row.DrainInProgress == types.ConditionTrue {
			t.Errorf("the lock is %q's; n2 is in progress: %s", s.kube.Lock().Holder, row.DrainInProgress)
		}
		_ = n.k3s.Publish(types.Global, types.KubeLifecycle{})
		_ = n.operator.Unpublish(types.Global)
		time.Sleep(time.Minute)
		if want := []string{"Gates true", "Forced true", "Forced false", "Idle false"}; !slices.Equal(w.texts(), want) {
			t.Errorf("the conditions were %q, want %q", w.texts(), want)
		}
	})
}

func TestADrainForK3sTakesALockThatIsGoneAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := s.neighbour()
		defer func() { n.stop() }()
		_ = n.k3s.Publish(types.Global, types.KubeLifecycle{Drain: types.NodeDrainRequest{RequestedAt: time.Now()}})
		time.Sleep(time.Minute)
		if row, _ := s.nodes.Get("n2"); s.kube.Lock().Holder != "n2" || row.DrainReason != string(types.PhaseComplete) {
			t.Fatalf("the lock is %q's, the drain of n2 is %s", s.kube.Lock().Holder, row.DrainReason)
		}
		s.kube.SetLock(types.DrainLock{}) // zedkube drain unlock, or etcd was restored
		time.Sleep(30 * time.Second)
		if l := s.kube.Lock(); l.Holder != "n2" {
			t.Errorf("the lock is %q's", l.Holder)
		}
		s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-1", Task: types.TaskK3sChange}) // it was faster
		time.Sleep(30 * time.Second)
		if row, _ := s.nodes.Get("n2"); row.DrainInProgress != types.ConditionTrue {
			t.Errorf("n1 may wait for it: in progress %s", row.DrainInProgress)
		}
		s.kube.SetLock(types.DrainLock{})
		time.Sleep(30 * time.Second)
		if row, _ := s.nodes.Get("n2"); s.kube.Lock().Holder != "n2" || row.DrainInProgress == types.ConditionTrue {
			t.Errorf("the lock is %q's, in progress %s", s.kube.Lock().Holder, row.DrainInProgress)
		}
	})
}

func TestADrainWaitsForANodeThatWasForcedWithoutTheLock(t *testing.T) {
	for name, cut := range map[string]bool{"while it waited": false, "while it was cut off": true} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				n := s.neighbour()
				defer func() { n.stop() }()
				s.kube.Block(appZero, true)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(20 * time.Second)
				n.answers(!cut)
				s.request(&n.zedagent, deviceOp)
				time.Sleep(20 * time.Second)
				s.write(n.force, `{"Status":9}`)
				time.Sleep(20 * time.Second)
				n.answers(true)
				time.Sleep(time.Second)
				s.kube.Block(appZero, false)
				s.stays(10 * time.Minute)
				if n.is() != types.DrainComplete {
					t.Errorf("n2 is %v, which has not rebooted", n.is())
				}
				_ = n.zedagent.Unpublish(types.Global)
				time.Sleep(time.Minute)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestANodeThatIsIdleIsNoLongerCalledForced(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(5 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.DrainReason != types.DrainForced {
			t.Errorf("reason %s after the force file", n.DrainReason)
		}
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(5 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.DrainReason != string(types.PhaseIdle) {
			t.Errorf("reason %s of an idle node", n.DrainReason)
		}
	})
}

func TestTheConditionsOfACompleteDrainComeBeforeItsEvents(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetLatency(500 * time.Millisecond)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			n, _ := s.nodes.Get("n1")
			for _, e := range s.kube.Events() {
				if e.Reason == "DrainComplete" && n.DrainReason != string(types.PhaseComplete) {
					t.Fatalf("the Event is there, the reason is %s", n.DrainReason)
				}
			}
		}
		s.is(types.DrainComplete, deviceOp)
	})
}
