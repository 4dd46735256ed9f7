package device

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
)

// ClusterView is what the nodes of the cluster tell of themselves.
type ClusterView struct {
	ReadAt  time.Time
	NodesAt time.Time         `json:",omitzero"` // when what the Nodes show was known
	Nodes   []clusterview.Row `json:"Items"`     // the own one first
	Problem string            `json:",omitzero"` // why that is not all
}

const (
	firstScreen  = 500 * time.Millisecond // until people see what has answered
	clusterEvery = 5 * time.Second        // while somebody watches: each time all nodes are asked
	// clusterPatience is for a turn, the nodes, and the agent itself.
	clusterPatience = 2*clusterview.AskFor + 4*time.Second
	maxClusterLine  = 8 * clusterview.MaxAnswer // a character of what a node tells takes up to six
)

// ClusterFlag adds --cluster to a command that lists, with which it has the columns of t.
func ClusterFlag(c *cobra.Command, out *terminal.Outputs, cluster *bool, what string, t terminal.Table) *cobra.Command {
	out.ColumnsBy(func([]string) []terminal.Column {
		if *cluster {
			return t.Columns
		}
		return nil
	})
	c.Flags().BoolVar(cluster, "cluster", false, what+", as all nodes of the cluster tell: those that do not answer in 3 s with what was last known")
	return c
}

// ClusterLook asks the agent for the cluster, and looks at what has come.
type ClusterLook struct {
	Read func(ctx context.Context, tell func(clusterview.Line)) error // one view, as its lines come
	View func(ClusterView) terminal.View

	lines chan clusterLine
	wake  chan struct{}
	seen  ClusterView
	named map[string]bool // the nodes of the view that is being read
	ended bool            // the view that is being read has
}

// clusterLine is a line, or how a view ended.
type clusterLine struct {
	clusterview.Line
	ended bool
	err   error
}

// ShowCluster shows the nodes, or the only one, as they answer: on a terminal at once
// with what has answered, else when all have, or have not within their time.
func ShowCluster(c *cobra.Command, p Paths, out *terminal.Outputs, only string, view func(ClusterView) terminal.View) error {
	l := &ClusterLook{Read: p.readCluster(only), View: view}
	return l.Show(c.Context(), terminal.Of(c.OutOrStdout()), out)
}

// Show shows it.
func (l *ClusterLook) Show(ctx context.Context, t terminal.Terminal, out *terminal.Outputs) error {
	l.lines, l.wake = make(chan clusterLine, 64), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.ask(ctx, out.Watch)
	first := ctx
	if out.Watch || t.Live && out.People() {
		var end context.CancelFunc
		first, end = context.WithTimeout(ctx, firstScreen)
		defer end()
	}
	for !l.ended && l.next(first) {
	}
	if l.ended && !out.Watch {
		v := l.look()
		return cmp.Or(out.Print(t, v), v.Err)
	}
	return out.Follow(ctx, t, terminal.Watch{Every: time.Second, Wake: l.wake, Look: func(context.Context) terminal.View {
		for l.take() {
		}
		v := l.look()
		v.Ended = l.ended && !out.Watch
		if !l.ended && len(l.seen.Nodes) > 0 {
			v.Err = nil // what is missing may come
		}
		return v
	}})
}

// ask reads one view, or one after another.
func (l *ClusterLook) ask(ctx context.Context, again bool) {
	send := func(line clusterLine) {
		select {
		case l.lines <- line:
		case <-ctx.Done():
		}
		select {
		case l.wake <- struct{}{}:
		default: // it has rung
		}
	}
	pause := time.NewTicker(clusterEvery)
	defer pause.Stop()
	for {
		whole := false
		err := l.Read(ctx, func(line clusterview.Line) {
			whole = whole || line.End
			send(clusterLine{Line: line})
		})
		if ctx.Err() != nil {
			return // nobody looks any more
		}
		if err == nil && !whole {
			err = errors.New("the answer of the agent is cut")
		}
		send(clusterLine{ended: true, err: err})
		if !again {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for a line; false where ctx was done before.
func (l *ClusterLook) next(ctx context.Context) bool {
	select {
	case line := <-l.lines:
		l.note(line)
		return true
	case <-ctx.Done():
		return false
	}
}

// take takes a line that has come.
func (l *ClusterLook) take() bool {
	select {
	case line := <-l.lines:
		l.note(line)
		return true
	default:
		return false
	}
}

func (l *ClusterLook) note(line clusterLine) {
	l.ended = line.ended
	switch {
	case line.err != nil:
		l.seen.Problem = line.err.Error()
	case line.ended:
		l.seen.Problem = ""
		// One that is no longer there is not shown as if it were.
		l.seen.Nodes = slices.DeleteFunc(l.seen.Nodes, func(r clusterview.Row) bool { return !l.named[r.Name] })
		l.named = nil
	case line.Row == nil:
		if !line.NodesAt.IsZero() {
			l.seen.NodesAt = line.NodesAt
		}
	default:
		if l.named == nil {
			l.named = map[string]bool{}
		}
		l.named[line.Row.Name] = true
		at := slices.IndexFunc(l.seen.Nodes, func(r clusterview.Row) bool { return r.Name == line.Row.Name })
		switch {
		case at < 0:
			l.seen.Nodes = append(l.seen.Nodes, *line.Row)
		case line.Row.State != clusterview.Asking: // who is asked once more is shown as he answered last
			l.seen.Nodes[at] = *line.Row
		}
	}
}

func (l *ClusterLook) look() terminal.View {
	l.seen.ReadAt = time.Now().UTC()
	seen := l.seen
	seen.Nodes = slices.Clone(seen.Nodes)
	v := l.View(seen)
	if len(seen.Nodes) == 0 && seen.Problem != "" {
		v.Draw, v.Err = nil, terminal.ExitWith(terminal.ExitNotPublished, errors.New("the cluster could not be read: "+terminal.Clean(seen.Problem)))
	}
	return v
}

// readCluster reads a view from the agent's socket.
func (p Paths) readCluster(only string) func(context.Context, func(clusterview.Line)) error {
	return func(ctx context.Context, tell func(clusterview.Line)) error {
		ctx, cancel := context.WithTimeout(ctx, clusterPatience)
		defer cancel()
		client := boundedhttp.NewSocketClient(p.Socket)
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://zedkube"+clusterview.Path+"?node="+url.QueryEscape(only), nil)
		if err != nil {
			return fmt.Errorf("ask the agent: %w", err)
		}
		answer, err := client.Do(r)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return errors.New("the agent is not running")
		}
		if err != nil {
			return fmt.Errorf("ask the agent: %w", err)
		}
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, maxClusterLine)
		if answer.StatusCode != http.StatusOK {
			lines.Scan()
			return fmt.Errorf("the agent answers %s: %s", answer.Status, bytes.TrimSpace(lines.Bytes()))
		}
		for lines.Scan() {
			var line clusterview.Line
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				return fmt.Errorf("read the answer of the agent: %w", err)
			}
			tell(line)
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("read the answer of the agent: %w", err)
		}
		return nil
	}
}

