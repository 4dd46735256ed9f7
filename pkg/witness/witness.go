// Package witness tells, on this node's Node, whether the devices of nodes that
// are not Ready answer this one: a kubelet that does not report may have died
// with its device, or only have lost its way to the API server (docs/wire.md,
// "Nodes").
//
//	reads:  EdgeNodeInfo, nodes, the API's health
//	acts:   connects to nodes that are not Ready and to a few that are; writes what
//	        it found on the own Node
package witness

import (
	"context"
	"net"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// StatusPort is zedkube's status server, and KubeletPort the kubelet: a device
	// of the cluster lets the cluster in at both (docs/wire.md, "Firewall").
	StatusPort  = 12346
	KubeletPort = 10250
)

// period is in case an event was missed; what is due earlier is asked for.
const period = 30 * time.Second

// Kube is what the component does to the cluster. The verb ends when its
// context does.
type Kube interface {
	// Witness replaces what the node says of others; a zero one is removed.
	Witness(ctx context.Context, node string, w types.Witness) error
}

// Component is the witness. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Info  pubsub.Reader[types.EdgeNodeInfo]
	Nodes pubsub.Reader[types.Node]
	API   pubsub.Reader[types.APIStatus]
	Kube  Kube

	// Dial connects from this device; it ends when its context does.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Ports  []int                // of each address; the first has to be one where a connection that says nothing is no event
	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets

	look loop.Call[[]dial] // the look under way
	word loop.Call[error]  // what it found, on its way to the API server
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.look.End()
	defer c.word.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Info, c.Nodes, c.API, &c.look, &c.word)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	return c.apply(ctx, decide(c.facts()))
}

func (c *Component) facts() facts { return facts{} }

func (c *Component) apply(context.Context, action) error { return nil }
