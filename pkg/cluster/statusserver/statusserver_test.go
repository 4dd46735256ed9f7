package statusserver

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device runs the component over tables of its own, on 127.12.34.0/24.
type device struct {
	*testing.T
	status pubsub.Table[types.EdgeNodeClusterStatus]
	nodes  pubsub.Table[types.Node]
	edges  pubsub.Table[types.Node]
	api    pubsub.Table[types.APIStatus]
	info   pubsub.Table[types.EdgeNodeInfo]
	port   int
	tls    bool // at is for TLS
	log    *logtest.Hook
	trail  operations
	peers  *clusterauth.Memory
	told   func(context.Context, netip.Addr) ([]byte, error)
	stop   func() // returns when Run has
}

func boot(t *testing.T) *device { return bootOn(t, freePort(t), t.TempDir()) }

// bootOn boots a device whose agents keep their topics below run.
func bootOn(t *testing.T, port int, run string) *device {
	d := &device{T: t, port: port}
	f := working()
	for name, n := range f.nodes {
		_ = d.nodes.Publish(name, n)
	}
	_ = d.api.Publish(types.Global, f.api)
	_ = d.info.Publish(types.Global, f.info)
	log, hook := logtest.NewNullLogger()
	d.log = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: &d.trail, PeersFile: filepath.Join(run, "zedkube", "peers"), Status: &d.status, Nodes: &d.nodes, EdgeNodes: &d.edges, API: &d.api, Info: &d.info, Port: d.port,
		TopicDirs: []string{run}, InstallLog: filepath.Join(run, "k3s-install.log"), ProversFile: filepath.Join(run, "zedkube", "all-prove"),
		Overview: func(context.Context) ([]byte, error) { return []byte(`{"Zedkube":"told"}`), nil },
	}
	d.peers, d.told = &c.peers, c.AskOverview
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	d.stop = func() { cancel(); <-done }
	t.Cleanup(d.stop)
	return d
}

// freePort is a port that is free on all addresses of this machine, since one test may
// listen on many.
func freePort(t testing.TB) int { return portOn(t, "0.0.0.0") }

// portOn is a port that is free on ip, and not one of those that the kernel gives to
// connections meanwhile.
func portOn(t testing.TB, ip string) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port))); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// at is where the device is asked, for connect.
func (d *device) at(ip string) string {
	if d.tls {
		return byTLS + d.plainlyAt(ip)
	}
	return d.plainlyAt(ip)
}

func (d *device) plainlyAt(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(d.port)) }

func (d *device) ready(cidr string) {
	s := status(cidr, true)
	s.EncryptedClusterToken = token
	_ = d.status.Publish(types.Global, s)
}

// listens waits until ip accepts connections, or until it does not any more.
func (d *device) listens(ip string, want bool) {
	d.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", d.plainlyAt(ip))
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) == want {
			return
		}
	}
	d.Fatalf("%s: want listening %v", d.at(ip), want)
}

// raw sends a request as it stands and returns the whole answer but its Date.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	conn := dialFrom(t, "", address)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "Date: ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestAnswersAreThoseOfTheWireByteForByte(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		const (
			end    = " HTTP/1.1\r\nHost: x\r\n" + auth + "Connection: close\r\n\r\n"
			ok     = "HTTP/1.1 200 OK\r\nVary: Accept\r\n"
			denied = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 24\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
			lost   = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 19\r\nConnection: close\r\n\r\n404 page not found\n"
		)
		rows := []struct{ name, request, want string }{
			{"GET", "GET /status", ok + "Content-Length: 44\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\ncluster:" + clusterID},
			{"GET with a query", "GET /status?x=1", ok + "Content-Length: 44\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\ncluster:" + clusterID},
			{"POST", "POST /status", denied + "405 - Method Not Allowed"},
			{"HEAD", "HEAD /status", denied},
			{"another path", "GET /", lost},
			{"a path below", "GET /status/x", lost},
			{"a trailing slash", "GET /status/", lost},
			{"no application's name", "GET /app/x", "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 14\r\nConnection: close\r\n\r\nApp not found\n"},
			{"another method on another path", "POST /nothing", lost},
		}
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				if got := raw(t, d.at("127.12.34.1"), r.request+end); sorted(got) != sorted(r.want) {
					t.Errorf("got\n%q\nwant\n%q", got, r.want)
				}
			})
		}
		_ = d.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		want := ok + "Content-Length: 0\r\nConnection: close\r\n\r\n"
		if got := raw(t, d.at("127.12.34.1"), "GET /status"+end); sorted(got) != sorted(want) {
			t.Errorf("while the API is silent got\n%q\nwant\n%q", got, want)
		}
	})
}

// sorted orders the header lines: their order says nothing.
func sorted(answer string) string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

func TestServerFollowsTheClusterAddress(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/24")
	d.listens("127.12.34.1", true)
	d.listens("127.0.0.1", false) // no other address of this machine

	d.ready("127.12.34.2/24")
	d.listens("127.12.34.2", true)
	d.listens("127.12.34.1", false)

	_ = d.status.Publish(types.Global, status("127.12.34.2/24", false))
	d.listens("127.12.34.2", false)

	d.ready("127.12.34.2/24")
	d.listens("127.12.34.2", true)
	_ = d.status.Unpublish(types.Global)
	d.listens("127.12.34.2", false)

	d.ready("127.12.34.2/24")
	d.listens("127.12.34.2", true)
	d.stop()
	d.listens("127.12.34.2", false)
}

func TestBindThatFailsIsRepeatedUntilItWorks(t *testing.T) {
	d := boot(t)
	squatter, err := net.Listen("tcp", d.at("127.12.34.1"))
	if err != nil {
		t.Fatal(err)
	}
	d.ready("127.12.34.1/24")
	time.Sleep(100 * time.Millisecond) // the first bind fails meanwhile
	_ = squatter.Close()
	d.listens("127.12.34.1", true)
	if got := raw(t, d.at("127.12.34.1"), "GET /status HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "cluster:"+clusterID) {
		t.Errorf("got %q", got)
	}
}

func TestServerThatDiedIsStartedAgain(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	d := &device{T: t, port: freePort(t)}
	d.ready("127.12.34.1/24")
	c := &Component{Log: log, Status: &d.status, Nodes: &d.nodes, EdgeNodes: &d.edges, API: &d.api, Info: &d.info, Port: d.port}
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.server.Close()
	for c.server.Alive() {
		time.Sleep(time.Millisecond)
	}
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.stop(t.Context())
	resp, err := http.Get("http://" + d.at("127.12.34.1") + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || len(body) != 0 {
		t.Errorf("got %d %q from empty tables", resp.StatusCode, body)
	}
	http.DefaultClient.CloseIdleConnections()
}
