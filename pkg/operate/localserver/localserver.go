// Package localserver answers people and programs on this device: commands over
// a unix socket, a browser and a scraper over loopback, and, where that was
// asked for, the other nodes over the cluster's network (docs/wire.md, "Local
// server"). What it answers with is given to it; it sees to it that nobody else
// can ask, and that nobody who asks holds up another. Only over the socket can
// anything be changed.
//
//	reads:  EdgeNodeClusterStatus
//	writes: the reading token, where the page is served over loopback
//	serves: the socket, 127.0.0.1:12347, and :12347 of the cluster address
package localserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultSocket is where commands ask.
	DefaultSocket = "/run/zedkube/zedkube.sock"
	// DefaultTokenFile is where the reading token is.
	DefaultTokenFile = "/run/zedkube/page-token.json" //nolint:gosec // a path
	// DefaultPort is that of the page, on loopback and on the cluster address.
	DefaultPort = 12347
	// period is how soon a socket that someone removed, or a port that someone
	// else held, is noticed.
	period = 30 * time.Second
)

// Component is the local server. Every exported field is required, but for what
// says otherwise.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Status pubsub.Reader[types.EdgeNodeClusterStatus]

	Socket      string // path of the unix socket
	Address     string // on loopback, with a port; "" for none
	PageToo     bool   // over loopback the page as well, and not the numbers alone
	TokenFile   string // path of the file with the reading token, which is there while PageToo has an effect
	ClusterPort int    // where to listen on the cluster address too, for who proves that he is a member; 0 for nowhere

	Routes map[string]Route // by path, which may be a subtree as in http.ServeMux

	token     token
	listening map[place]*server // touched by Step and the end of Run only
	ending    sync.WaitGroup    // servers that were stopped, and their last requests
	proofs    proof.Memory
}

// Run steps until ctx is done and the servers and their requests have ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Status)
	for at := range c.listening {
		c.stop(ctx, at)
	}
	c.ending.Wait()
	_ = c.keepToken(false) // it is of no use any more
}

// Step makes a server listen in each place where one should.
func (c *Component) Step(ctx context.Context) error {
	c.proofs.Begin(time.Now())
	return c.apply(ctx, decide(c.look()))
}

func (c *Component) look() facts {
	f := facts{socket: c.Socket, loopback: c.Address, pageToo: c.PageToo, clusterPort: c.ClusterPort}
	f.status, _ = c.Status.Get(types.Global)
	return f
}

// apply stops the servers that are not wanted, and starts those that are
// missing. One that cannot be started does not keep the others from it.
func (c *Component) apply(ctx context.Context, a action) error {
	var failed error
	for at, s := range c.listening {
		if a.listen[at] != s.address || !s.alive() {
			c.stop(ctx, at)
		}
	}
	for at, address := range a.listen {
		if _, ok := c.listening[at]; ok {
			continue
		}
		s, err := c.start(ctx, at, address)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if c.listening == nil {
			c.listening = map[place]*server{}
		}
		c.listening[at] = s
	}
	return errors.Join(failed, c.keepToken(a.token))
}

func (c *Component) stop(ctx context.Context, at place) {
	c.listening[at].stop(ctx, &c.ending)
	delete(c.listening, at)
}
