// Package networks keeps a NetworkAttachmentDefinition for each network instance of the
// cluster, to which pods that nobody configured at the controller can attach
// (docs/wire.md, "Networks of native workloads").
//
//	reads:  ClusterMembership, NetworkInstanceStatus, KubeLeaderElectInfo, the API's health
//	writes: nothing
//	acts:   makes and deletes network attachments, on the node that reports
package networks

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: everything that counts rings.
const period = 5 * time.Minute

// Kube is what the component does to the cluster. Errors wrap types.ErrNotInstalled
// where it knows no such objects.
type Kube interface {
	// EnsureNetworkNAD makes the attachment, or puts it right. Its error wraps
	// types.ErrForeignNAD where somebody else has one of that name.
	EnsureNetworkNAD(ctx context.Context, nad types.NetworkNAD) error
	// DeleteNetworkNAD deletes it, unless it is somebody else's or of another instance.
	DeleteNetworkNAD(ctx context.Context, nad types.NetworkNAD) error
}

// Component is the attachments of network instances. Every exported field is required.
type Component struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse
	Membership pubsub.Reader[types.ClusterMembership]
	Networks   pubsub.Source[types.NetworkInstanceStatus]
	Leader     pubsub.Reader[types.KubeLeaderElectInfo]
	API        pubsub.Reader[types.APIStatus]
	Kube       Kube

	memory
	logged string // the problems that stand
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Membership, c.Networks, c.Leader, c.API)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	membership, _ := c.Membership.Get(types.Global)
	leader, _ := c.Leader.Get(types.Global)
	api, _ := c.API.Get(types.Global)
	known := c.Networks.Synced() // before All: it can only be more since
	return c.apply(ctx, decide(facts{
		now: time.Now(), memory: c.memory, networks: c.Networks.All(),
		native: known && membership.State == types.MembershipMember && membership.NativeOrchestration(),
		leads:  leader.IsStatsLeader && api.Answers() && api.Synced,
	}))
}

func (c *Component) apply(ctx context.Context, a action) error {
	c.memory = a.memory
	if text := strings.Join(a.problems, "; "); text != c.logged {
		if c.logged = text; text != "" {
			c.Log.Error("network attachments cannot be kept: " + text)
		}
	}
	errs := []error{loop.Again(a.again)}
	ctx = types.Because(ctx, "CONTROLLER", "a network instance of the cluster was made, renamed or deleted")
	for _, nad := range a.remove {
		err := c.Kube.DeleteNetworkNAD(ctx, nad)
		if err == nil || errors.Is(err, types.ErrNotInstalled) {
			delete(c.removed, nad)
			continue
		}
		errs = append(errs, err)
	}
	for _, nad := range a.ensure {
		err := c.Kube.EnsureNetworkNAD(ctx, nad)
		if c.done[nad] = err == nil || errors.Is(err, types.ErrForeignNAD); !c.done[nad] {
			errs = append(errs, err)
		} else if err != nil { // it stays so until somebody renames one of them
			c.Log.WithError(err).Error("network instance has no attachment")
		}
	}
	return errors.Join(errs...)
}
