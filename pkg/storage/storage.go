// Package storage keeps what the device's settings say of Longhorn as levels:
// what somebody else changes is put back, within bounds (docs/wire.md,
// "KubeStorageStatus").
//
//	reads:  ConfigItemValueMap, EdgeNodeInfo, KubeLeaderElectInfo, nodes, Longhorn's
//	        node of this device, drain policy and snapshot job, how well they are seen
//	writes: KubeStorageStatus
//	acts:   reserves room on the own disks; as the elected node sets the drain
//	        policy and keeps the snapshot job
package storage

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed. A look costs no request.
const period = time.Minute

// Kube is what the component does to the cluster. Every verb ends when its
// context does. Their errors wrap types.ErrConflict where somebody else was
// faster.
type Kube interface {
	// SetReserved reserves so many bytes on every disk of this very node of
	// Longhorn, and writes where that is not so.
	SetReserved(ctx context.Context, node types.LonghornNode, bytes int64) error
	// SetLonghornSetting gives this very setting, in this version, the value.
	SetLonghornSetting(ctx context.Context, setting types.LonghornSetting, value string) error
	// EnsureSnapshotJob makes the job, or changes its schedule and nothing else.
	EnsureSnapshotJob(ctx context.Context, cron string) error
	// DeleteSnapshotJob deletes this very job in this version.
	DeleteSnapshotJob(ctx context.Context, job types.SnapshotJob) error
}

// Component is the storage. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Settings pubsub.Source[types.ConfigItemValueMap]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Leader   pubsub.Reader[types.KubeLeaderElectInfo]
	Nodes    pubsub.Reader[types.Node]

	Tables           pubsub.Reader[types.TableStatus]
	OwnDisks         pubsub.Reader[types.LonghornNode]
	LonghornSettings pubsub.Reader[types.LonghornSetting]
	SnapshotJobs     pubsub.Reader[types.SnapshotJob]
	Kube             Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets

	Status pubsub.Writer[types.KubeStorageStatus]
}

// Run steps until ctx is done and returns after the writes under way have ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Settings, c.Info, c.Leader, c.Nodes, c.Tables, c.OwnDisks, c.LonghornSettings, c.SnapshotJobs)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return nil }
