//go:build linux

// Package report holds the proof that what the nodes of a cluster report is
// complete and honest: golden reports of known clusters, and a judge that reads
// every report while the cluster changes, the API server fails and agents die.
package report

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster with a device for each node.
type stage struct{ *rig.Rig }

// newStage starts a cluster, and arranges it before it has devices.
func newStage(t *testing.T, o devcluster.Options, arrange func(ctx context.Context, c *devcluster.Cluster) error) *stage {
	t.Helper()
	return &stage{rig.New(t, rig.Options{Name: "report", Cluster: o, Arrange: arrange})}
}

// pause waits for some time, or until ctx is done: then it returns false.
func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}
