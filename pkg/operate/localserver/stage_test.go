package localserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// says answers with its own words.
type says string

func (s says) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, string(s)) }

// ticks is a stream: a line each second until who asked goes away.
type ticks struct{}

func (ticks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	for {
		if _, err := io.WriteString(w, "tick\n"); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// echoes answers with what it is sent.
type echoes struct{}

func (echoes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	_, _ = fmt.Fprint(w, r.Method, " ", string(content), " ", err)
}

// component serves one word everywhere, others on the socket alone or to who has
// the token, and a stream.
func component(t *testing.T) *Component {
	t.Helper()
	return &Component{
		Log: quiet(), Pulse: &loop.Pulse{}, Status: &pubsub.Table[types.EdgeNodeClusterStatus]{}, Socket: t.TempDir() + "/zedkube/zedkube.sock",
		PageToo: true,
		Routes: map[string]Route{
			"/metrics": {Handler: says("numbers"), Access: Always, Apart: true}, "/": {Handler: says("page"), Access: WithPage},
			"/api/events": {Handler: ticks{}, Access: WithPage, Stream: true}, "/api/logs": {Handler: says("logs"), Access: WithToken},
			"/debug/pprof/": {Handler: says("profile")}, "/requests/": {Handler: echoes{}, Methods: []string{http.MethodPut, http.MethodDelete}},
			"/made": {Handler: echoes{}, Methods: []string{http.MethodPost}, Effect: "a thing is made"},
		},
	}
}

// run lets c run until the end of the test or until end is called.
func run(t *testing.T, c *Component) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(end)
	return end
}

// member is the state of a node of a cluster at that address.
func member(ip, token string, ready bool) types.EdgeNodeClusterStatus {
	s := types.EdgeNodeClusterStatus{EncryptedClusterToken: token, ClusterIPIsReady: ready}
	s.ClusterID.UUID = uuid.MustParse("7d9b5f8e-3f3c-4c53-9d6e-5a1f1e2d3c4b")
	s.ClusterIPPrefix = &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(24, 32)}
	return s
}

// wire is a listener in memory: its connections are pipes, on which fake time works.
type wire struct {
	calls chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newWire() *wire { return &wire{calls: make(chan net.Conn), done: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.calls:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { w.once.Do(func() { close(w.done) }); return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: DefaultPort} }

// dial is a new connection to the server.
func (w *wire) dial() net.Conn {
	return w.dialFrom("127.0.0.1:40000")
}

// dialFrom is one that comes from another address.
func (w *wire) dialFrom(address string) net.Conn {
	here, there := net.Pipe()
	w.calls <- from{there, address}
	return here
}

// from is a connection that comes from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.address))
}

// onWire serves c at a place by a listener in memory, for use in a bubble.
func onWire(t *testing.T, c *Component, at place) (w *wire, stop func()) {
	t.Helper()
	w = newWire()
	c.proofs.Begin(time.Now())
	s := c.serve(t.Context(), at, "wire", w, func() bool { return true })
	return w, func() { s.stop(t.Context(), &c.ending); c.ending.Wait() }
}

// reply is an answer, which ends with its connection.
type reply struct {
	code   int
	header http.Header
	body   io.Reader
}

// send sends request on conn and reads the head of the answer.
func send(conn net.Conn, request string) (reply, error) {
	go func() { _, _ = io.WriteString(conn, request) }()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // conn is closed
	if err != nil {
		return reply{}, err
	}
	return reply{resp.StatusCode, resp.Header, resp.Body}, nil
}

// get is a plain question as curl asks it.
func get(path string, headers ...string) string {
	return strings.Join(append([]string{"GET " + path + " HTTP/1.1", "Host: 127.0.0.1:12347"}, headers...), "\r\n") + "\r\n\r\n"
}

// code is the status of the answer to request, 0 where there is none.
func code(w *wire, request string) int {
	conn := w.dial()
	defer conn.Close()
	resp, err := send(conn, request)
	if err != nil {
		return 0
	}
	return resp.code
}
