package drain

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// neighbour is n2 of a stage, with an agent of its own.
type neighbour struct {
	zedagent source
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
	c.DeviceOp, c.Update, c.Operator, c.API, c.Status = &n.zedagent, &source{}, &source{}, &n.api, &n.status
	c.Info, c.NodePods = info, &pubsub.Table[types.Pod]{}
	c.Progress, c.Journal = &explained{}, &journal{}
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

func TestADrainWaitsForANodeThatIsCompleteWithoutTheLock(t *testing.T) {
	for name, connects := range map[string]func(*stage, *neighbour){
		"before the lock was had": func(s *stage, n *neighbour) {
			n.answers(true)
			time.Sleep(time.Second)
			s.request(&s.zedagent, deviceOp)
		},
		"between the cordon and COMPLETE": func(s *stage, n *neighbour) {
			s.kube.Block(appZero, true)
			s.request(&s.zedagent, deviceOp)
			time.Sleep(20 * time.Second)
			s.cordoned(true, true)
			n.answers(true)
			time.Sleep(time.Second)
			s.kube.Block(appZero, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				n := s.neighbour()
				defer func() { n.stop() }()
				defer s.run()()
				s.drainsAlone(n)
				connects(s, n)
				time.Sleep(10 * time.Minute)
				if is, _ := s.status.Get(types.Global); final(is.Status) || n.is() != types.DrainComplete {
					t.Errorf("n1 is %v, n2 %v, which has not rebooted", is.Status, n.is())
				}
				if row, _ := s.nodes.Get("n2"); !row.Unschedulable || s.waited("node n2 ") == 0 {
					t.Errorf("n2 is cordoned: %t; n1 said that it waits for it %d times", row.Unschedulable, s.waited("node n2 "))
				}
				_ = n.zedagent.Unpublish(types.Global) // as after its reboot
				time.Sleep(time.Minute)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
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
				time.Sleep(10 * time.Minute)
				if is, _ := s.status.Get(types.Global); final(is.Status) || n.is() != types.DrainComplete {
					t.Errorf("n1 is %v, n2 %v, which has not rebooted", is.Status, n.is())
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
