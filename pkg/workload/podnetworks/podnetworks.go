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

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultMarkers is the directory in which eve-bridge looks.
	DefaultMarkers = "/run/zedkube/kubeapp-net"
	// period is how often the directory is read: a marker that somebody removed is
	// written again, as no pod starts without.
	period = time.Minute
	// maxFiles bounds what is read of it, far above the pods of a node.
	maxFiles = 10_000
	// problemsText bounds what is logged of the pods of one moment.
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
	readAt     time.Time // when the directory was read
	journaling loop.Call[error]
	logged     string // the problems that stand
}

// Run steps until ctx is done. The markers stay.
func (c *Component) Run(ctx context.Context) {
	defer c.journaling.EndWithin(time.Second)
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Membership, c.Networks, c.NodePods, c.API, &c.journaling)
}

// Step looks, decides and acts once, under native orchestration alone.
func (c *Component) Step(ctx context.Context) error {
	if membership, _ := c.Membership.Get(types.Global); !membership.NativeOrchestration() {
		return nil
	}
	now := time.Now()
	if err := c.read(now); err != nil {
		return fmt.Errorf("read the markers of pods: %w", err)
	}
	return c.apply(ctx, decide(c.look(now)))
}

func (c *Component) look(now time.Time) facts {
	api, known := c.API.Get(types.Global) // before the pods, which can only be more since
	journal, _ := c.Journal.Get(types.Global)
	return facts{
		now: now, complete: api.Synced && api.Answers(), silent: known && !api.Answers(), pods: c.NodePods.All(),
		networksKnown: c.Networks.Synced(), networks: c.Networks.All(),
		configs: c.Configs.All(), journal: journal.Markers, journaling: c.journaling.Busy(), memory: c.memory,
	}
}

// read takes note of the markers that are there. Those of another run are written again.
func (c *Component) read(now time.Time) error {
	if now.Sub(c.readAt) < period {
		return nil
	}
	names, err := safefile.Names(c.Dir, maxFiles)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files := map[string]string{}
	for _, name := range names {
		if isMarker(name) {
			files[name] = c.files[name]
		}
	}
	c.files, c.readAt = files, now
	return nil
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
	if a.journal != nil { // beside the steps: the disk may be slow
		c.journaling.Begin(ctx, period, func(context.Context) error {
			return c.Journal.Publish(types.Global, types.PodMarkers{Markers: a.journal})
		})
	}
	if text := phrase.Cut(strings.Join(a.problems, "; "), problemsText); text != c.logged {
		if c.logged = text; text != "" {
			c.Log.Error("some pods cannot be connected: " + text)
		}
	}
	return errors.Join(errs...)
}

// mark writes and removes markers, and returns the first error: one that fails keeps
// out none of the others.
func (c *Component) mark(a action) (first error) {
	if len(a.write) > 0 {
		first = os.MkdirAll(c.Dir, 0o755) //nolint:gosec // eve-bridge reads it in another container
	}
	for name, mark := range a.write {
		err := c.put(name, mark)
		if first = cmp.Or(first, err); err == nil {
			c.files[name] = mark
		}
	}
	for _, name := range a.remove {
		err := os.Remove(filepath.Join(c.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if first = cmp.Or(first, err); err == nil {
			delete(c.files, name)
			delete(c.absent, name)
		}
	}
	return first
}

// put replaces a marker in one step. It need not be on a disk: it ends with the boot.
func (c *Component) put(name, mark string) error {
	part := filepath.Join(c.Dir, ".part")
	if err := os.WriteFile(part, []byte(mark), 0o644); err != nil { //nolint:gosec // eve-bridge reads it in another container
		return err
	}
	return os.Rename(part, filepath.Join(c.Dir, name))
}
