package clusterview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// Path is where the agent answers with the whole cluster, a Line for each change.
	Path = "/api/cluster-view"
	// AskFor is how long a node has to answer: beyond a disk that is busy, and soon enough for
	// somebody who waits.
	AskFor = 3 * time.Second
	// maxViews are made at a time; another one waits for its turn as long as one lasts.
	maxViews = 2
	maxAsked = 64      // nodes that one view asks
	maxKept  = 8 << 20 // bytes of what was told last, of all nodes together
)

// State is how far a node has told of itself.
type State string

// The states.
const (
	Asking   State = "asking"    // it has not answered yet
	Answered State = "answered"  // View is what it told
	Silent   State = "silent"    // it gave no answer within AskFor
	Failed   State = "failed"    // its answer is none, or it cannot be asked; Why says it
	NotAsked State = "not asked" // it cannot tell of itself; Why says why not
)

// Row is a node in the view.
type Row struct {
	Name    string
	Own     bool `json:",omitzero"` // the node that asks
	State   State
	Why     string               `json:",omitzero"`  // a part of a sentence
	HeardAt time.Time            `json:",omitzero"`  // when View was told, by the clock of the node that asks; zero for never
	View    *View                `json:",omitempty"` // what it tells, or, unless it has Answered, told last; nil for nothing
	Node    overview.ClusterNode // what its Node shows
}

// Ago is what the clock of the node showed at the moment of View, and has come to by now.
func (r Row) Ago(now time.Time) time.Time {
	if r.View == nil {
		return now
	}
	return r.View.At.Add(now.Sub(r.HeardAt))
}

// Line is one of an answer: how old the nodes' own fields are, then rows, each in place of
// the one before it of the same name, then the end. Without an end the answer is cut.
type Line struct {
	NodesAt time.Time `json:",omitzero"` // when the Nodes were known as the rows have them
	Row     *Row      `json:",omitempty"`
	End     bool      `json:",omitzero"`
}

// Viewer asks the nodes of the cluster. Every exported field is required.
type Viewer struct {
	Own    *Teller
	Nodes  func(now time.Time) overview.Nodes
	Ask    func(ctx context.Context, address netip.Addr) ([]byte, error) // for what a node tells
	Status pubsub.Reader[types.EdgeNodeClusterStatus]                    // its token is not passed on

	turns *semaphore.Weighted
	mu    sync.Mutex
	last  map[string]told // by name of the node
}

// told is what a node told last.
type told struct {
	view *View
	at   time.Time
	size int
}

// Ready prepares a literal for use, and returns it.
func (v *Viewer) Ready() *Viewer {
	v.turns = semaphore.NewWeighted(maxViews)
	return v
}

// ServeHTTP answers with the cluster, or the one node that node= names, as it becomes known.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), AskFor)
	defer cancel()
	if v.turns.Acquire(ctx, 1) != nil {
		w.Header().Set("Retry-After", "3")
		http.Error(w, fmt.Sprintf("%d views of the cluster are being made: try again soon", maxViews), http.StatusServiceUnavailable)
		return
	}
	defer v.turns.Release(1)
	out, control := json.NewEncoder(w), http.NewResponseController(w)
	ctx, end := context.WithCancel(r.Context())
	defer end()
	v.look(ctx, r.URL.Query().Get("node"), func(l Line) {
		if out.Encode(l) != nil || control.Flush() != nil {
			end() // nobody takes it
		}
	})
}

// look tells of all nodes, or of the only one, first what is known already, and then each
// answer as it comes.
func (v *Viewer) look(ctx context.Context, only string, tell func(Line)) {
	nodes := v.Nodes(time.Now())
	rows := v.rows(nodes, only)
	tell(Line{NodesAt: nodes.At})
	for _, r := range rows {
		tell(Line{Row: &r})
	}
	asked, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	type answer struct {
		row   Row
		fault *boundedhttp.Fault
	}
	answers, open := make(chan answer, len(rows)), 0
	for _, r := range rows {
		if r.State != Asking {
			continue
		}
		open++
		go func() {
			var a answer
			a.fault = boundedhttp.Catch(func() { a.row = v.ask(asked, r) })
			answers <- a
		}()
	}
	for range open {
		a := <-answers
		a.fault.Raise()
		tell(Line{Row: &a.row})
	}
	tell(Line{End: true})
}

// rows are the nodes, none of which was asked yet, with what they told last. The node
// itself comes first: it is there also where nobody has seen the Nodes.
func (v *Viewer) rows(nodes overview.Nodes, only string) []Row {
	rows := make([]Row, 0, len(nodes.List)+1)
	present := map[string]bool{}
	asked := 0
	for _, n := range nodes.List {
		present[n.Name] = true
		r := Row{Name: n.Name, Own: n.Own, State: Asking, Node: n}
		switch {
		case only != "" && n.Name != only:
			continue
		case n.Own:
		case n.Agent == "" || n.AgentStale:
			r.State, r.Why = NotAsked, "no zedkube that tells of itself is known to run there"
		case asked == maxAsked:
			r.State, r.Why = NotAsked, fmt.Sprintf("%d nodes are asked at a time", maxAsked)
		default:
			asked++
		}
		rows = append(rows, r)
	}
	if !slices.ContainsFunc(nodes.List, func(n overview.ClusterNode) bool { return n.Own }) && only == "" {
		rows = append(rows, Row{Own: true, State: Asking})
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		if a.Own != b.Own {
			return map[bool]int{true: -1, false: 1}[a.Own]
		}
		return strings.Compare(a.Name, b.Name)
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.last {
		if !present[name] {
			delete(v.last, name)
		}
	}
	for i := range rows {
		if was, known := v.last[rows[i].Name]; known && rows[i].Name != "" {
			rows[i].View, rows[i].HeardAt = was.view, was.at
		}
	}
	return rows
}

// ask asks the node of a row.
func (v *Viewer) ask(ctx context.Context, r Row) Row {
	if r.View != nil && time.Since(r.HeardAt).Abs() < fresh { // by who asks twice in a second
		r.State = Answered
		return r
	}
	raw, err := v.answer(ctx, r)
	var heard *View
	if err == nil {
		status, _ := v.Status.Get(types.Global)
		heard, err = read(raw, status.EncryptedClusterToken)
	}
	switch {
	case err == nil:
		r.State, r.View, r.HeardAt = Answered, heard, time.Now().UTC()
		v.keep(r, len(raw))
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		r.State, r.Why = Silent, fmt.Sprintf("no answer in %.0f s", AskFor.Seconds())
	default:
		r.State, r.Why = Failed, err.Error()
	}
	return r
}

func (v *Viewer) answer(ctx context.Context, r Row) ([]byte, error) {
	if r.Own {
		return v.Own.Tell(ctx)
	}
	address, err := netip.ParseAddr(r.Node.Address)
	if err != nil {
		return nil, errors.New("its Node has no address at which it could be asked")
	}
	return v.Ask(ctx, address)
}

// keep remembers what a node told, and forgets for it what was told longest ago.
func (v *Viewer) keep(r Row, size int) {
	if r.Name == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[string]told{}
	}
	v.last[r.Name] = told{r.View, r.HeardAt, size}
	for {
		sum, oldest := 0, ""
		for name, t := range v.last {
			sum += t.size
			if oldest == "" || t.at.Before(v.last[oldest].at) {
				oldest = name
			}
		}
		if sum <= maxKept {
			return
		}
		delete(v.last, oldest)
	}
}
