package kubeapi

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/types"
)

// Namespace is where EVE keeps the applications and the election's Lease.
const Namespace = "eve-kube-app"

// Reader is a table to look at, which rings when it changes.
type Reader[T any] interface {
	Get(key string) (T, bool)
	All() map[string]T
	Notify(bell chan<- struct{})
}

// Writer is a table to fill. Publishing an unchanged row does nothing.
type Writer[T any] interface {
	Reader[T]
	Publish(key string, v T) error
	Unpublish(key string) error
}

// Config is what a Client is made of. Every field is required, unless it says
// otherwise; a Client for one command (Dial) has no tables.
type Config struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse // of the looks at the kubeconfig, and of the connection's loops; nil where no watchdog looks
	Kubeconfig string      // path of the kubeconfig; the file may come later and may change

	Operations types.OperationLog // hears of everything that is written

	Info   Reader[types.EdgeNodeInfo]        // who this device is
	Leader Reader[types.KubeLeaderElectInfo] // whether this node reports for the cluster

	Nodes    Writer[types.Node]        // every node, by name
	AppPods  Writer[types.Pod]         // the pods of Namespace, by namespace/name
	NodePods Writer[types.Pod]         // the pods on this node in every namespace
	Leases   Writer[types.Lease]       // the Leases of Namespace, by name
	VMIs     Writer[types.VMI]         // the virtual machine instances of Namespace, by name; none without KubeVirt
	Sets     Writer[types.AppSet]      // the replica sets of Namespace, by kind/name
	API      Writer[types.APIStatus]   // how well the cluster is seen
	Tables   Writer[types.TableStatus] // how well each table is, by its name

	Credentials Writer[types.Credentials] // what the connection rests on
	Clocks      Writer[types.NodeClock]   // of other nodes, by name

	Services  Writer[types.Service] // of every namespace, by namespace/name
	Ingresses Writer[types.Ingress] // of every namespace, by namespace/name
	KubeVIP   Writer[types.KubeVIP] // under types.Global; none where it is not deployed

	OwnDisks Writer[types.LonghornNode] // this node's Node of Longhorn, by name

	// While this node is the leader; else empty.
	PodCounts     Writer[types.PodCount]        // pods of every namespace that has any, by namespace
	Claims        Writer[types.Claim]           // the volume claims of Namespace, by name
	Volumes       Writer[types.Volume]          // Longhorn's, by name
	LonghornNodes Writer[types.LonghornNode]    // by name
	Daemons       Writer[types.DaemonSet]       // Longhorn's, by name
	Settings      Writer[types.LonghornSetting] // the drain policy, by name
	SnapshotJobs  Writer[types.SnapshotJob]     // the one zedkube keeps, by name

	Requests Requests // hears of every request; may be nil

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets
}

// Client keeps the tables and carries out the verbs. It is ready for verbs at
// once: until Run has found a usable kubeconfig they return an error that wraps
// types.ErrNoAPI.
type Client struct {
	Config
	*Session

	stamps  stamps        // of the nodes' agents, as long as the process lives
	repairs chan struct{} // holds the one repair under way
}

// New is a Client without a connection.
func New(c Config) *Client {
	return &Client{Config: c, Session: NewSession(c.Log, c.Kubeconfig, c.Operations), repairs: make(chan struct{}, 1)}
}

// Run keeps the tables true until ctx is done. It returns when all its
// goroutines, and all verbs that were under way, have ended.
func (c *Client) Run(ctx context.Context) {
	r := newRun(ctx, c)
	path, err := filepath.Abs(c.Kubeconfig)
	if err != nil { // no working directory: then it is found if it is absolute
		path = c.Kubeconfig
	}
	file := &kubeconfig{log: c.Log, path: path, pulse: cmp.Or(c.Pulse, &loop.Pulse{}), apply: func(cfg *rest.Config) error {
		base, err := newTransport(cfg)
		if err != nil {
			return err
		}
		base.shown = r.told.handshake
		return r.connect(ctx, cfg, base)
	}}
	started := time.Now()
	file.stuck = r.stuck
	file.missing = func(reason string) {
		if r.present() == nil {
			r.silence.unreachable(started, reason)
			r.status.configured(false)
		}
	}
	file.watch(ctx)
	r.end()
}

// run is what one Run of a Client holds.
type run struct {
	*Client
	bell     chan struct{} // rings when other tables may be wanted
	status   *status
	silence  *silence
	turns    *turns
	told     *credentials
	clocks   *clocks
	appPods  *appCounts
	apps     *turns         // of the views of applications
	served   *turns         // of the views of services
	reported *turns         // of the views of reports
	old      sync.WaitGroup // connections on their way out
}

func newRun(ctx context.Context, c *Client) *run {
	r := &run{Client: c, bell: make(chan struct{}, 1), status: &status{log: c.Log, api: c.API}, turns: newTurns(lastGap), apps: newTurns(appsGap), served: newTurns(appsGap), reported: newTurns(reportsGap), told: newCredentials(c.Log, c.Credentials), clocks: newClocks(c.Log, c.Clocks), appPods: &appCounts{Writer: c.AppPods}}
	r.turns.led, r.apps.led, r.served.led = r.apps, r.served, r.reported
	r.silence = newSilence(ctx, c.Log, r.status.silent)
	c.Info.Notify(r.bell)
	c.Leader.Notify(r.bell)
	c.Nodes.Notify(r.bell)
	return r
}

// end returns when all is over.
func (r *run) end() {
	r.swap(nil)
	for name := range r.Tables.All() {
		r.standing(name).end(false)
	}
	r.old.Wait()
}

// newConnection makes the clients for cfg; it sends nothing.
func newConnection(ctx context.Context, cfg *rest.Config, base transport, s *silence) (*connection, error) {
	conn, err := newAPIConnection(ctx, cfg, base, s)
	if err != nil {
		return nil, err
	}
	if err := connectLonghorn(conn); err != nil {
		conn.retire()
		return nil, err
	}
	return conn, nil
}

// connect takes cfg into use, over base, in place of the present connection, if there is
// one. The tables keep their rows until the new connection has whole lists.
func (r *run) connect(ctx context.Context, cfg *rest.Config, base transport) error {
	shake := shakes(base, cfg)
	base = &told{transport: base, to: r.told}
	if r.Requests != nil {
		base = &tallied{transport: base, requests: r.Requests}
	}
	conn, err := newConnection(ctx, cfg, &recorded{transport: base, log: r.Operations}, r.silence)
	if err != nil {
		return err
	}
	conn.told = r.told
	r.told.configured(cfg)
	r.swap(conn)
	r.status.configured(true)
	r.silence.afresh()
	conn.work.Go(func() { conn.probes(r.silence) })
	conn.work.Go(func() { r.views(conn) })
	conn.work.Go(func() { r.stampsAge(conn.ctx) })
	conn.work.Go(func() { conn.serverFacts(r.told, shake) })
	r.Log.WithField("server", cfg.Host).Info("kubeconfig taken into use")
	return nil
}

// swap puts next, nil for none, in place of the present connection, at once
// for verbs. It returns when the former one writes the tables no more; verbs
// that are under way on it are left to end by themselves.
func (r *run) swap(next *connection) {
	conn := r.Session.swap(next)
	if conn == nil {
		return
	}
	conn.retire()
	conn.work.Wait()
	r.old.Go(func() {
		conn.users.Wait()
		conn.base.closeAll()
	})
}
