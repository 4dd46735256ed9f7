package kubeapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/apiserver"
	"github.com/zedkube/zedkube/kubeapi/kubeconfigs"
	"github.com/zedkube/zedkube/kubeapi/kubelet"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/types"
)

// Namespace is where EVE keeps the applications and the election's Lease.
const Namespace = access.Namespace

// StatsLease is the name of the Lease of the election.
const StatsLease = leases.StatsLease

// Config is what a Client is made of. Every field is required, unless it says
// otherwise; a Client for one command (Dial) has no tables.
type Config struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse // of the looks at the kubeconfig, and of the connection's loops; nil where no watchdog looks
	Kubeconfig string      // path of the kubeconfig; the file may come later and may change

	Operations types.OperationLog // hears of everything that is written

	Info   access.Reader[types.EdgeNodeInfo]        // who this device is
	Leader access.Reader[types.KubeLeaderElectInfo] // whether this node reports for the cluster

	Membership access.Reader[types.ClusterMembership] // whether orchestration is native

	Nodes    access.Writer[types.Node]              // every member, by name
	AppPods  access.Writer[types.Pod]               // the pods of Namespace, by namespace/name
	NodePods access.Writer[types.Pod]               // the pods on this node in every namespace
	Leases   access.Writer[types.Lease]             // the Leases of Namespace, by name
	VMIs     access.Writer[types.VMI]               // the virtual machine instances of Namespace, by name; none without KubeVirt
	Sets     access.Writer[types.AppSet]            // the replica sets of Namespace, by kind/name
	Machines access.Writer[types.VirtualMachine]    // of every namespace, by namespace/name; none without KubeVirt
	Disabled access.Writer[types.DisabledWorkloads] // under the name of its ConfigMap; none while workloads are enabled
	API      access.Writer[types.APIStatus]         // how well the cluster is seen
	Tables   access.Writer[types.TableStatus]       // how well each table is, by its name

	Credentials access.Writer[types.Credentials] // what the connection rests on
	Clocks      access.Writer[types.NodeClock]   // of other nodes, by name

	Services  access.Writer[types.Service] // of every namespace, by namespace/name
	Ingresses access.Writer[types.Ingress] // of every namespace, by namespace/name
	KubeVIP   access.Writer[types.KubeVIP] // under types.Global; none where it is not deployed

	CDI access.Writer[types.DeployedVersion] // by name of its Deployment; none where it is not deployed

	OwnDisks access.Writer[types.LonghornNode] // this node's Node of Longhorn, by name

	Issued access.Writer[types.IssuedKubeconfig] // by name

	// While Mounts says that they are wanted; else empty.
	OwnAttachments access.Writer[types.Attachment] // VolumeAttachments of this node that are attached, by name
	OwnVolumes     access.Writer[types.Volume]     // Longhorn's that are attached here, by name, without replicas
	Mounts         access.Reader[types.MountRecovery]

	// While this node is the leader; else empty.
	PodCounts     access.Writer[types.KubePodNameSpaceInfo] // pods of every namespace that has any, by namespace
	Claims        access.Writer[types.Claim]                // the volume claims of Namespace, by name
	Volumes       access.Writer[types.Volume]               // Longhorn's, by name
	LonghornNodes access.Writer[types.LonghornNode]         // by name
	Daemons       access.Writer[types.DaemonSet]            // Longhorn's, by name
	Settings      access.Writer[types.LonghornSetting]      // the drain policy, by name
	SnapshotJobs  access.Writer[types.SnapshotJob]          // the one zedkube keeps, by name

	// While orchestration is native, the last two only while this node is the leader as well; else empty.
	Allocations access.Writer[types.NetworkAllocations] // by name of the ConfigMap
	DNSServer   access.Writer[types.DNSServer]          // the ConfigMap of CoreDNS, by name
	DNSRollout  access.Writer[types.DNSRollout]         // its Deployment, by name

	EdgeNodes access.Writer[types.Node] // those of KubeEdge, by name: no rule on members is to see them

	Requests access.Requests // hears of every request; may be nil

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets
}

// The verbs, by what they are about. Their names keep them apart in a Client.
type (
	nodeClient    = nodes.Client
	podClient     = pods.Client
	leaseClient   = leases.Client
	storageClient = storage.Client
	machineClient = kubevirt.Client
	kubeletClient = kubelet.Client
	networkClient = network.Client
	serverClient  = apiserver.Client

	kubeconfigClient = kubeconfigs.Client
)

// Client keeps the tables and carries out the verbs. It is ready for verbs at
// once: until Run has found a usable kubeconfig they return an error that wraps
// types.ErrNoAPI.
type Client struct {
	Config
	session *access.Session

	*nodeClient
	*podClient
	*leaseClient
	*storageClient
	*machineClient
	*kubeletClient
	*networkClient
	*kubeconfigClient
	*serverClient
}

