package statusserver

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/types"
)

func (c *Component) handler() http.Handler {
	mux := http.NewServeMux()
	for path, serve := range c.routes() {
		mux.HandleFunc(path, serve)
	}
	return mux
}

func (c *Component) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/status": c.serveStatus,
		"/healthz": func(w http.ResponseWriter, r *http.Request) {
			if allowed(w, r) {
				_, _ = io.WriteString(w, "ok\n")
			}
		},
		"/readyz":    c.serveReady,
		reachPath:    c.serveReach,
		overviewPath: c.serveOverview,
		appPath:      c.serveApp, appPath + "/": c.serveApp,
		clusterAppPath: c.serveClusterApp, clusterAppPath + "/": c.serveClusterApp,
	}
}

// serveStatus is GET only, byte for byte as joining nodes know it.
func (c *Component) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, "405 - Method Not Allowed")
		return
	}
	w.Header().Set("Vary", "Accept")
	if !wantsJSON(r.Header["Accept"]) {
		// Nothing to say is still 200: joiners tell by the body only.
		_, _ = io.WriteString(w, answer(c.look()))
		return
	}
	asked, err := askedCluster(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answerJSON(w, describe(c.look(), asked))
}

// serveReady is 200 exactly when /status names the cluster.
func (c *Component) serveReady(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	e := explain(c.look())
	if !e.ready {
		http.Error(w, e.reason+": "+e.why, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// allowed refuses what is neither GET nor HEAD, nor one of the others that the
// path answers.
func allowed(w http.ResponseWriter, r *http.Request, others ...string) bool {
	methods := append([]string{http.MethodGet, http.MethodHead}, others...)
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	http.Error(w, "only "+strings.Join(methods, ", ")+" are answered here", http.StatusMethodNotAllowed)
	return false
}

// access is what someone may do with reports of applications.
type access int

const (
	denied access = iota
	proves        // only with a proof that he knows the cluster token
	free
)

// Reports says who gets reports without a proof, of the Nodes on which no zedkube
// is known to run that can prove itself. EVE's can since it speaks TLS.
type Reports string

const (
	// ReportsAuto gives them to such a Node until this cluster was seen without
	// one: to take the stamp off a Node later, which its kubelet may do, gives
	// nobody anything.
	ReportsAuto Reports = "auto"
	// ReportsAlways gives them to every such Node.
	ReportsAlways Reports = "always"
	// ReportsNever gives them to none.
	ReportsNever Reports = "never"
)

// String implements pflag.Value.
func (r *Reports) String() string { return string(*r) }

// Set implements pflag.Value.
func (r *Reports) Set(text string) error {
	switch is := Reports(text); is {
	case ReportsAuto, ReportsAlways, ReportsNever:
		*r = is
		return nil
	}
	return fmt.Errorf("%q is not one of auto, always, never", text)
}

// Type implements pflag.Value.
func (r *Reports) Type() string { return "auto|always|never" }

// admit says what the one who asks from the address remote at our address local may do
// (docs/wire.md, "Status server"). withoutProof says that a foreign Node needs no
// proof.
func admit(remote, local netip.Addr, nodes map[string]types.Node, foreign func(types.Node) bool, withoutProof bool) access {
	remote, local = plain(remote), plain(local)
	if !remote.IsValid() {
		return denied
	}
	// Loopback is this machine, unless the cluster itself lives there.
	if remote == local || remote.IsLoopback() && !local.IsLoopback() {
		return free
	}
	found := denied
	for _, n := range nodesAt(nodes, remote) {
		if !withoutProof || !foreign(n) {
			return proves // also where another Node claims the same address
		}
		found = free // EVE's own zedkube before TLS has no proof to give
	}
	return found
}

// plain is ip as addresses are compared: IPv4 as such, and without a zone,
// which Nodes do not name.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

const (
	// A report reads some dozens of files: more than these at a time would be
	// felt, and a peer needs one.
	maxReports     = 8
	maxReportsEach = 4
	maxRounds      = 2 // every round holds up to maxPeers answers
	maxRoundsEach  = 1
)

// limits are the bounds of what costs more than /status does. Nobody waits at
// them: who finds one shut is told to come back.
type limits struct {
	reports limiter // reports of this node being made
	rounds  limiter // rounds of questions to the other nodes
	proofs  proof.Memory
	told    turns // overviews of this node
}

// limiter lets limit requests in, and each from one source.
type limiter struct {
	mu     sync.Mutex
	inside int
	of     map[netip.Addr]int
}

// enter reports whether source may go in; it then has to leave.
func (g *limiter) enter(source netip.Addr, limit, each int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= limit || g.of[source] >= each {
		return false
	}
	if g.of == nil {
		g.of = map[netip.Addr]int{}
	}
	g.inside++
	g.of[source]++
	return true
}

func (g *limiter) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.of[source]--; g.of[source] == 0 {
		delete(g.of, source)
	}
}

// statusJSON is /status for who asks for JSON (docs/wire.md, "Status server").
type statusJSON struct {
	State   string      `json:"state"` // "ready" where the plain answer names the cluster, else "waiting"
	Since   time.Time   `json:"since"`
	Reason  string      `json:"reason"`
	Why     string      `json:"why"`
	Cluster string      `json:"cluster,omitempty"` // UUID, only where the plain answer names it
	Node    string      `json:"node"`              // "" while not known
	Status  clusterJSON `json:"status"`
}

// clusterJSON has the form in which the cluster agents of single nodes tell of
// a cluster.
type clusterJSON struct {
	Phase             string      `json:"phase"`
	KubernetesVersion string      `json:"kubernetesVersion,omitempty"`
	Conditions        []condition `json:"conditions"`
}

type condition struct {
	Type               string                `json:"type"`
	Status             types.ConditionStatus `json:"status"`
	LastTransitionTime time.Time             `json:"lastTransitionTime"` // before describe what the cluster tells, zero where it does not
	Reason             string                `json:"reason"`
	Message            string                `json:"message"`
}

// describe is what /status says in JSON to a joiner of the cluster asked, the
// nil UUID for nobody in particular. Where things have changed since the last
// step they changed now: the next step notes it.
func describe(f facts, asked uuid.UUID) statusJSON {
	e := explain(f)
	m := f.marks.next(e, f.now)
	out := statusJSON{
		State: e.state(), Since: m[markState].since, Node: e.node,
		Status: clusterJSON{Phase: e.phase, KubernetesVersion: e.version},
	}
	if e.ready {
		out.Cluster = e.own.String()
	}
	for _, c := range e.conditions {
		c.LastTransitionTime = m[c.Type].since
		out.Status.Conditions = append(out.Status.Conditions, c)
	}
	judged := e.judge(asked)
	out.Reason, out.Why = judged.reason, judged.why
	if judged.state() != out.State {
		out.State, out.Since = judged.state(), m[markCluster].since
	}
	return out
}

// askedCluster is the cluster that the asker wants to join, nil for none named.
func askedCluster(r *http.Request) (uuid.UUID, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return uuid.Nil, fmt.Errorf("read the query: %w", err)
	}
	text := query.Get("cluster")
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("read the cluster asked for: %w", err)
	}
	return id, nil
}

// wantsJSON reports whether the asker names JSON, and likes it no less than
// plain text if he names that too. Joining nodes name nothing.
func wantsJSON(accept []string) bool {
	liked := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		liked[kind] = max(liked[kind], q)
	}
	return liked["application/json"] > 0 && liked["application/json"] >= liked["text/plain"]
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, v) // who asked is gone: nobody could act on it
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
