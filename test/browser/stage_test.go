// Package browser tests the page in a real browser, chromium without a window.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// program is Debian's chromium, or whatever stands in for it.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" && os.Getenv("NO_MIRROR") != "true" {
		t.Fatal("the page is tested in the package chromium, which is not installed")
	}
	t.Skip("the page is tested in the package chromium, which is not installed")
	return ""
}

// device is a device with a page: what it shows is what the test says.
type device struct {
	t       *testing.T
	address string // of a tunnel to the agent's socket, as ssh -L makes one
	direct  string // where the agent serves the page itself, for who has the token
	token   string // the file with it
	page    *page.Page
	metrics pubsub.Table[types.KubeNodeMetrics]
	configs pubsub.Table[types.AppInstanceConfig]
	pods    pubsub.Table[types.Pod]
	logs    *logs
	edge    *playedEdge

	mu      sync.Mutex
	shown   overview.Overview
	root    string // where shown is read from, "" for as it was set
	trail   page.Trail
	cluster []clusterview.Row // what the other nodes tell, one after the other
	hold    chan struct{}     // nil, or closed for all of them but the first to be told
	did     []string          // commands that the page ran
	silent  bool              // its API server, for commands that the page runs
	stopped func()
	socket  string
}

// newDevice serves a page on two free ports of 127.0.0.1.
func newDevice(t *testing.T) *device {
	t.Helper()
	dir, err := os.MkdirTemp("", "page-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &device{t: t, socket: filepath.Join(dir, "zedkube.sock"), direct: freeAddress(t), token: filepath.Join(dir, "token"), logs: &logs{}, edge: &playedEdge{limit: "100", nodes: map[string]string{}}}
	d.address = tunnel(t, d.socket)
	log := logrus.New()
	log.SetOutput(io.Discard)
	d.page = &page.Page{
		Log: log, Overview: d.overview, Metrics: &d.metrics, Configs: &d.configs, AppPods: &d.pods, Kube: d.logs,
		Audit: func(url.Values) (page.Trail, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.trail, nil
		},
		Requests: func() uint64 { return 3 * uint64(time.Now().Unix()) },
	}
	d.start()
	return d
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start serves until stop, or the end of the test.
func (d *device) start() {
	d.t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	routes := d.page.Routes()
	routes[clusterview.Path] = localserver.Route{Handler: http.HandlerFunc(d.tell), Access: localserver.WithToken, Stream: true}
	act := &actions.Handler{Agent: context.Background(), Operations: types.NoOperations{}, Program: "zedkube --root /node-2", Run: d.run}
	routes[actions.Path] = localserver.Route{Handler: http.HandlerFunc(act.List), Access: localserver.WithToken}
	routes[actions.Path+"/"] = localserver.Route{Handler: act, Methods: []string{http.MethodGet, http.MethodHead, http.MethodPost}, Effect: "what the command changes"}
	edge := &actions.Edge{Handler: &actions.Handler{Agent: context.Background(), Operations: types.NoOperations{}, Program: "zedkube --root /node-2", Run: d.edge.run}}
	routes[actions.EdgePath] = localserver.Route{Handler: http.HandlerFunc(edge.Look), Access: localserver.WithToken}
	routes[actions.EdgePlanPath] = localserver.Route{Handler: http.HandlerFunc(edge.Plan), Methods: []string{http.MethodPost}}
	routes[actions.EdgeDoPath] = localserver.Route{Handler: http.HandlerFunc(edge.Do), Methods: []string{http.MethodPost}}
	server := &localserver.Component{
		Log: log, Pulse: &loop.Pulse{}, Status: &pubsub.Table[types.EdgeNodeClusterStatus]{},
		Socket: d.socket, Address: d.direct, PageToo: true, TokenFile: d.token, Routes: routes,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Run(ctx) })
	d.stopped = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	d.t.Cleanup(d.stopped)
	wait(d.t, "the local server listens", func() error {
		for network, address := range map[string]string{"unix": d.socket, "tcp": d.direct} {
			conn, err := net.Dial(network, address)
			if err != nil {
				return err
			}
			conn.Close()
		}
		_, err := os.Stat(d.token)
		return err
	})
}

// tell answers with the cluster as an agent does.
func (d *device) tell(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	rows, hold := d.cluster, d.hold
	d.mu.Unlock()
	out := json.NewEncoder(w)
	_ = out.Encode(clusterview.Line{NodesAt: time.Now()})
	for _, row := range rows {
		first := row
		first.State, first.Why = clusterview.Asking, ""
		_ = out.Encode(clusterview.Line{Row: &first})
	}
	for i, row := range rows {
		if i == 1 && hold != nil {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		_ = out.Encode(clusterview.Line{Row: &row})
	}
	_ = out.Encode(clusterview.Line{End: true})
}

// tunnel brings a program that connects to its address to a socket, as ssh -L does.
func tunnel(t *testing.T, socket string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go relay(near, socket)
		}
	}()
	return l.Addr().String()
}

