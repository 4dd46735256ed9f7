// Package topcmd is zedkube top.
package topcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/nodemetrics"
	"github.com/zedkube/zedkube/types"
)

const topExitCodes = `Exit codes:
  0   it was shown
  1   wrong usage, interrupted, or it could not be printed
  2   there is nothing to show: no agent is running here, and the API server cannot be queried
  99  unknown command`

// What a table is of.
const (
	topNodes      = "nodes"
	topPods       = "pods"
	topContainers = "containers"
)

type topOptions struct {
	of      string
	all     bool // pods of every namespace
	cluster bool // pods of every node
	edge    bool // only edge nodes, and the pods there of every namespace
	sort    string
	once    bool
	json    bool // data is wanted, in the form of out
	out     terminal.Outputs
	ascii   bool
}

// NewTopCommand shows what nodes, pods and containers use.
func NewTopCommand(o *device.Options) *cobra.Command {
	t := topOptions{}
	c := &cobra.Command{
		Use:   "top [nodes|pods|containers] [--all] [--cluster] [--sort-by COLUMN]",
		Short: "Show the resource usage of nodes, pods and containers, live",
		Long: "Show live the resource usage of all nodes of the cluster, or of the pods or containers of this one,\n" +
			"or with --cluster of all. This node's values come from the agent, which keeps the last eight samples of everything and\n" +
			"measures every 5 s while this command runs. Other nodes' kubelets are asked directly.\n" +
			"Nodes of KubeEdge the agent measures every 5 s while this command runs; what of one that is offline was known before stays.\n" +
			"A value older than 15 s is\n" +
			"marked with !; for pods and containers, one older than 25 s, because kubelets measure them every 10 to 15 s. Unknown\n" +
			"values are shown as -. q quits, c m n sort by cpu, memory or name, the arrow keys, space and b scroll.\n\n" + topExitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := t.parse(args); err != nil {
				return err
			}
			// Also when the terminal goes away the agent is told that nobody looks.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			signal.Ignore(syscall.SIGPIPE) // what is written fails; a broken connection to the API server raises it, too
			return showTop(ctx, o.Paths(), t, terminal.Of(c.OutOrStdout()))
		},
		ValidArgs: []string{topNodes, topPods, topContainers},
	}
	flags := c.Flags()
	flags.BoolVarP(&t.all, "all", "A", false, "pods and containers of every namespace, not only those of applications")
	flags.BoolVar(&t.cluster, "cluster", false, "pods and containers of all nodes: CPU and memory")
	flags.BoolVar(&t.edge, "edge", false, "only nodes of KubeEdge, or pods and containers there, of every namespace")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "sort" { // its name before
			name = "sort-by"
		}
		return pflag.NormalizedName(name)
	})
	flags.BoolVar(&t.once, "once", false, "print one table and exit; the default if there is no terminal")
	flags.BoolVar(&t.json, "json", false, "the same as -o json: a line of JSON every 5 s; with --once a single one")
	terminal.List[topRow](&t.out, c, "", topTable{Of: topNodes}.sortable())
	t.out.SortsData()
	t.out.ColumnsBy(func(args []string) []terminal.Column {
		return topTable{Of: strings.Join(append(args, topNodes)[:1], ""), Cluster: t.cluster || t.edge}.sortable().Columns
	})
	flags.BoolVar(&t.ascii, "ascii", !localeIsUTF8(), "digits instead of blocks; the default if the locale is not UTF-8")
	return c
}

func (t *topOptions) parse(args []string) error {
	t.of, t.json = topNodes, t.json || !t.out.People() && !t.out.Names()
	t.once = t.once || t.out.Names()
	t.sort = cmp.Or(strings.ToLower(t.out.SortBy()), sortCPU)
	if len(args) == 1 {
		t.of = args[0]
	}
	switch {
	case len(args) > 1:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("usage: zedkube top [nodes|pods|containers]"))
	case !slices.Contains([]string{topNodes, topPods, topContainers}, t.of):
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("table %q: want nodes, pods or containers", terminal.Clean(t.of)))
	case t.all && t.of == topNodes:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--all is for pods and containers: all nodes are shown anyway"))
	case t.cluster && t.of == topNodes:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--cluster is for pods and containers: all nodes are shown anyway"))
	}
	if t.edge && t.of != topNodes {
		t.all, t.cluster = true, true
	}
	return nil
}