// Document is the view for programs: the operations of the nodes are in that of zedkube audit.
func (v ClusterView) Document() ClusterView { return v.reduced(func(*clusterview.Row) {}) }

// Steady is the view without what changes by itself.
func (v ClusterView) Steady() []clusterview.Row {
	return v.reduced(func(r *clusterview.Row) {
		r.HeardAt = time.Time{}
		if r.View != nil {
			r.View.At, r.View.Drain.At = time.Time{}, time.Time{}
		}
	}).Nodes
}

func (v ClusterView) reduced(change func(*clusterview.Row)) ClusterView {
	v.Nodes = slices.Clone(v.Nodes)
	for i := range v.Nodes {
		r := &v.Nodes[i]
		if r.View != nil {
			own := *r.View
			own.Operations, own.Remarks = nil, nil
			r.View = &own
		}
		change(r)
	}
	return v
}

// AnswerText says how a node has answered, and how old what is shown of it is.
func AnswerText(r clusterview.Row, now time.Time) terminal.Cell {
	last := ""
	if r.View != nil {
		last = ", last known " + terminal.ShortAge(r.HeardAt, now) + " ago"
	}
	switch r.State {
	case clusterview.Answered:
		return terminal.Cell{Text: terminal.ShortAge(r.HeardAt, now) + " ago"}
	case clusterview.Asking:
		return terminal.Cell{Text: "asking" + last}
	case clusterview.NotAsked:
		return terminal.Cell{Text: "not asked: " + terminal.Clean(r.Why)}
	case clusterview.Silent:
		if last == "" {
			last = ", never heard"
		}
		return terminal.Cell{Text: terminal.Clean(r.Why) + last, Look: terminal.Yellow}
	}
	return terminal.Cell{Text: terminal.Clean(r.Why) + last, Look: terminal.Yellow}
}

// Was marks what was told before, and is not known to be so now.
func Was(r clusterview.Row, text string) string {
	if text == "" || r.State == clusterview.Answered {
		return text
	}
	return "was " + text
}

// NodeName is the name of a node in a view, with a sign at the own one.
func NodeName(r clusterview.Row) string {
	name := cmp.Or(terminal.Clean(r.Name), "this node")
	if r.Own {
		name += " *"
	}
	return name
}

// AnswerColumn is that of AnswerText in a table. In a narrow one it is cut for what the nodes
// tell: PutUnanswered has it whole.
func AnswerColumn() terminal.Column { return terminal.Column{Title: "ANSWERED", Fair: 16} }

// PutAnswers puts a table with that column, and below a narrow one what is cut there.
func PutAnswers(s *terminal.Screen, t terminal.Table, v ClusterView) {
	const wide = 120
	t.Draw(s)
	if s.Width < wide {
		PutUnanswered(s, v)
	} else if v.Problem != "" {
		s.Put(0, terminal.Yellow, terminal.Clean(v.Problem))
	}
}

// PutUnanswered are the nodes of which nothing, or something old, is shown.
func PutUnanswered(s *terminal.Screen, v ClusterView) {
	if v.Problem != "" {
		s.Put(0, terminal.Yellow, terminal.Clean(v.Problem))
	}
	for _, r := range v.Nodes {
		if r.State != clusterview.Answered {
			c := AnswerText(r, v.ReadAt)
			s.Put(0, c.Look, NodeName(r)+": "+c.Text)
		}
	}
}
