package joiner_test

import (
	"context"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/joiner"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seed is the address of the node to join, in a network of this package's own.
const seed = "127.12.56.1"

var (
	plant  = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	depot  = uuid.MustParse("11111111-2222-4333-8444-555566667777")
	device = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
)

// world is what the node to join knows; nil is what it does not know yet.
type world struct {
	status *types.EdgeNodeClusterStatus
	node   *types.Node
	api    *types.APIStatus
	info   *types.EdgeNodeInfo
}

// working is the world of a server of the cluster plant.
func working(address string) world {
	ip := netip.MustParseAddr(address)
	return world{
		status: &types.EdgeNodeClusterStatus{
			ClusterName: "plant-7", ClusterID: types.UUIDandVersion{UUID: plant}, ClusterInterface: "eth2", ClusterIPIsReady: true,
			ClusterIPPrefix: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())},
		},
		node: &types.Node{
			Name: "press-line-2", UUID: device.String(), Ready: types.ConditionTrue, ReadySince: time.Now().Add(-time.Minute),
			ControlPlane: true, Etcd: true, EtcdVoter: types.ConditionTrue, KubeletVersion: "v1.34.1+k3s1",
		},
		api:  &types.APIStatus{Synced: true},
		info: &types.EdgeNodeInfo{DeviceName: "Press_Line_2", DeviceID: device},
	}
}

// node is the node to join: the real status server, and an API server that
// knows nobody.
type node struct {
	*testing.T
	address     string
	port        int
	api         int
	statusTable pubsub.Table[types.EdgeNodeClusterStatus]
	nodeTable   pubsub.Table[types.Node]
	apiTable    pubsub.Table[types.APIStatus]
	infoTable   pubsub.Table[types.EdgeNodeInfo]
}

// boot starts a node that knows nothing yet and so listens nowhere.
func boot(t *testing.T, address string) *node {
	t.Helper()
	n := &node{T: t, address: address, port: freePort(t, address)}
	refuse := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Unauthorized", http.StatusUnauthorized) }
	n.api = apiServer(t, address, refuse)
	run := t.TempDir()
	log, _ := logtest.NewNullLogger()
	c := &statusserver.Component{
		Log: log, Pulse: &loop.Pulse{}, Port: n.port, TopicDirs: []string{run}, InstallLog: filepath.Join(run, "k3s-install.log"),
		Status: &n.statusTable, Nodes: &n.nodeTable, API: &n.apiTable, Info: &n.infoTable, Operations: types.NoOperations{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return n
}

// turns makes the node's world w, and returns when it listens as it should.
func (n *node) turns(w world) {
	n.Helper()
	put(&n.nodeTable, "press-line-2", w.node)
	put(&n.apiTable, types.Global, w.api)
	put(&n.infoTable, types.Global, w.info)
	put(&n.statusTable, types.Global, w.status)
	want := w.status != nil && w.status.ClusterIPIsReady
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		conn, err := net.Dial("tcp", n.at())
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) == want {
			return
		}
	}
	n.Fatalf("%s: want listening %v", n.at(), want)
}

// put keeps the row where it stands: a status withdrawn for a moment would stop
// the server.
func put[T any](table *pubsub.Table[T], key string, v *T) {
	if v == nil {
		_ = table.Unpublish(key) // a table in memory never fails
		return
	}
	_ = table.Publish(key, *v)
}

func (n *node) at() string { return net.JoinHostPort(n.address, strconv.Itoa(n.port)) }

// joiner is one that has been told to join cluster here.
func (n *node) joiner(cluster uuid.UUID) joiner.Joiner {
	return joiner.Joiner{
		Server: netip.MustParseAddr(n.address), Cluster: cluster, APIPort: uint16(n.api), StatusPort: uint16(n.port),
	}
}

// apiServer answers every question over TLS with h, by a certificate that
// nobody trusts, and returns its port.
func apiServer(t *testing.T, address string, h http.HandlerFunc) int {
	t.Helper()
	s := unstarted(t, address, h)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// statusServer plays a status server that is not zedkube's.
func statusServer(t *testing.T, address string, h http.HandlerFunc) int {
	t.Helper()
	s := unstarted(t, address, h)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func unstarted(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = listen(t, address)
	s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	return s
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func freePort(t *testing.T, address string) int {
	t.Helper()
	l := listen(t, address)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