// localeIsUTF8 reads the locale's character set as the C library does.
func localeIsUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
		}
	}
	return false
}

// showTop asks the agent to look often for as long as it shows.
func showTop(ctx context.Context, p device.Paths, o topOptions, out terminal.Terminal) error {
	if err := device.CheckDevice(p); err != nil {
		return err
	}
	measuring, err := startMeasuring(p)
	if err != nil {
		return err
	}
	defer measuring.end()
	t := newTop(p, o, out, measuring)
	defer t.client.CloseIdleConnections()
	if t.asks() {
		kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, types.NoOperations{})
		if err == nil {
			defer done()
			t.asking.kube = kube
		}
		t.asking.err = err
	}
	return t.run(ctx)
}

// onceWithin is how long a single table waits for values that are young: the
// agent looks when it is told that somebody does, and the nodes are asked.
const onceWithin = 7 * time.Second

type top struct {
	options   topOptions
	paths     device.Paths
	out       terminal.Terminal
	measuring *measuring
	client    *http.Client // of the agent's socket
	own       topicRecord[types.KubeNodeMetrics]
	kept      *types.KubeNodeMetrics                // what the agent keeps more than own; nil for nothing
	cluster   topicRecord[types.KubeClusterMetrics] // read only where nodes are shown
	asking    nodeAsking
	edge      edgeAsking

	wake chan struct{} // rings where something is new before a second has passed
}

func newTop(p device.Paths, o topOptions, out terminal.Terminal, m *measuring) *top {
	t := &top{options: o, paths: p, out: out, measuring: m, wake: make(chan struct{}, 1), client: boundedhttp.NewSocketClient(p.Socket)}
	t.own.path, t.cluster.path = p.TopicFile(device.Self, "KubeNodeMetrics"), p.TopicFile(device.Self, "KubeClusterMetrics")
	t.asking.wake, t.asking.samples, t.asking.asked = t.wake, map[string][]nodeSample{}, map[string]time.Time{}
	t.asking.pods = map[string][]types.PodMetrics{}
	return t
}

// asks reports that other nodes are asked.
func (t *top) asks() bool { return t.all() && !t.options.edge }

// all reports that the table is of all nodes.
func (t *top) all() bool { return t.options.of == topNodes || t.options.cluster }

const (
	keptWithin = time.Second // the agent has it in memory
	maxKept    = 32 << 20    // bytes of its answer
)

// lookAtOwn takes what the agent says of this node: from its file, and where that is new and
// the agent runs from its memory, which has the samples that the file leaves out.
func (t *top) lookAtOwn(ctx context.Context, runs bool) *types.KubeNodeMetrics {
	was := t.own.value
	t.own.look()
	if t.options.of == topNodes || !runs || t.own.value == nil {
		return t.own.value // of the node the file has them all
	}
	if t.own.value == was && t.kept != nil {
		return t.kept
	}
	t.kept = nil
	var kept types.KubeNodeMetrics
	raw, err := boundedhttp.Whole(ctx, t.client, "http://zedkube"+nodemetrics.Path, maxKept, keptWithin)
	if err != nil || json.Unmarshal(raw, &kept) != nil || kept.At.Before(t.own.value.At) {
		return t.own.value // such as an agent of an earlier release
	}
	t.kept = &kept
	return t.kept
}

// run shows it until ctx is done or somebody types q.
func (t *top) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.asking.work.Wait()
	defer cancel()
	switch {
	case t.options.json && !t.options.once:
		t.options.out.JSON()
		return t.stream(ctx)
	case t.options.once || !t.out.Live:
		table, err := t.first(ctx)
		if err != nil {
			return err
		}
		return cmp.Or(t.print(table), table.nothing())
	}
	return t.live(ctx)
}

