// Package passthrough gives Ethernet ports to native containers: it keeps the
// NetworkAttachmentDefinition of each port that an application of this node
// names, and the link of the port up (docs/wire.md, "Network attachments").
//
//	reads:  AppInstanceConfig, EdgeNodeInfo, nodes, the API's health
//	writes: nothing
//	acts:   makes, shares and removes network attachments; sets links up
//
// It needs no cluster configuration: a single node is a cluster of one.
package passthrough

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is how often links are looked at whatever the kernel tells, and
// whatever rings not at all is noticed.
const period = time.Minute

// Kube is what the component does to the cluster. Every verb ends when its
// context does.
type Kube interface {
	// NADs lists the attachments of ports that zedkube made. Its error wraps
	// types.ErrNotInstalled where the cluster knows no such objects.
	NADs(ctx context.Context) ([]types.NAD, error)
	// EnsureNAD makes the attachment, or puts it right, and adds the owner.
	EnsureNAD(ctx context.Context, ifname string, owner types.Node) error
	// ReleaseNAD takes these owners off the attachment: names of nodes with the
	// UIDs they are noted under, "" for any. Without owners it is removed, unless
	// it is to be kept.
	ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error
	// FreshNodes lists the nodes.
	FreshNodes(ctx context.Context) ([]types.Node, error)
}

// Links is what the component does to the network interfaces of the host.
type Links interface {
	// Raise sets the link up.
	Raise(name string) (Raised, error)
	// Follow calls news when a link has gone or is down. It returns when ctx is
	// done, or with an error when it can follow no longer.
	Follow(ctx context.Context, news func()) error
}

// Component is the passthrough. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs pubsub.Source[types.AppInstanceConfig]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Nodes   pubsub.Reader[types.Node]
	API     pubsub.Reader[types.APIStatus]

	Kube  Kube
	Links Links
}

// Run steps until ctx is done and returns after the calls under way have ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Configs, c.Info, c.Nodes, c.API)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error {
	return c.apply(decide(facts{}))
}

func (c *Component) apply(action) error { return nil }
