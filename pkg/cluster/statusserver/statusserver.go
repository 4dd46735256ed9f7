// Package statusserver tells nodes that want to join whether this node is a
// working server of their cluster, and people why not. It also answers EVE's
// questions about one application, here and on the other nodes.
//
//	reads:  EdgeNodeClusterStatus, nodes, APIStatus, EdgeNodeInfo; for reports
//	        the files of other agents' topics and the log of the kube container
//	writes: nothing
//	serves: <cluster address>:12346, by TLS and by plain HTTP, see docs/wire.md, "Status server"
package statusserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period bounds how long a failed bind and a server that died stay unnoticed;
// joining nodes ask every ten seconds.
const period = 5 * time.Second

// Component serves while EdgeNodeClusterStatus says that the cluster address
// is up. Answers come from the tables; a request costs no API call. Every
// exported field but Port, Version and Reports is required.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Status pubsub.Reader[types.EdgeNodeClusterStatus]
	Nodes  pubsub.Reader[types.Node]

	EdgeNodes pubsub.Reader[types.Node] // those of KubeEdge, whose names are taken

	API  pubsub.Reader[types.APIStatus]
	Info pubsub.Reader[types.EdgeNodeInfo]

	TopicDirs  []string // where the agents' topics lie, the first that has a file wins: /run, /persist/status
	InstallLog string   // path of the kube container's log: /persist/kubelog/k3s-install.log
	Port       int      // 0 means 12346
	Version    string   // of zedkube, which other nodes are told

	Overview func(ctx context.Context) ([]byte, error) // what this node tells the others of itself, in JSON

	Reports     Reports // "" means ReportsAuto
	ProversFile string  // path of a note for it; the directory above it is there, and may be made
	PeersFile   string  // path of a note of the peers that speak TLS; likewise
	Operations  types.OperationLog

	server *server             // nil while not serving; touched by Step and the end of Run only
	ending sync.WaitGroup      // servers that were stopped, and their last requests
	making sync.WaitGroup      // reports, which may outlast their requests
	marks  pubsub.Table[marks] // since when things stand as they do; written by Step alone
	limits limits
	reach  reaches

	proof     proofRecord
	keys      clusterauth.Keyring
	peers     clusterauth.Memory
	peersRead bool
	told      refusals
}

// Run steps until ctx is done and the server and its requests have ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Status, c.Nodes, c.API, c.Info)
	c.stop(ctx)
	c.ending.Wait()
	c.making.Wait() // only now: no request is left that could begin one
}

// Step makes the server listen where it should, or nowhere, and notes what has
// changed since when. A request under way elsewhere does not hold it up.
func (c *Component) Step(ctx context.Context) error {
	c.limits.proofs.Begin(time.Now())
	var err error
	if !c.peersRead {
		c.peersRead, err = true, c.peers.Read(c.PeersFile, time.Now())
	}
	f := c.look()
	f.proved, f.stamped = c.proof.read(c.ProversFile), c.proof.stamped
	for _, n := range f.nodes {
		f.anyForeign = f.anyForeign || c.foreign(n)
	}
	err = errors.Join(err, c.keys.Update(f.status.ClusterID.UUID, f.status.EncryptedClusterToken, f.now))
	return errors.Join(err, c.apply(ctx, decide(f)), c.peers.Keep(c.PeersFile))
}

// look reads the tables; it runs in the goroutines of requests too.
func (c *Component) look() facts {
	f := facts{now: time.Now(), port: c.Port, nodes: c.Nodes.All()}
	f.status, _ = c.Status.Get(types.Global)
	f.info, _ = c.Info.Get(types.Global)
	f.api, f.heard = c.API.Get(types.Global)
	f.marks, _ = c.marks.Get(types.Global)
	return f
}

// apply does what decide said. What did not change is left alone: a request
// under way, and the time of an earlier change.
func (c *Component) apply(ctx context.Context, a action) error {
	was, _ := c.marks.Get(types.Global)
	if was[markState].value != a.marks[markState].value {
		c.Log.WithField("reason", a.reason).Info("status for joining nodes: " + a.marks[markState].value)
	}
	if err := c.marks.Publish(types.Global, a.marks); err != nil {
		return fmt.Errorf("keep the status for joining nodes: %w", err)
	}
	c.proof.stamped = a.stamped
	noted := c.recordProved(a.proved)
	if c.server != nil && c.server.address == a.listen && c.server.Alive() {
		return noted
	}
	c.stop(ctx)
	if a.listen == "" {
		return noted
	}
	s, err := c.start(ctx, a.listen)
	if err != nil {
		return err
	}
	c.server = s
	return noted
}

func (c *Component) stop(ctx context.Context) {
	if c.server != nil {
		c.server.Stop(ctx, &c.ending)
		c.server = nil
	}
}

// requestTimeout bounds how long a peer may take to send a request and to take
// the answer: on a cluster network both are a matter of milliseconds.
const requestTimeout = boundedhttp.HeadTimeout

type server struct {
	*boundedhttp.Server
	address string
}

// start listens on address and serves from a goroutine that Stop ends.
func (c *Component) start(ctx context.Context, address string) (*server, error) {
	// Without keep-alives a flood is let in a quarter faster, and none of these
	// connections lives long enough to need one.
	config := net.ListenConfig{KeepAlive: -1}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve cluster status: %w", err)
	}
	l, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("serve cluster status: a %T is not a TCP listener", listener), listener.Close())
	}
	limited := &bounded{TCPListener: l, rank: c.rank, tls: c.keys.ServerConfig(), failed: c.handshakeFailed}
	return &server{boundedhttp.Serve(c.Log.WithField("address", address), "status server", limited, &http.Server{
		Handler:      c.authenticated(bufferedBody(boundedhttp.Recover(c.Log, c.handler()))),
		ReadTimeout:  requestTimeout,
		WriteTimeout: requestTimeout,
		ConnState:    answered,
		BaseContext:  func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}), address}, nil
}

// answered tells the listener which of the connections have had their answer.
func answered(conn net.Conn, state http.ConnState) {
	if h, ok := conn.(*trackedConn); ok && state == http.StateIdle {
		h.busy.Store(false)
	}
}

const maxBody = 4 << 10 // far more than anyone sends: no question here needs a body

type connKey struct{}

// bufferedBody hands to next what has come with its whole body. Only from then on
// does the connection count as one that waits for an answer: who promises a
// body and keeps it back is none whom a joining node has to make room for.
func bufferedBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			code := http.StatusBadRequest
			if long := new(http.MaxBytesError); errors.As(err, &long) {
				code = http.StatusRequestEntityTooLarge
			}
			http.Error(w, "the request body cannot be read, and none is needed", code)
			return
		}
		if h, ok := r.Context().Value(connKey{}).(*trackedConn); ok {
			h.busy.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
