package clusterstatus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

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
	config     source[types.EdgeNodeClusterConfig]
	membership pubsub.Table[types.ClusterMembership]
	ports      source[types.DeviceNetworkStatus]
	token      pubsub.Table[types.ClusterToken]
	status     full
	logs       *logtest.Hook
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		s := &story{T: t, logs: hook}
		setup(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Config: &s.config, Membership: &s.membership, Ports: &s.ports, Token: &s.token, Status: &s.status,
		}
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		play(s)
		cancel()
		<-done
	})
}

func (s *story) setConfig(c types.EdgeNodeClusterConfig) {
	_ = s.config.Publish(types.Global, c)
	synctest.Wait()
}

func (s *story) setPorts(ports ...types.NetworkPortStatus) {
	_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: ports})
	synctest.Wait()
}

func (s *story) expect(want types.EdgeNodeClusterStatus) {
	s.Helper()
	got, ok := s.status.Get(types.Global)
	if !ok {
		s.Fatal("no status is published")
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Error("want -, got +\n" + d)
	}
}

func (s *story) warnings() (n int) {
	for _, e := range s.logs.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			n++
		}
	}
	return n
}

// full is a topic that cannot be written for a while, as on a full disk.
type full struct {
	pubsub.Table[types.EdgeNodeClusterStatus]
	left int // how often it cannot
}

func (f *full) Publish(key string, v types.EdgeNodeClusterStatus) error {
	if f.left--; f.left >= 0 {
		return errors.New("no space left on device")
	}
	return f.Table.Publish(key, v)
}