// New is a Client without a connection.
func New(c Config) *Client {
	s := access.NewSession(c.Log, c.Kubeconfig, c.Operations)
	return &Client{
		Config: c, session: s,
		nodeClient: &nodes.Client{Session: s}, podClient: &pods.Client{Session: s}, leaseClient: leases.New(s),
		storageClient: &storage.Client{Session: s}, machineClient: &kubevirt.Client{Session: s},
		kubeletClient: &kubelet.Client{Session: s}, networkClient: &network.Client{Session: s}, serverClient: &apiserver.Client{Session: s},
		kubeconfigClient: &kubeconfigs.Client{Session: s},
	}
}

// Run keeps the tables true until ctx is done. It returns when all its
// goroutines, and all verbs that were under way, have ended.
func (c *Client) Run(ctx context.Context) {
	r := newRun(ctx, c)
	path, err := filepath.Abs(c.Kubeconfig)
	if err != nil { // no working directory: then it is found if it is absolute
		path = c.Kubeconfig
	}
	file := &access.KubeconfigFile{Log: c.Log, Path: path, Pulse: cmp.Or(c.Pulse, &loop.Pulse{}), Apply: func(cfg *rest.Config) error {
		base, err := access.NewTransport(cfg)
		if err != nil {
			return err
		}
		base.Shown = r.credentials.Handshake
		return r.connect(ctx, cfg, base)
	}}
	started := time.Now()
	file.Stuck = r.stuck
	file.Missing = func(reason string) {
		if r.session.Present() == nil {
			r.silence.Unreachable(started, reason)
			r.status.configured(false)
		}
	}
	file.Watch(ctx)
	r.end()
}

// run is what one Run of a Client holds.
type run struct {
	*Client
	bell        chan struct{} // rings when other tables may be wanted
	status      *status
	silence     *access.Liveness
	backoff     *listwatch.SharedBackoff
	credentials *access.Credentials
	clocks      *nodes.Clocks
	appPods     *appCounts
	apps        *listwatch.SharedBackoff // of the views of applications
	served      *listwatch.SharedBackoff // of the views of services
	reported    *listwatch.SharedBackoff // of the views of reports
	old         sync.WaitGroup           // connections on their way out
}

func newRun(ctx context.Context, c *Client) *run {
	r := &run{
		Client:      c,
		bell:        make(chan struct{}, 1),
		status:      &status{log: c.Log, api: c.API, held: map[string]bool{}},
		backoff:     listwatch.NewSharedBackoff(listwatch.LastGap),
		apps:        listwatch.NewSharedBackoff(appsGap),
		served:      listwatch.NewSharedBackoff(appsGap),
		reported:    listwatch.NewSharedBackoff(reportsGap),
		credentials: access.NewCredentials(c.Log, c.Credentials),
		clocks:      nodes.NewClocks(c.Log, c.Clocks),
		appPods:     &appCounts{Writer: c.AppPods},
	}
	r.backoff.Led, r.apps.Led, r.served.Led = r.apps, r.served, r.reported
	r.silence = access.NewLiveness(ctx, c.Log, r.status.silent)
	c.Info.Notify(r.bell)
	c.Leader.Notify(r.bell)
	c.Nodes.Notify(r.bell)
	c.Membership.Notify(r.bell)
	c.Mounts.Notify(r.bell)
	return r
}

// end returns when all is over.
func (r *run) end() {
	r.swap(nil)
	for name := range r.Tables.All() {
		r.statusOf(name).End(false)
	}
	r.old.Wait()
}

// newConnection makes the clients for cfg; it sends nothing.
func newConnection(ctx context.Context, cfg *rest.Config, base access.RoundTripper, s *access.Liveness) (*access.Connection, error) {
	conn, err := access.NewConnection(ctx, cfg, base, s)
	if err != nil {
		return nil, err
	}
	if err := storage.Connect(conn); err != nil {
		conn.Retire()
		return nil, err
	}
	return conn, nil
}

// connect takes cfg into use, over base, in place of the present connection, if there is
// one. The tables keep their rows until the new connection has complete lists.
func (r *run) connect(ctx context.Context, cfg *rest.Config, base access.RoundTripper) error {
	shake := access.Handshaker(base, cfg)
	base = &access.CredentialsRecorder{RoundTripper: base, To: r.credentials}
	if r.Requests != nil {
		base = &access.MetricsTransport{RoundTripper: base, Requests: r.Requests}
	}
	conn, err := newConnection(ctx, cfg, &access.AuditTransport{RoundTripper: base, Log: r.Operations}, r.silence)
	if err != nil {
		return err
	}
	conn.Credentials = r.credentials
	r.credentials.Configured(cfg)
	r.swap(conn)
	r.status.configured(true)
	r.silence.Reset()
	conn.Work.Go(func() { conn.Probes(r.silence) })
	conn.Work.Go(func() { r.views(conn) })
	conn.Work.Go(func() { r.stampsAge(conn.Ctx) })
	conn.Work.Go(func() { conn.ServerFacts(r.credentials, shake) })
	r.Log.WithField("server", cfg.Host).Info("kubeconfig is now in use")
	return nil
}

