package apps

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// source is a table whose publisher may not have spoken yet.
type source[T any] struct {
	pubsub.Table[T]
	silent bool
}

func (s *source[T]) Synced() bool { return !s.silent }

type story struct {
	*testing.T
	configs source[types.AppInstanceConfig]
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	known   pubsub.Table[types.KnownNode]
	info    pubsub.Table[types.EdgeNodeInfo]
	status  pubsub.Table[types.ENClusterAppStatus]
	repairs pubsub.Table[types.AppRepairStatus]
	asleep  time.Duration // of which the clock knows nothing
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		s := &story{T: t}
		setup(s)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now().Add(-time.Hour)
		done := make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Configs: &s.configs, Nodes: &s.nodes, AppPods: &s.pods, API: &s.api,
			Agent: &pubsub.Table[types.ZedAgentStatus]{},
			Known: &s.known, Mounts: &pubsub.Table[types.MountRecovery]{}, Off: &pubsub.Table[types.WorkloadsStatus]{}, Info: &s.info, Status: &s.status, Repairs: &s.repairs,
			Settings: &pubsub.Table[types.ConfigItemValueMap]{}, Requests: &pubsub.Table[types.AppDetachRequest]{},
			VMIs: &pubsub.Table[types.VMI]{}, Sets: &pubsub.Table[types.AppSet]{},
			Uptime: func() time.Duration { return time.Since(began) + s.asleep },
		}
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		play(s)
		cancel()
		<-done
	})
}

func (s *story) wait() { synctest.Wait() }

func (s *story) expect(want types.ENClusterAppStatus) {
	s.Helper()
	s.wait()
	got, ok := s.status.Get(appID)
	if !ok {
		s.Fatal("no status is published")
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Error("want -, got +\n" + d)
	}
}

// cluster fills in a healthy cluster of which this device is node n1.
func cluster(s *story) {
	device := uuid.MustParse("a3e2f1a0-1111-4222-8333-444455556666")
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N1", DeviceID: device})
	_ = s.nodes.Publish("n1", types.Node{Name: "n1", UUID: device.String()})
	_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
}

func configured1(s *story) { _ = s.configs.Publish(appID, config(container)) }

func TestApplicationMovesToAnotherNode(t *testing.T) {
	tell(t, cluster, func(s *story) {
		configured1(s)
		s.expect(status(types.AppKubeNotInCluster))
		a := pod("a", pending)
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeNotRunning, here))
		a.Phase = types.PodRunning
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeRunning, here))
		a.Deleted = time.Now()
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeNotInCluster))
		b := pod("b", on("n2"))
		_ = s.pods.Publish(b.Key(), b)
		s.expect(status(types.AppKubeRunning))
		_ = s.configs.Unpublish(appID)
		s.wait()
		if all := s.status.All(); len(all) != 0 {
			s.Errorf("a status without a configuration: %v", all)
		}
	})
}

func TestSilenceOfTwoMinutesEndsTheClaim(t *testing.T) {
	tell(t, cluster, func(s *story) {
		configured1(s)
		a := pod("a")
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeRunning, here))
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "hung"})
		time.Sleep(10 * time.Second)
		_ = s.nodes.Publish("n2", types.Node{Name: "n2"}) // from here on no step of the period ends the silence
		time.Sleep(trust - 10*time.Second - time.Millisecond)
		s.expect(status(types.AppKubeRunning, here))
		time.Sleep(time.Millisecond)
		s.expect(status(types.AppKubeAPIUnreachable))
		_ = s.api.Publish(types.Global, types.APIStatus{})
		s.expect(status(types.AppKubeAPIUnreachable))
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		s.expect(status(types.AppKubeRunning, here))
	})
}

func TestApiThatIsNeverSeenCountsAsSilentFromTheStart(t *testing.T) {
	tell(t, configured1, func(s *story) {
		s.expect(status(types.AppKubeUnknown))
		time.Sleep(trust)
		s.expect(status(types.AppKubeAPIUnreachable))
	})
}

func TestEveryKindOfBlindnessEndsTheClaimAfterTwoMinutes(t *testing.T) {
	answers := types.APIStatus{Synced: true}
	for name, blind := range map[string]func(s *story){
		"the API is silent":           func(s *story) { _ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()}) },
		"the lists stay incomplete":   func(s *story) { _ = s.api.Publish(types.Global, types.APIStatus{}) },
		"the node does not know self": func(s *story) { _ = s.info.Unpublish(types.Global) },
		"silence turns into incomplete lists": func(s *story) {
			_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
			time.Sleep(trust / 2)
			_ = s.api.Publish(types.Global, types.APIStatus{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, cluster, func(s *story) {
				configured1(s)
				a := pod("a")
				_ = s.pods.Publish(a.Key(), a)
				s.expect(status(types.AppKubeRunning, here))
				began := time.Now()
				blind(s)
				time.Sleep(time.Until(began.Add(trust - time.Millisecond)))
				s.expect(status(types.AppKubeRunning, here))
				time.Sleep(time.Millisecond)
				s.expect(status(types.AppKubeAPIUnreachable))
				cluster(s)
				s.expect(status(types.AppKubeRunning, here))

				// A blindness after that has two minutes of its own.
				_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
				time.Sleep(trust / 2)
				_ = s.api.Publish(types.Global, answers)
				s.wait()
				_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
				time.Sleep(trust - time.Second)
				s.expect(status(types.AppKubeRunning, here))
			})
		})
	}
}

func TestRestartKeepsWhatWasKnownAndSweepsWhatIsGone(t *testing.T) {
	const ghost = "c3e2f1a0-1111-4222-8333-444455556666"
	tell(t, func(s *story) {
		s.configs.silent = true
		_ = s.status.Publish(appID, status(types.AppKubeRunning, here))
		_ = s.status.Publish(ghost, status(types.AppKubeRunning, here))
	}, func(s *story) {
		s.expect(status(types.AppKubeRunning, here))
		if _, ok := s.status.Get(ghost); !ok {
			s.Error("a status was withdrawn before the configurations were known")
		}
		s.configs.silent = false
		configured1(s)
		a := pod("a")
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeRunning, here))
		if _, ok := s.status.Get(ghost); ok {
			s.Error("the status of an application that is gone stands")
		}
	})
}
