// Package applogs hands what the applications on this node write to EVE's log.
//
//	reads:  AppInstanceConfig, EdgeNodeInfo, nodes, app pods, the API's health
//	writes: EVE's log lines (docs/wire.md, "App log lines"), where it is in each log
//	acts:   follows the logs of the containers
package applogs

import (
	"context"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed.
const period = 30 * time.Second

// Default values of a Component's fields.
const (
	DefaultMaxRecord   = 256<<10 + 1<<10 // a line of 256 KiB of plain text stays whole
	DefaultRate        = 4 << 20         // a tenth of what newlogd's disk may bear
	DefaultBurst       = 32 << 20        // three times what a kubelet keeps of one log by default
	DefaultJournal     = "/run/zedkube.applogs"
	DefaultCheckpoints = "/persist/kube-status/zedkube-applogs.jsonl"
)

// Kube is what the component does to the cluster.
type Kube interface {
	// Logs opens a container's log. Reading it ends when ctx does, when the
	// container has ended, or with the connection. Its error wraps types.ErrNoLog
	// where there is no such log.
	Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error)
}

// Component is the log collector. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs pubsub.Source[types.AppInstanceConfig]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Kube    Kube

	Out         io.Writer // gets whole lines; each Write is one batch, and none is begun before the last has ended
	MaxRecord   int       // bytes of one line of Out, its end included; what is longer is split with marks
	Rate        int       // bytes per second that one application may write to Out
	Burst       int       // bytes that it may write at once
	Journal     string    // file that is lost with a reboot, and only then: where each log is
	Checkpoints string    // file that is kept: the same, a few seconds old
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Configs, c.Info, c.Nodes, c.AppPods, c.API)
}

// Step looks once.
func (c *Component) Step(context.Context) error { return nil }
