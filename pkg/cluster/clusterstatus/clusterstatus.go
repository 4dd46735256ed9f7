// Package clusterstatus tells the other agents how this node takes part in its
// cluster: which Linux interface carries which address, and whether it is up.
//
//	reads:  EdgeNodeClusterConfig, ClusterMembership, DeviceNetworkStatus, the table of the token
//	writes: EdgeNodeClusterStatus
package clusterstatus

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: everything that counts rings.
const period = time.Minute

// Component publishes EdgeNodeClusterStatus under key "global" from the first
// valid configuration until this node has left. It waits for nothing: what is
// not known yet is empty or false in the status.
type Component struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse
	Config     pubsub.Source[types.EdgeNodeClusterConfig]
	Membership pubsub.Reader[types.ClusterMembership]
	Ports      pubsub.Source[types.DeviceNetworkStatus]
	Token      pubsub.Reader[types.ClusterToken]
	Status     pubsub.Writer[types.EdgeNodeClusterStatus]

	ignored string // why the configuration is not acted on, as last logged
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Config, c.Membership, c.Ports, c.Token)
}

// Step looks once and publishes what changed.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() facts {
	f := facts{now: time.Now().UTC()}
	var ports types.DeviceNetworkStatus
	f.configKnown = c.Config.Synced()
	f.config, f.hasConfig = c.Config.Get(types.Global)
	f.membership, _ = c.Membership.Get(types.Global)
	portsSynced := c.Ports.Synced()
	ports, hasPorts := c.Ports.Get(types.Global)
	f.ports, f.portsKnown = ports.Ports, hasPorts || portsSynced
	f.token, _ = c.Token.Get(types.Global)
	f.status, f.hasStatus = c.Status.Get(types.Global)
	return f
}

func (c *Component) apply(a action) error {
	if a.ignore != c.ignored {
		if a.ignore != "" {
			c.Log.WithField("topic", "EdgeNodeClusterConfig").Warn("cluster status keeps the last valid configuration: " + a.ignore)
		}
		c.ignored = a.ignore
	}
	if a.withdraw {
		if err := c.Status.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw cluster status: %w", err)
		}
		c.Log.Warn("cluster status withdrawn: this node has left its cluster")
	}
	if a.publish == nil {
		return nil
	}
	old, had := c.Status.Get(types.Global)
	if err := c.Status.Publish(types.Global, *a.publish); err != nil {
		return fmt.Errorf("publish cluster status: %w", err)
	}
	c.logChange(old, had, *a.publish)
	return nil
}

// logChange logs the transitions that people ask for; never the token.
func (c *Component) logChange(old types.EdgeNodeClusterStatus, had bool, s types.EdgeNodeClusterStatus) {
	if !had || old.ClusterIPIsReady != s.ClusterIPIsReady || old.ClusterInterface != s.ClusterInterface ||
		old.ClusterID != s.ClusterID || old.ClusterIPPrefix.String() != s.ClusterIPPrefix.String() {
		c.Log.WithFields(logrus.Fields{
			"cluster": s.ClusterID.UUID.String(), "interface": s.ClusterInterface,
			"prefix": s.ClusterIPPrefix.String(), "ready": s.ClusterIPIsReady,
		}).Info("cluster status published")
	}
	if old.LBConfigError.Error == s.LBConfigError.Error {
		return
	}
	if s.LBConfigError.Error != "" {
		c.Log.WithField("err", s.LBConfigError.Error).Warn("load balancer configuration cannot be used")
	} else {
		c.Log.Info("load balancer configuration can be used again")
	}
}
