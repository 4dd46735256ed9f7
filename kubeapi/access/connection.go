package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	longhorn "github.com/longhorn/longhorn-manager/k8s/pkg/client/clientset/versioned/typed/longhorn/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	kubevirt "kubevirt.io/client-go/kubevirt/typed/core/v1"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

// Connection is one kubeconfig in use.
type Connection struct {
	Ctx    context.Context // done when the connection is retired
	Retire context.CancelFunc

	Kube        kubernetes.Interface
	Longhorn    longhorn.LonghornV1beta2Interface
	Virt        kubevirt.KubevirtV1Interface
	Custom      dynamic.Interface
	Prober      kubernetes.Interface      // not stopped by the silence
	Logs        typedcore.CoreV1Interface // without deadlines, and not counted as answers
	Base        RoundTripper
	Liveness    *Liveness
	Credentials *Credentials // nil where nobody keeps tables

	Cfg *rest.Config      // for clients of single packages, which go over via
	Via http.RoundTripper // stopped by the silence
	own sync.Map          // of kept, by type

	Work   sync.WaitGroup         // the probe and the views
	Pulses map[string]*loop.Pulse // of these
	Users  sync.WaitGroup         // verbs under way
}

// RoundTripper is what carries the requests of a connection.
type RoundTripper interface {
	http.RoundTripper
	CloseAll() // ends it: nobody uses it any more
}

// NewConnection makes the clients for cfg; it sends nothing.
func NewConnection(ctx context.Context, cfg *rest.Config, base RoundTripper, s *Liveness) (*Connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.UserAgent = "zedkube/" + version()
	cfg.QPS, cfg.Burst = 50, 100 // a drain of many pods is not slowed down; a loop gone wild is
	cfg.WarningHandler = rest.NoWarnings{}

	conn := &Connection{Base: base, Liveness: s, Pulses: map[string]*loop.Pulse{LoopViews: {}, loopProbes: {}}, Cfg: cfg}
	conn.Ctx, conn.Retire = context.WithCancel(ctx)
	seen := &livenessTransport{base: base, silence: s, retired: conn.Ctx}
	kept := &circuitBreaker{base: seen, silence: s}
	conn.Via = kept
	var errs [6]error
	conn.Kube, errs[0] = ClientOver(cfg, kept, kubernetes.NewForConfigAndClient)
	conn.Prober, errs[1] = ClientOver(cfg, seen, kubernetes.NewForConfigAndClient)
	conn.Longhorn, errs[2] = ClientOver(InJSON(cfg), kept, longhorn.NewForConfigAndClient)
	conn.Virt, errs[3] = ClientOver(InJSON(cfg), kept, kubevirt.NewForConfigAndClient)
	conn.Logs, errs[4] = logsClient(cfg, base, s)
	conn.Custom, errs[5] = ClientOver(cfg, kept, dynamic.NewForConfigAndClient)
	if err := cmp.Or(errs[:]...); err != nil {
		conn.Retire()
		return nil, err
	}
	return conn, nil
}

// Kept is the one T of a connection, zero at first, for what a package remembers
// for as long as the connection lasts.
func Kept[T any](conn *Connection) *T {
	key := reflect.TypeFor[T]()
	v, ok := conn.own.Load(key)
	if !ok {
		v, _ = conn.own.LoadOrStore(key, new(T))
	}
	return v.(*T)
}

// ClientOver makes a client of client-go or of a generated clientset, whose
// requests rt carries.
func ClientOver[C any](cfg *rest.Config, rt http.RoundTripper, make func(*rest.Config, *http.Client) (C, error)) (C, error) {
	var none C
	rt, err := rest.HTTPWrappersForConfig(cfg, rt)
	if err != nil {
		return none, fmt.Errorf("set up credentials of kubeconfig: %w", err)
	}
	client, err := make(cfg, &http.Client{Transport: rt})
	if err != nil {
		return none, fmt.Errorf("set up client of kubeconfig: %w", err)
	}
	return client, nil
}

// InJSON is cfg for custom resources, which have no protobuf.
func InJSON(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return cfg
}

