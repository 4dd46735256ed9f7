// Package statusserver tells nodes that want to join whether this node is a
// working server of their cluster.
//
//	reads:  EdgeNodeClusterStatus, nodes, APIStatus, EdgeNodeInfo
//	writes: nothing
//	serves: http://<cluster address>:12346/status
package statusserver

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period bounds how long a failed bind and a server that died stay unnoticed;
// joining nodes ask every ten seconds.
const period = 5 * time.Second

// Component serves while EdgeNodeClusterStatus says that the cluster address
// is up. Answers come from the tables; a request costs no API call.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Status pubsub.Reader[types.EdgeNodeClusterStatus]
	Nodes  pubsub.Reader[types.Node]
	API    pubsub.Reader[types.APIStatus]
	Info   pubsub.Reader[types.EdgeNodeInfo]
	Port   int // 0 means 12346

	server *server        // nil while not serving; touched by Step and the end of Run only
	ending sync.WaitGroup // servers that were stopped, and their last requests
}

// Run steps until ctx is done and the server has ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Status)
	c.stop(ctx)
	c.ending.Wait()
}

// Step makes the server listen where it should, or nowhere. A request under way
// elsewhere does not hold it up.
func (c *Component) Step(ctx context.Context) error {
	status, _ := c.Status.Get(types.Global)
	want := address(status, c.Port)
	if c.server != nil && c.server.address == want && c.server.alive() {
		return nil
	}
	c.stop(ctx)
	if want == "" {
		return nil
	}
	s, err := start(c.Log, want, c.handler())
	if err != nil {
		return err
	}
	c.server = s
	return nil
}

func (c *Component) stop(ctx context.Context) {
	if c.server != nil {
		c.server.stop(ctx, &c.ending)
		c.server = nil
	}
}

// look reads the tables; it runs in the goroutines of requests too.
func (c *Component) look() facts {
	f := facts{nodes: c.Nodes.All()}
	f.status, _ = c.Status.Get(types.Global)
	f.info, _ = c.Info.Get(types.Global)
	f.api, _ = c.API.Get(types.Global)
	return f
}