// relay carries one connection until either end closes it.
func relay(near net.Conn, socket string) {
	defer near.Close()
	far, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, near)
	}()
	_, _ = io.Copy(near, far)
}

// run plays the commands of the program.
func (d *device) run(_ context.Context, out io.Writer, args ...string) error {
	line := strings.Join(args, " ")
	d.mu.Lock()
	d.did = append(d.did, line)
	silent := d.silent
	d.mu.Unlock()
	if silent && line == "drain plan" {
		return types.ErrNoAPI
	}
	if line == "drain plan" {
		fmt.Fprint(out, "Plan for the drain of node-2, nothing is changed\n  verdict   it would not end by itself\n")
		return nil
	}
	fmt.Fprintf(out, "said by %s %s%s\n", line, asScript, asEscape)
	return nil
}

// hasRun reports whether the page ran a command.
func (d *device) hasRun(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.did, line)
}

func (d *device) overview(now time.Time) overview.Overview {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root != "" {
		return health.Read(d.root, now)
	}
	o := d.shown
	o.ReadAt = now.UTC()
	return o
}

// show makes the device say something else from now on.
func (d *device) show(change func(o *overview.Overview)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, err := json.Marshal(d.shown)
	if err != nil {
		d.t.Fatal(err)
	}
	var fresh overview.Overview // the page keeps what it was shown
	if err := json.Unmarshal(content, &fresh); err != nil {
		d.t.Fatal(err)
	}
	change(&fresh)
	d.shown = fresh
}

// play writes a topic's file as its agent does.
func (d *device) play(agent, topic, key string, v any) {
	d.t.Helper()
	content, err := json.Marshal(v)
	if err != nil {
		d.t.Fatal(err)
	}
	dir := filepath.Join(d.root, "run", agent, topic)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	file := filepath.Join(dir, key+".json")
	if err := os.WriteFile(file+".tmp", content, 0o644); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) url() string { return "http://" + d.address + "/" }

// logs plays the kubelet's logs.
type logs struct {
	open atomic.Int32 // how many are read

	mu    sync.Mutex
	lines chan string // what a container writes while it is followed
	past  []string
}

// Logs implements page.Kube.
func (l *logs) Logs(ctx context.Context, _ types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	l.mu.Lock()
	past, lines := l.past, l.lines
	l.mu.Unlock()
	r, w := io.Pipe()
	l.open.Add(1)
	go func() {
		defer l.open.Add(-1)
		_, err := io.WriteString(w, strings.Join(past, ""))
		for o.Follow && err == nil {
			select {
			case line, ok := <-lines:
				if !ok {
					w.Close()
					return
				}
				_, err = io.WriteString(w, line)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		w.CloseWithError(err)
	}()
	return r, nil
}

// patience is four times what the slowest step takes on a quiet machine.
const patience = 2 * time.Minute

// wait waits until it is so; on a busy machine that takes its time.
func wait(t *testing.T, what string, so func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = so(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", what, patience, err)
}

// fail says what is wrong so far.
func fail(what string, got ...any) error { return fmt.Errorf(what, got...) }