// dialed is an http.Transport that knows its connections. One that has just
// ended its last request is not idle yet, and CloseIdleConnections would leave
// it open for as long as it may be idle.
type dialed struct {
	*http.Transport
	streams *http.Transport // for logs, on connections of its own
	dialer  *connrotation.Dialer
	closed  atomic.Bool
	Shown   func(tls.ConnectionState) // called after each handshake; nil for nobody
}

func (d *dialed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, address)
	if err == nil && d.closed.Load() {
		_ = conn.Close()
		return nil, ErrRetired
	}
	return conn, err
}

func (d *dialed) CloseAll() {
	d.closed.Store(true)
	d.CloseIdleConnections()
	d.streams.CloseIdleConnections()
	d.dialer.CloseAll()
}

// shows is called with what a handshake has verified; it refuses nothing.
func (d *dialed) shows(s tls.ConnectionState) error {
	if d.Shown != nil {
		d.Shown(s)
	}
	return nil
}

// NewTransport is our own, not one of client-go's shared ones: those are never
// closed, know no connection health check but by environment variables, and
// are shared with the dead connections of an earlier outage.
func NewTransport(cfg *rest.Config) (*dialed, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up certificates of kubeconfig: %w", err)
	}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: AnswerWithin, KeepAlive: 30 * time.Second}).DialContext
	}
	d := &dialed{dialer: connrotation.NewDialer(dial)}
	d.streams = d.over(cfg, tlsConfig.Clone())
	if tlsConfig != nil {
		tlsConfig.VerifyConnection = d.shows
	}
	d.Transport = d.over(cfg, tlsConfig)
	d.streams.HTTP2.MaxReceiveBufferPerStream = StreamWindow
	d.streams.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return gathers(conn), nil
	}
	return d, nil
}

// StreamWindow is how much of a log that nobody takes is held here, in bytes:
// as much as keeps a connection over loopback busy.
const StreamWindow = 256 << 10

func (d *dialed) over(cfg *rest.Config, tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:               cfg.Proxy, // nil: the API server is near, whatever HTTPS_PROXY says
		DialContext:         d.dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: AnswerWithin,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // over loopback it only costs
		ForceAttemptHTTP2:   true,
		// A connection on which nothing comes back is given up after 15 s, and
		// with it every watch on it; not sooner than any request on it is.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: AnswerWithin},
	}
}

// version is the module's version as the linker knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// Serves asks for the group by its name first: while an API server begins, it
// answers that with an error and not with 404, whereas its list of groups is
// only not whole yet. Where it is known to be missing, that is all.
func (conn *Connection) Serves(ctx context.Context, gv schema.GroupVersion, missing bool) (bool, error) {
	text, err := conn.Raw(ctx, "/apis/"+gv.String())
	switch {
	case apierrors.IsNotFound(err) && missing:
		return false, nil
	case apierrors.IsNotFound(err):
		return false, conn.Denies(ctx, gv.Group)
	case err != nil:
		return false, fmt.Errorf("look for API group %s: %w", gv.Group, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil || list.GroupVersion != gv.String() {
		return false, fmt.Errorf("look for API group %s: %w", gv.Group, ErrOther)
	}
	return true, nil
}

// Denies returns nil when the server's own list of API groups is without that
// one. A list without a group of Kubernetes' own is none: anybody may answer 404.
func (conn *Connection) Denies(ctx context.Context, name string) error {
	text, err := conn.Raw(ctx, "/apis")
	if err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	switch {
	case list.Kind != "APIGroupList" || !has(storagev1.GroupName):
		return errors.New("list API groups: the answer is not such a list")
	case has(name):
		return fmt.Errorf("API group %s is served only in part", name)
	}
	return nil
}

// Raw gets a page of the API server in JSON.
func (conn *Connection) Raw(ctx context.Context, path string) ([]byte, error) {
	return conn.Kube.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
}

// ErrRetired is why requests of a connection end whose kubeconfig is no longer in use.
var ErrRetired = errors.New("the kubeconfig has changed")

// The loops of a connection that have a pulse. A list and a probe end by the
// deadline of transport.go, a watch when the server is found silent or its
// connection is retired: so a loop that does not turn hangs in this process.
const (
	LoopViews  = "views"
	loopProbes = "probes"
)