// step looks at all there is, and has the nodes asked when it is time.
func (t *top) step(ctx context.Context) topTable {
	now := device.Now(t.paths.Root)
	t.measuring.renew(now)
	agent := device.LifeOfAgent(t.paths, now)
	own := t.lookAtOwn(ctx, agent.Runs)
	if t.options.of == topNodes {
		t.cluster.look()
	}
	table := topTable{At: now.UTC(), Of: t.options.of, Cluster: t.options.cluster, Edge: t.options.edge, Agent: agent, Problems: t.problems(agent, now), Rows: []topRow{}}
	if info, err := device.OwnName(t.paths); err == nil {
		table.Node = info.NodeName()
	}
	if t.measuring.err != nil {
		table.Problems = append(table.Problems, t.measuring.err.Error())
	}
	if own != nil && own.Node != "" {
		table.Node = own.Node
	}
	if t.asks() {
		rows, problems := t.asking.look(own, t.cluster.value, now)
		t.asking.begin(ctx, now) // after that look: a node of which something new is known is not asked
		table.Problems = append(table.Problems, problems...)
		if t.options.cluster {
			rows, table.Hidden = t.asking.podsOf(t.options, now)
		}
		table.Rows = append(table.Rows, rows...)
	} else if own != nil && !t.options.edge {
		rows, hidden := podRows(*own, t.options, now)
		table.Rows, table.Hidden = append(table.Rows, rows...), hidden
	}
	if t.all() && agent.Runs {
		t.edge.look(ctx, t.client, now)
		rows, hidden, problems := t.edge.rows(t.options, now)
		table.Rows, table.Hidden, table.Problems = append(table.Rows, rows...), table.Hidden+hidden, append(table.Problems, problems...)
	}
	table.Rows = terminal.Selected(&t.options.out, table.Rows)
	sortRows(table.Rows, t.options.sort)
	table.sortByColumn(t.options.sort)
	table.OldRows = table.Rows
	return table
}

// first is the table when its values are young, or when it is known that they
// will not be.
func (t *top) first(ctx context.Context) (topTable, error) {
	late := time.NewTimer(onceWithin)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// Before the table is made: what comes while it is made may not be in it.
		asked := !t.asks() || t.asking.settled()
		table := t.step(ctx)
		if asked && t.settled(table) {
			return table, nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			return t.step(ctx), nil
		case <-ctx.Done():
			return table, terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))
		}
	}
}

// settled reports that waiting brings no younger sample of what is shown.
func (t *top) settled(table topTable) bool {
	own := t.own.value
	young := t.options.edge || own != nil && (own.Stale != "" || table.At.Sub(own.At).Abs() <= topOld)
	return !table.Agent.Runs || t.measuring.err != nil || young && t.edge.settled(table.At)
}

// stream prints a document at each of the agent's looks.
func (t *top) stream(ctx context.Context) error {
	table, err := t.first(ctx)
	if err != nil {
		return err
	}
	next := func() topTable { return table }
	look := func(ctx context.Context) terminal.View {
		v := terminal.View{Data: next()}
		next = func() topTable { return t.step(ctx) }
		return v
	}
	return t.options.out.Follow(ctx, t.out, terminal.Watch{Look: look, Every: lookEvery})
}

// live draws the table each second, and at each key.
func (t *top) live(ctx context.Context) error {
	look := func(ctx context.Context) terminal.View {
		table := t.step(ctx)
		return terminal.View{Err: table.nothing(), Draw: func(s *terminal.Screen) { table.draw(s, t.options) }}
	}
	return t.options.out.Follow(ctx, t.out, terminal.Watch{
		Look: look, Every: terminal.WatchEvery, Wake: t.wake, Cleared: true, Scrolls: true, Press: t.press,
	})
}

func (t *top) print(table topTable) error {
	if t.options.json {
		return t.options.out.Encode(t.out, table, "")
	}
	v := terminal.View{Draw: func(s *terminal.Screen) { table.draw(s, t.options) }}
	for _, r := range table.Rows {
		v.Names = append(v.Names, strings.TrimSuffix(table.Of, "s")+"/"+r.Name)
	}
	return t.options.out.Print(t.out, v)
}

func (t topTable) nothing() error {
	for _, r := range t.Rows {
		if !r.At.IsZero() {
			return nil
		}
	}
	if len(t.Problems) == 0 {
		return nil // there are no pods
	}
	return terminal.ExitWith(terminal.ExitNotPublished, errors.New("there is nothing to show: "+terminal.Clean(t.Problems[0])))
}