// swap puts next, nil for none, in place of the present connection, at once
// for verbs. It returns when the former one no longer writes the tables; verbs
// that are under way on it are left to end by themselves.
func (r *run) swap(next *access.Connection) {
	conn := r.session.Swap(next)
	if conn == nil {
		return
	}
	conn.Retire()
	conn.Work.Wait()
	r.old.Go(func() {
		conn.Users.Wait()
		conn.Base.CloseAll()
	})
}

// stampsAge makes stamps older until ctx is done.
func (r *run) stampsAge(ctx context.Context) {
	tick := time.NewTicker(nodes.StampsTick)
	defer tick.Stop()
	last, whole := r.Uptime(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, is := r.Uptime(), r.status.whole(viewNodes)
		passed := min(now-last, 2*nodes.StampsTick) // a process that was stopped has seen nothing meanwhile
		if !is || !whole {
			passed = 0
		}
		last, whole = now, is
		if err := r.Stamps.Age(passed, r.Nodes); err != nil {
			r.Log.WithError(err).Error("publish that the stamp of a node is stale")
		}
	}
}

// viewsRest is how long the views wait for news at most.
const viewsRest = time.Minute

// stuck names the loops of the present connection that do not turn any more.
func (r *run) stuck() string {
	conn := r.session.Present()
	if conn == nil {
		return ""
	}
	names, now := slices.Sorted(maps.Keys(conn.Pulses)), time.Now()
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return !conn.Pulses[name].Stuck(now) }), ", ")
}

// status writes the one row of the table of types.APIStatus.
type status struct {
	log logrus.FieldLogger
	api access.Writer[types.APIStatus]

	mu   sync.Mutex
	row  types.APIStatus
	held map[string]bool // which views hold a complete list
}

// silent notes since when the server has been silent, zero if it answers.
func (s *status) silent(since time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row.SilentSince, s.row.Reason = since, reason
	s.publish()
}

// configured notes whether a usable kubeconfig has been found.
func (s *status) configured(found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row.NoKubeconfig = !found
	s.publish()
}

// holds notes whether the table of a view holds a complete list.
func (s *status) holds(view string, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[view] == complete {
		return
	}
	s.held[view] = complete
	s.row.Synced = s.held[viewNodes] && s.held[viewAppPods] && s.held[viewNodePods]
	s.row.Apps = s.held[viewVMIs] && s.held[viewVMISets] && s.held[viewSets]
	s.publish()
}

// whole reports whether the table of a view holds a complete list.
func (s *status) whole(view string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[view]
}

func (s *status) publish() {
	if err := s.api.Publish(types.Global, s.row); err != nil {
		s.log.WithError(err).Error("publish API status")
	}
}

// Dial returns a Client for a command that runs once: its verbs work until ctx
// ends or done is called, its tables are not kept. It reads the kubeconfig at
// that path and asks nothing of the server. Without a usable one its error
// wraps types.ErrNoAPI. done waits for verbs that are under way. What the verbs
// write is noted in operations.
func Dial(ctx context.Context, log logrus.FieldLogger, path string, operations types.OperationLog) (c *Client, done func(), err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, fmt.Errorf("find kubeconfig: %w", err)
	}
	cfg, _, err := access.RestConfig(path, access.ReadTrusted)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	base, err := access.NewTransport(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	// Without probes it never finds the server silent, and lets all through.
	unreported := access.NewLiveness(ctx, log, func(time.Time, string) {})
	conn, err := newConnection(ctx, cfg, &access.AuditTransport{RoundTripper: base, Log: operations}, unreported)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	c = New(Config{Log: log, Kubeconfig: path, Operations: operations})
	c.session.Swap(conn)
	return c, func() { c.hangUp(conn); cancel() }, nil
}

// hangUp ends a dialled connection.
func (c *Client) hangUp(conn *access.Connection) {
	c.session.Swap(nil)
	conn.Retire()
	conn.Users.Wait()
	conn.Base.CloseAll()
}

// ReadKubeconfig reads the file at path and refuses what the agent refuses. In a
// copy of a device it may belong to anybody, and its secrets may be redacted.
func ReadKubeconfig(path string, copied bool) (access.Kubeconfig, error) {
	return access.ReadKubeconfig(path, copied)
}
