package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/report/edgemetrics"
	"github.com/zedkube/zedkube/types"
)

const (
	agentPatience = 2 * time.Second // on a socket of this device
	maxNodes      = 8 << 20         // bytes of an answer: a thousand nodes take half a megabyte
	// apiNodesEvery is how often the API server is asked while somebody watches.
	apiNodesEvery = 10 * time.Second
)

// NodesView is what is known of the cluster's nodes.
type NodesView struct {
	ReadAt   time.Time
	Nodes    overview.Nodes
	Problems []string // why a better source could not be had
}

const fromAPI = "the API server" // the source of nodes that it was asked for

// NodesAsked asks for the nodes, again and again.
type NodesAsked struct {
	Paths Paths

	client *http.Client
	kube   *kubeapi.Client
	done   func()
	last   NodesView // of the API server
}

// Close ends the connections.
func (a *NodesAsked) Close() {
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	if a.done != nil {
		a.done()
	}
}

// Look takes the nodes from the best source there is.
func (a *NodesAsked) Look(ctx context.Context) NodesView {
	now := time.Now()
	v := NodesView{ReadAt: now.UTC(), Problems: []string{}}
	o := overview.Read(a.Paths.Root, now)
	if o.Copied {
		v.ReadAt = o.ReadAt
	} else if o.Agent.Runs {
		nodes, err := a.OfAgent(ctx)
		if err == nil && len(nodes.List) > 0 {
			v.Nodes, v.ReadAt = nodes, time.Now().UTC() // it was asked meanwhile
			return v
		}
		if err != nil {
			v.Problems = append(v.Problems, err.Error())
		}
	} else {
		v.Problems = append(v.Problems, "the agent is not running: "+o.Agent.Why)
	}
	if o.Nodes.Known() && len(o.Nodes.List) > 0 {
		v.Nodes = o.Nodes
		return v
	}
	if o.Copied {
		v.Problems = append(v.Problems, "this copy has no nodes: it is no support bundle of a node with a running agent, and no copy of the node that reports for the cluster")
		return v
	}
	return a.ofAPI(ctx, v, o.Node)
}

// Overview is what the files say, with the agent's nodes where they name none.
func (a *NodesAsked) Overview(ctx context.Context, now time.Time) overview.Overview {
	o := health.Read(a.Paths.Root, now)
	if !o.Agent.Runs || o.Copied || len(o.Nodes.List) > 0 {
		return o
	}
	if nodes, err := a.OfAgent(ctx); err == nil && len(nodes.List) > 0 {
		o.Nodes = nodes
		o.Problems = health.Problems(o)
	}
	return o
}

// OfAgent asks the agent through its socket.
func (a *NodesAsked) OfAgent(ctx context.Context) (overview.Nodes, error) {
	if a.client == nil {
		a.client = boundedhttp.NewSocketClient(a.Paths.Socket)
	}
	var nodes overview.Nodes
	raw, err := boundedhttp.Whole(ctx, a.client, "http://zedkube"+overview.NodesPath, maxNodes, agentPatience)
	if err == nil {
		err = json.Unmarshal(raw, &nodes)
	}
	if err != nil {
		return overview.Nodes{}, fmt.Errorf("ask the agent for the nodes: %w", err)
	}
	return nodes, nil
}

const (
	edgeWithin = time.Second // the agent has it in memory
	maxEdge    = 64 << 20    // bytes of its answer: 250 edge nodes with ten pods each take a third
)

// EdgeMeasured asks the agent through its socket what it knows of edge nodes.
func EdgeMeasured(ctx context.Context, client *http.Client) ([]types.KubeNodeMetrics, error) {
	var all edgemetrics.Measured
	raw, err := boundedhttp.Whole(ctx, client, "http://zedkube"+edgemetrics.Path, maxEdge, edgeWithin)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the agent for edge nodes: %w", err)
	}
	return all.Items, nil
}

// JudgeStamps has the agent of this node say which of the stamps on nodes that were
// just listed are stale. Where it does not answer, that is not known of any.
func JudgeStamps(ctx context.Context, p Paths, nodes []types.Node) {
	a := &NodesAsked{Paths: p}
	defer a.Close()
	seen, _ := a.OfAgent(ctx)
	seen.Judge(nodes)
}