const (
	// lookEvery is how often the agent is told that somebody still looks.
	lookEvery = 5 * time.Second
	// lookForgotten is how old the word of a command may be that lives: more, and
	// it was killed before it could take it back.
	lookForgotten = time.Minute
	// lookWithin is how long the table waits for the agent to hear that: not so
	// long that one that hangs keeps it from being drawn.
	lookWithin = time.Second
)

// measuring is the request that the agent measures often, under a key of its own.
type measuring struct {
	topic device.Requested[types.MetricsLook]
	key   string
	next  time.Time // of the renewal
	err   error     // of the newest; nil where it lies there
}

// startMeasuring makes the topic ready, and takes back what commands left there
// that were killed.
func startMeasuring(p device.Paths) (*measuring, error) {
	topic, err := device.OperatorTopic[types.MetricsLook](p)
	if err != nil {
		return nil, err
	}
	topic.Within = lookWithin
	l := &measuring{topic: topic, key: uuid.NewString()}
	now := time.Now()
	for key, left := range topic.All() {
		if now.Sub(left.At).Abs() > lookForgotten {
			_ = topic.Unpublish(key) // the next command tries again
		}
	}
	return l, nil
}

// renew says it again when it is time.
func (l *measuring) renew(now time.Time) {
	if now.Before(l.next) {
		return
	}
	l.next = now.Add(lookEvery)
	l.err = l.topic.Publish(l.key, types.MetricsLook{At: now.UTC()})
	if l.err != nil {
		l.err = fmt.Errorf("the agent could not be asked to measure every 5 s: %w", l.err)
	}
}

// end takes it back. Where that fails the agent forgets it all the same.
func (l *measuring) end() { _ = l.topic.Unpublish(l.key) }

// topicRecord is the file of a topic, read again when it has changed: the cluster's
// metrics are long, and most looks find the same ones.
type topicRecord[T any] struct {
	path  string
	value *T    // nil for none that can be read
	err   error // why; wraps fs.ErrNotExist where there is no file

	read fs.FileInfo // of the file that value is of; nil for none
}

func (r *topicRecord[T]) look() {
	info, err := os.Stat(r.path)
	if err == nil && r.read != nil && os.SameFile(info, r.read) && info.ModTime().Equal(r.read.ModTime()) && info.Size() == r.read.Size() {
		return
	}
	var v T
	if err == nil {
		v, _, err = device.ReadRecord[T](r.path)
	}
	if r.err = err; err != nil {
		r.value, r.read = nil, nil
		return
	}
	r.value, r.read = &v, info
}

// problems are what the files do not say, and why.
func (t *top) problems(agent device.AgentLife, now time.Time) []string {
	var said []string
	if !agent.Runs {
		said = append(said, "the agent is NOT running: "+agent.Why+"; its values are the last ones that it published")
	}
	if t.options.edge {
		return said // the rest is of members
	}
	m := t.own.value
	switch {
	case errors.Is(t.own.err, fs.ErrNotExist) && agent.Runs:
		said = append(said, "the agent has published no KubeNodeMetrics yet")
	case t.own.err != nil && !errors.Is(t.own.err, fs.ErrNotExist):
		said = append(said, "KubeNodeMetrics: "+t.own.err.Error())
	case m != nil && m.Stale != "":
		said = append(said, "this node's kubelet: "+m.Stale)
	case m != nil && agent.Runs && now.Sub(m.At).Abs() > max(m.Every, time.Minute)+topOld:
		said = append(said, fmt.Sprintf("KubeNodeMetrics is stale: it is from %s", terminal.Stamp(m.At, now)))
	}
	if m != nil && m.Omitted > 0 {
		said = append(said, phrase.Counted(m.Omitted, "row")+" of pods and containers left out of KubeNodeMetrics, which would be too large")
	}
	// Only the node that reports for the cluster has the other file.
	if err := t.cluster.err; err != nil && !errors.Is(err, fs.ErrNotExist) {
		said = append(said, "KubeClusterMetrics: "+err.Error())
	}
	if c := t.cluster.value; c != nil && c.Truncated > 0 {
		said = append(said, phrase.Counted(c.Truncated, "row")+" left out of KubeClusterMetrics, which would be too large")
	}
	return said
}
