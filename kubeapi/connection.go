package kubeapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	longhorn "github.com/longhorn/longhorn-manager/k8s/pkg/client/clientset/versioned/typed/longhorn/v1beta2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	kubevirt "kubevirt.io/client-go/kubevirt/typed/core/v1"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

// connection is one kubeconfig in use.
type connection struct {
	ctx    context.Context // done when the connection is retired
	retire context.CancelFunc

	kube     kubernetes.Interface
	longhorn longhorn.LonghornV1beta2Interface
	virt     kubevirt.KubevirtV1Interface
	custom   dynamic.Interface
	prober   kubernetes.Interface      // not stopped by the silence
	logs     typedcore.CoreV1Interface // without deadlines, and no sign of life
	base     transport
	silence  *silence
	told     *credentials // nil where nobody keeps tables

	cfg *rest.Config      // for clients of single packages, which go over via
	via http.RoundTripper // stopped by the silence
	own sync.Map          // of kept, by type

	work   sync.WaitGroup         // the probe and the views
	pulses map[string]*loop.Pulse // of these
	users  sync.WaitGroup         // verbs under way
}

// transport is what carries the requests of a connection.
type transport interface {
	http.RoundTripper
	closeAll() // ends it: nobody uses it any more
}

// newAPIConnection makes the clients for cfg; it sends nothing.
func newAPIConnection(ctx context.Context, cfg *rest.Config, base transport, s *silence) (*connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.UserAgent = "zedkube/" + version()
	cfg.QPS, cfg.Burst = 50, 100 // a drain of many pods is not slowed down; a loop gone wild is
	cfg.WarningHandler = rest.NoWarnings{}

	conn := &connection{base: base, silence: s, pulses: newPulses(), cfg: cfg}
	conn.ctx, conn.retire = context.WithCancel(ctx)
	seen := &observed{base: base, silence: s, retired: conn.ctx}
	kept := &gate{base: seen, silence: s}
	conn.via = kept
	var err error
	if conn.kube, err = clientOver(cfg, kept, kubernetes.NewForConfigAndClient); err == nil {
		conn.prober, err = clientOver(cfg, seen, kubernetes.NewForConfigAndClient)
	}
	if err == nil {
		conn.longhorn, err = clientOver(inJSON(cfg), kept, longhorn.NewForConfigAndClient)
	}
	if err == nil {
		conn.virt, err = clientOver(inJSON(cfg), kept, kubevirt.NewForConfigAndClient)
	}
	if err == nil {
		conn.logs, err = logsClient(cfg, base, s)
	}
	if err == nil {
		conn.custom, err = clientOver(cfg, kept, dynamic.NewForConfigAndClient)
	}
	if err != nil {
		conn.retire()
		return nil, err
	}
	return conn, nil
}

// kept is the one T of a connection, zero at first, for what a package remembers
// for as long as the connection lasts.
func kept[T any](conn *connection) *T {
	key := reflect.TypeFor[T]()
	v, ok := conn.own.Load(key)
	if !ok {
		v, _ = conn.own.LoadOrStore(key, new(T))
	}
	return v.(*T)
}

// clientOver makes a client of client-go or of a generated clientset, whose
// requests rt carries.
func clientOver[C any](cfg *rest.Config, rt http.RoundTripper, make func(*rest.Config, *http.Client) (C, error)) (C, error) {
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

// inJSON is cfg for custom resources, which have no protobuf.
func inJSON(cfg *rest.Config) *rest.Config {
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
	shown   func(tls.ConnectionState) // called after each handshake; nil for nobody
}

func (d *dialed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, address)
	if err == nil && d.closed.Load() {
		_ = conn.Close()
		return nil, errRetired
	}
	return conn, err
}

func (d *dialed) closeAll() {
	d.closed.Store(true)
	d.CloseIdleConnections()
	d.streams.CloseIdleConnections()
	d.dialer.CloseAll()
}

// shows is called with what a handshake has verified; it refuses nothing.
func (d *dialed) shows(s tls.ConnectionState) error {
	if d.shown != nil {
		d.shown(s)
	}
	return nil
}

// forLogs is for the streams of logs.
func (d *dialed) forLogs() http.RoundTripper { return d.streams }

// newTransport is our own, not one of client-go's shared ones: those are never
// closed, know no connection health check but by environment variables, and
// are shared with the dead connections of an earlier outage.
func newTransport(cfg *rest.Config) (*dialed, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up certificates of kubeconfig: %w", err)
	}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: answerWithin, KeepAlive: 30 * time.Second}).DialContext
	}
	d := &dialed{dialer: connrotation.NewDialer(dial)}
	d.streams = d.over(cfg, tlsConfig.Clone())
	if tlsConfig != nil {
		tlsConfig.VerifyConnection = d.shows
	}
	d.Transport = d.over(cfg, tlsConfig)
	d.streams.HTTP2.MaxReceiveBufferPerStream = streamWindow
	return d, nil
}

// streamWindow is how much of a log that nobody takes is held here, in bytes:
// as much as keeps a connection over loopback busy.
const streamWindow = 256 << 10

func (d *dialed) over(cfg *rest.Config, tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:               cfg.Proxy, // nil: the API server is near, whatever HTTPS_PROXY says
		DialContext:         d.dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: answerWithin,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // over loopback it only costs
		ForceAttemptHTTP2:   true,
		// A connection on which nothing comes back is given up after 15 s, and
		// with it every watch on it; not sooner than any request on it is.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: answerWithin},
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
