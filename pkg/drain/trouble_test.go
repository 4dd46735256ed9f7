package drain

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAConnectionThatFailsIsNoRefusalOfTheCordon(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("cordon", fmt.Errorf("patch: %w", &net.OpError{Op: "dial", Err: errors.New("no route")}))
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(3 * time.Minute)
		s.is(types.DrainStarting, deviceOp)
		s.kube.FailVerb("cordon", nil)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if s.failures() != 1 {
			t.Errorf("%d failures logged", s.failures())
		}
	})
}

func TestADeadAPIDoesNotKeepTheDeviceFromItsReboot(t *testing.T) {
	for _, row := range []struct {
		api  string
		kill func(*stage)
	}{
		{"refusing connections", func(s *stage) { s.kube.SetFault(kubetest.Refused) }},
		{"hanging", func(s *stage) { s.kube.SetFault(kubetest.Hung) }},
		{"never heard of", func(s *stage) { _ = s.api.Unpublish(types.Global) }},
	} {
		t.Run(row.api, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				row.kill(s)
				defer s.run()()
				time.Sleep(time.Hour)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(299 * time.Second)
				s.is(types.DrainStarting, deviceOp)
				time.Sleep(3 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("2349")
			})
		})
	}
}

func TestASlowAPIIsNotDead(t *testing.T) {
	story(t, 20, func(s *stage) {
		defer s.run()()
		s.kube.SetLatency(8 * time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
		if n := len(s.kube.Calls("evict")); n != 20 {
			t.Errorf("%d evictions of 20 pods", n)
		}
	})
}

func TestARestartedAgentGoesOnWhereItWas(t *testing.T) {
	for after := range 9 {
		t.Run(fmt.Sprintf("%d x 400 ms after the request", after), func(t *testing.T) {
			story(t, 3, func(s *stage) {
				s.kube.SetLatency(300 * time.Millisecond)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Duration(after) * 400 * time.Millisecond)
				stop()
				s.zedagent.unheard = true
				stop = s.run()
				defer func() { stop() }()
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("234579")
			})
		})
	}
}

func TestRefusedCordonsFailTheDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("cordon", errors.New("forbidden"))
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		if n := len(s.kube.Calls("cordon")); n != maxRefusals {
			t.Errorf("%d cordons", n)
		}
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainFailedCordon, RequestedBy: deviceOp}); d < 9*cordonEvery || d > 10*cordonEvery {
			t.Errorf("FAILEDCORDON after %s", d)
		}
		s.kube.FailVerb("cordon", nil)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestADrainThatCannotEndFailsAtItsDeadline(t *testing.T) {
	story(t, 2, func(s *stage) {
		_ = s.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
			types.SettingDrainTimeout: {Key: types.SettingDrainTimeout, ItemType: types.ConfigItemInt, IntValue: 1},
		}})
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Minute)
		stop()
		stop = s.run()
		defer func() { stop() }()
		time.Sleep(30*time.Minute - 2*time.Second)
		s.is(types.DrainRetrying, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
		s.cordoned(false, false)
		time.Sleep(time.Hour)
		s.is(types.DrainFailedDrain, deviceOp)
		stop() // an agent that restarts now knows that this very request has failed
		stop = s.run()
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.kube.Block(appZero, false)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234578345" + "79")
	})
}

func TestANodeTheClusterDoesNotKnowIsNotKeptFromItsReboot(t *testing.T) {
	story(t, 0, func(s *stage) {
		_ = s.nodes.Unpublish("n1")
		_ = s.api.Publish(types.Global, types.APIStatus{}) // its own pods cannot be watched
		defer s.run()()
		time.Sleep(time.Hour)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(59 * time.Second)
		s.is(types.DrainStarting, deviceOp)
		time.Sleep(2 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAClusterNotSeenYetSaysNothingAboutTheNode(t *testing.T) {
	story(t, 0, func(s *stage) {
		for _, n := range []string{"n1", "n2", "n3"} {
			_ = s.nodes.Unpublish(n)
		}
		_ = s.api.Publish(types.Global, types.APIStatus{})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainStarting, deviceOp)
	})
}
