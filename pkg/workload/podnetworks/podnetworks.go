// Package podnetworks has zedrouter connect the pods of this node that nobody
// configured at the controller, and tells the CNI plug-in eve-bridge how to route
// every pod (docs/wire.md, "Networks of native workloads").
//
//	reads:  ClusterMembership, NetworkInstanceStatus, the pods of this node, the API's health
//	writes: AppNetworkConfig, PodMarkers
//	acts:   makes and removes the markers of pods
package podnetworks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultMarkers is the directory in which eve-bridge looks.
	DefaultMarkers = "/run/zedkube/kubeapp-net"
	// period is the longest that a marker is missing which somebody removed.
	period = time.Minute
	// maxFiles bounds what is read of it, far above the pods of a node.
	maxFiles = 10_000
	// problemsText bounds what is logged of the pods, once a period at most.
	problemsText = 1000
)

// Component is the networks of this node's pods. Every exported field is required.
type Component struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse
	Membership pubsub.Reader[types.ClusterMembership]
	Networks   pubsub.Source[types.NetworkInstanceStatus]
	NodePods   pubsub.Reader[types.Pod]
	API        pubsub.Reader[types.APIStatus]
	Dir        string // of the markers

	Configs pubsub.Writer[types.AppNetworkConfig]
	Journal pubsub.Writer[types.PodMarkers]

	memory
	journaling loop.Call[error]
	logged     string // the problems that stand
	loggedAt   time.Time
}

// Run steps until ctx is done. The markers stay.
func (c *Component) Run(ctx context.Context) {
	defer c.journaling.EndWithin(time.Second)
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Membership, c.Networks, c.NodePods, c.API, &c.journaling)
}

// Step looks, decides and acts once. Markers are for every device, a member of a cluster
// or not: eve-bridge sets up no pod without one.
func (c *Component) Step(ctx context.Context) error {
	membership, _ := c.Membership.Get(types.Global)
	var cluster uuid.UUID
	if membership.Config != nil {
		cluster = membership.Config.ClusterID.UUID
	}
	names, err := safefile.Names(c.Dir, maxFiles)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the markers of pods: %w", err)
	}
	files := map[string]string{} // those of another run are written again
	for _, name := range names {
		if isMarker(name) {
			files[name] = c.files[name]
		}
	}
	c.files = files
	api, known := c.API.Get(types.Global) // before the pods, which can only be more since
	connect := membership.NativeOrchestration() && c.Networks.Synced()
	journal, _ := c.Journal.Get(types.Global)
	return c.apply(ctx, decide(facts{
		now: time.Now(), complete: api.Synced && api.Answers(), silent: known && !api.Answers(), connect: connect,
		left: membership.State == types.MembershipLeft, cluster: cluster,
		pods: c.NodePods.All(), networks: c.Networks.All(),
		configs: c.Configs.All(), journal: journal, journaling: c.journaling.Busy(), memory: c.memory,
	}))
}

// apply writes the markers before everything else: a pod does not start without.
func (c *Component) apply(ctx context.Context, a action) error {
	c.memory = a.memory
	errs := []error{loop.Again(a.again), c.mark(a)}
	for key, config := range a.publish {
		if err := c.Configs.Publish(key, config); err != nil {
			errs = append(errs, err)
			continue
		}
		c.Log.WithFields(logrus.Fields{"namespace": config.KubeApp.Namespace, "owner": config.KubeApp.OwnerName}).Info("networks of a native workload published")
	}
	for _, key := range a.unpublish {
		errs = append(errs, c.Configs.Unpublish(key))
	}
	if err, ok := c.journaling.Take(); ok {
		errs = append(errs, err)
	}
	if a.forget {
		errs = append(errs, c.Journal.Unpublish(types.Global))
	}
	if a.journal != nil { // beside the steps: the disk may be slow
		c.journaling.Begin(ctx, period, func(context.Context) error {
			return c.Journal.Publish(types.Global, *a.journal)
		})
	}
	if text := phrase.Cut(strings.Join(a.problems, "; "), problemsText); text != c.logged && time.Since(c.loggedAt) >= period {
		if c.logged, c.loggedAt = text, time.Now(); text != "" {
			c.Log.Error("some pods cannot be connected: " + text)
		}
	}
	return errors.Join(errs...)
}

// mark writes and removes markers, and returns the first error: one that fails keeps
// out none of the others. Each is replaced in one step, and none need be on a disk:
// they end with the boot.
func (c *Component) mark(a action) (first error) {
	part := filepath.Join(c.Dir, ".part")
	if len(a.write) > 0 {
		first = os.MkdirAll(c.Dir, 0o755) //nolint:gosec // eve-bridge reads it in another container
	}
	for name, mark := range a.write {
		err := os.WriteFile(part, []byte(mark), 0o644) //nolint:gosec // eve-bridge reads it in another container
		if err == nil {
			path := filepath.Join(c.Dir, name)
			err = failpoint.Do("write", path, func() error { return os.Rename(part, path) })
		}
		if first = cmp.Or(first, err); err == nil {
			c.files[name] = mark
		}
	}
	for _, name := range a.remove {
		path := filepath.Join(c.Dir, name)
		if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); !errors.Is(err, fs.ErrNotExist) {
			first = cmp.Or(first, err)
		}
	}
	return first
}
