package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// hours is the setting of how long a drain may take.
func (s *stage) hours(n uint32) { s.setting(types.SettingDrainTimeout, n) }

func (s *stage) setting(key string, n uint32) {
	v := types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{}}
	if was, ok := s.settings.Get(types.Global); ok {
		for k, item := range was.GlobalSettings {
			v.GlobalSettings[k] = item
		}
	}
	v.GlobalSettings[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: n}
	_ = s.settings.Publish(types.Global, v)
}

// reboot is a new boot of the device, with its Node not yet Ready. No agent runs.
func (s *stage) reboot(id string) {
	_ = s.status.Unpublish(types.Global)
	_ = s.progress.Unpublish(types.Global)
	_, _, _ = s.zedagent.Unpublish(types.Global), s.baseos.Unpublish(types.Global), s.operator.Unpublish(types.Global)
	s.status.seen = nil
	s.bootID, s.booted = id, time.Now()
	time.Sleep(20 * time.Second)
}

// ready shows the own Node as the kubelet of this boot registers it.
func (s *stage) ready() {
	s.kube.ChangeNode("n1", func(n *types.Node) { n.Ready, n.BootID = types.ConditionTrue, s.bootID })
}

func TestKilledAnywhereTheSameBootGoesOn(t *testing.T) {
	t.Parallel()
	nothing := func(*stage) {}
	for name, story := range map[string]struct {
		pods         int
		before, tell func(*stage)
	}{
		"to COMPLETE and back": {3, nothing, func(s *stage) {
			s.request(&s.zedagent, deviceOp)
			time.Sleep(20 * time.Second)
			s.is(types.DrainComplete, deviceOp)
			s.cordoned(true, true)
			if s.kube.Lock().Holder != "n1" {
				s.t.Error("complete without the lock")
			}
			s.oneDrain(3)
			_ = s.zedagent.Unpublish(types.Global)
			time.Sleep(40 * time.Second)
			s.is(types.DrainNotRequested, nobody)
			s.nothingLeft()
		}},
		"for two requesters": {1, nothing, func(s *stage) {
			s.request(&s.baseos, osUpdate)
			time.Sleep(time.Second)
			s.request(&s.zedagent, deviceOp)
			time.Sleep(20 * time.Second)
			s.is(types.DrainComplete, osUpdate)
			device := s.status.when(s.booted, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
			update := s.status.when(s.booted, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: osUpdate})
			if device < 0 || update-device < edge {
				s.t.Errorf("told after %s and %s", device, update)
			}
			s.oneDrain(1)
		}},
		"to FAILEDDRAIN and a new request": {1, func(s *stage) { s.hour = time.Second; s.kube.Block(appZero, true) }, func(s *stage) {
			s.request(&s.zedagent, deviceOp)
			time.Sleep(time.Minute)
			s.is(types.DrainFailedDrain, deviceOp)
			s.nothingLeft()
			if err := inOrder(s.status.seen); err != nil {
				s.t.Error(err)
			}
			s.kube.Block(appZero, false)
			s.request(&s.zedagent, deviceOp)
			time.Sleep(20 * time.Second)
			s.is(types.DrainComplete, deviceOp)
		}},
		"to a withdrawal in the middle": {1, func(s *stage) { s.kube.Block(appZero, true) }, func(s *stage) {
			s.request(&s.zedagent, deviceOp)
			time.Sleep(3500 * time.Millisecond)
			_ = s.zedagent.Unpublish(types.Global)
			time.Sleep(40 * time.Second)
			s.is(types.DrainNotRequested, nobody)
			s.nothingLeft()
		}},
		"past a dead API and what is made up for": {1, nothing, func(s *stage) {
			s.kube.SetFault(kubetest.Refused)
			s.request(&s.zedagent, deviceOp)
			time.Sleep(310 * time.Second)
			s.is(types.DrainComplete, deviceOp)
			s.kube.SetFault(kubetest.None)
			time.Sleep(30 * time.Second)
			s.is(types.DrainComplete, deviceOp)
			s.cordoned(true, true)
			if s.kube.Lock().Holder != "n1" {
				s.t.Error("the lock was not made up for")
			}
			_ = s.zedagent.Unpublish(types.Global)
			time.Sleep(40 * time.Second)
			s.nothingLeft()
		}},
		"to a forced COMPLETE": {1, func(s *stage) { s.kube.Block(appZero, true) }, func(s *stage) {
			s.request(&s.zedagent, deviceOp)
			time.Sleep(5 * time.Second)
			s.write(s.force, `{"Status":9}`)
			time.Sleep(10 * time.Second)
			s.is(types.DrainComplete, deviceOp)
			s.cordoned(true, true)
			time.Sleep(time.Minute)
			s.is(types.DrainComplete, deviceOp)
			_ = s.zedagent.Unpublish(types.Global)
			time.Sleep(40 * time.Second)
			s.nothingLeft()
		}},
		"to the end of an operator's drain": {1, nothing, func(s *stage) {
			s.request(&s.operator, nobody)
			time.Sleep(20 * time.Second)
			s.is(types.DrainNotRequested, nobody)
			if p, _ := s.progress.Get(types.Global); p.Phase != types.PhaseComplete {
				s.t.Errorf("phase %s: %s", p.Phase, p.Reason)
			}
			_ = s.operator.Unpublish(types.Global)
			time.Sleep(40 * time.Second)
			s.path("2")
			s.nothingLeft()
		}},
		"into a new boot": {1, func(s *stage) {
			stop := s.run()
			s.request(&s.zedagent, deviceOp)
			time.Sleep(5 * time.Second)
			stop()
			s.reboot("boot-2")
		}, func(s *stage) {
			time.Sleep(20 * time.Second)
			s.is(types.DrainNotRequested, nobody)
			s.cordoned(true, true)
			s.ready()
			time.Sleep(40 * time.Second)
			s.path("2")
			s.nothingLeft()
		}},
		"out of the cluster": {1, func(s *stage) {
			_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
			_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipDoubtful})
			s.kube.Grace = 5 * time.Second
		}, func(s *stage) {
			_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeaving, Reason: "gone"})
			time.Sleep(2 * time.Minute)
			if p, _ := s.progress.Get(types.Global); !p.Left {
				s.t.Errorf("not left: %s", p.Reason)
			}
			if _, ok := s.nodes.Get("n1"); ok {
				s.t.Error("the Node is still there")
			}
			_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
			time.Sleep(time.Minute)
			s.path("21")
		}},
	} {
		t.Run(name, func(t *testing.T) { killedAnywhere(t, story.pods, story.before, story.tell) })
	}
}