// ofAPI asks the API server, not too often. What it said last is kept while it
// says nothing.
func (a *NodesAsked) ofAPI(ctx context.Context, v NodesView, own overview.Node) NodesView {
	if v.ReadAt.Sub(a.last.ReadAt) < apiNodesEvery {
		v.Nodes, v.Problems = a.last.Nodes, a.last.Problems
		return v
	}
	fail := func(err error) NodesView {
		v.Nodes, v.Problems = a.last.Nodes, append(v.Problems, err.Error())
		a.last = v
		return v
	}
	if a.kube == nil {
		kube, done, err := kubeapi.Dial(ctx, Silent(), a.Paths.Kubeconfig, types.NoOperations{})
		if err != nil {
			return fail(err)
		}
		a.kube, a.done = kube, done
	}
	ctx, cancel := context.WithTimeout(ctx, DialWithin)
	defer cancel()
	nodes, err := a.kube.FreshNodes(ctx)
	if err != nil {
		return fail(err)
	}
	v.Nodes = overview.Nodes{Source: overview.Source{At: time.Now().UTC()}, From: fromAPI, List: overview.NodesOf(nodes, own.Name)}
	a.last = v
	return v
}

// NodeNames gives the names of the nodes that the files here and the agent know.
func NodeNames(o *Options) func(context.Context) []string {
	return func(ctx context.Context) (names []string) {
		a := &NodesAsked{Paths: o.Paths()}
		defer a.Close()
		seen := overview.Read(o.Root, time.Now())
		nodes := seen.Nodes
		if seen.Agent.Runs {
			if asked, err := a.OfAgent(ctx); err == nil {
				nodes = asked
			}
		}
		for _, n := range nodes.List {
			names = append(names, terminal.Clean(n.Name))
		}
		return names
	}
}

// AgentLife is whether the agent that writes the record is alive.
type AgentLife struct {
	Runs bool
	Why  string    // why it is taken for dead; "" where it runs
	Seen time.Time // of its last heartbeat; zero for never
}

// ReadRecord reads the JSON of a topic's value, and when it was written.
func ReadRecord[T any](path string) (v T, written time.Time, err error) {
	return overview.ReadFile[T](path)
}

// Now is the moment that ages count from: that at which a copy was made, else the present one.
func Now(root string) time.Time {
	if made, is := overview.CopyMade(root); is {
		return made
	}
	return time.Now()
}

// LifeOfAgent tells a running agent from the leftovers of one.
func LifeOfAgent(p Paths, now time.Time) AgentLife {
	made, copied := overview.CopyMade(p.Root)
	if copied {
		now = made
	}
	a := overview.AgentOf(p.PID, p.Touch, copied, now)
	return AgentLife{Runs: a.Runs, Why: a.Why, Seen: a.Seen}
}

// PutAgent says on a screen of what the agent published that it does not run, where that is so.
func PutAgent(s *terminal.Screen, p Paths, now time.Time) {
	if life := LifeOfAgent(p, now); !life.Runs {
		s.Put(0, terminal.Red, "The agent is not running: "+terminal.Clean(life.Why)+". This is what it last published.")
	}
}

// CheckDevice refuses a root that is none.
func CheckDevice(p Paths) error {
	if _, err := os.Stat(p.RunDir()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	return nil
}

// FormerReports reads what a former run has left, before this one writes the same
// files.
func FormerReports(p Paths) types.FormerReports {
	var f types.FormerReports
	if info, err := os.Stat(p.Touch); err == nil {
		f.Alive = info.ModTime().UTC()
	}
	health, _, err := ReadRecord[types.KubeReportHealth](p.TopicFile(Self, "KubeReportHealth"))
	if err != nil {
		return f // there is none, or the report is made again anyway
	}
	f.Stale = map[string]time.Time{}
	for _, s := range health.Sections {
		f.Stale[s.Name] = s.StaleSince
	}
	return f
}

// Uptime is the time since the boot, suspended time included. Nobody sets that
// clock, and it begins at 0 with each boot.
func Uptime() time.Duration {
	var t unix.Timespec
	// It fails for a clock or an address that does not exist, neither of which this is.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// bootIDFile is where the kernel names the boot; a kubelet reads the same into
// its Node's nodeInfo.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// ReadBootID names this boot. A file below --root stands for a machine of its
// own and comes first; where there is none it is this machine's boot. With an
// error it is "": nobody can tell then whether the device has rebooted but by
// the uptime, which is shorter after a reboot than what was noted before it. To
// take every start for a reboot would end a drain, and let another node go down
// beside this one, because an agent was restarted.
func ReadBootID(file string) (string, error) {
	content, err := safefile.Read(file, safefile.Small)
	if errors.Is(err, os.ErrNotExist) {
		file = bootIDFile
		content, err = safefile.Read(file, safefile.Small)
	}
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	id := strings.TrimSpace(string(content))
	if id == "" {
		return "", fmt.Errorf("read boot id: %s is empty", file)
	}
	return id, nil
}
