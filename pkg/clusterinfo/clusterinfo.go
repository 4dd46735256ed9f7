// Package clusterinfo reports on the whole cluster, on the one node that was
// elected to.
//
//	reads:  KubeLeaderElectInfo, nodes, app pods, all pods, APIStatus
//	writes: KubeClusterInfo
package clusterinfo

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is only a safety net: everything that counts rings.
	period = time.Minute
	// pause is the least time between two reports: pods come and go in bursts,
	// and each report may write a megabyte.
	pause = time.Second
)

// Component publishes KubeClusterInfo under key "global" while this node is
// the stats leader, and withdraws it otherwise. While the API server is silent
// the last report stands as it is.
type Component struct {
	Log     logrus.FieldLogger
	Pulse   *loop.Pulse
	Leader  pubsub.Reader[types.KubeLeaderElectInfo]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	AllPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Report  pubsub.Writer[types.KubeClusterInfo]

	reported time.Time // when the last report was made, published or not
	cut      cut       // as last logged
}

// Run steps until ctx is done. The report ends with it: the Lease is given up
// then, and another node reports.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Leader, c.Nodes, c.AppPods, c.AllPods, c.API)
	if err := c.apply(action{withdraw: true}); err != nil {
		c.Log.WithError(err).Error("the report is left behind")
	}
}

// Step looks once and publishes what changed. A leader looks once a second at
// most: the first change after a quiet second is reported at once.
func (c *Component) Step(context.Context) error {
	leader, _ := c.Leader.Get(types.Global)
	if wait := pause - time.Since(c.reported); leader.IsStatsLeader && wait > 0 {
		return loop.After(wait)
	}
	return c.apply(decide(c.look(leader.IsStatsLeader)))
}

func (c *Component) look(leads bool) facts {
	f := facts{leads: leads}
	if !leads {
		return f
	}
	// The state of the API is read before the tables: they can only be more
	// complete than it says.
	f.api, f.apiKnown = c.API.Get(types.Global)
	f.nodes, f.appPods, f.allPods = c.Nodes.All(), c.AppPods.All(), c.AllPods.All()
	f.last, _ = c.Report.Get(types.Global)
	return f
}

func (c *Component) apply(a action) error {
	switch {
	case a.withdraw:
		_, had := c.Report.Get(types.Global)
		if err := c.Report.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw the cluster's report: %w", err)
		}
		if had {
			c.Log.Info("this node does not report for the cluster")
		}
	case a.publish != nil:
		_, had := c.Report.Get(types.Global)
		if err := c.Report.Publish(types.Global, *a.publish); err != nil {
			return fmt.Errorf("publish the cluster's report: %w", err)
		}
		c.reported = time.Now()
		if !had {
			c.Log.Info("this node reports for the cluster")
		}
		c.logCut(a.cut)
	}
	return nil
}

// logCut logs that the report leaves something out, and that it does no more.
func (c *Component) logCut(now cut) {
	switch {
	case now.any() && !c.cut.any():
		c.Log.WithFields(logrus.Fields{
			"nodes": now.nodes, "namespaces": now.namespaces, "pods": now.pods,
		}).Warn("the cluster is too large for its report: the last entries by name are left out")
	case !now.any() && c.cut.any():
		c.Log.Info("the cluster's report is whole again")
	}
	c.cut = now
}
