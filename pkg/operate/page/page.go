// Package page shows people this device in a browser: what is wrong, the nodes,
// the applications, the drain, measurements, the audit trail and the logs of
// applications. What it lets people do is package actions'.
//
//	reads:  an overview of the device's files, measurements, AppInstanceConfig, app pods
//	writes: MetricsLook, while someone looks
//	serves: handlers for the local server, see docs/wire.md, "Local server"
//
// Nothing is read or kept while nobody looks.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/manual"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Kube is what the page asks of the cluster.
type Kube interface {
	// Logs opens a container's log. Reading it ends when ctx does, when the
	// container has ended, or with the connection. Its error wraps types.ErrNoLog
	// where there is no such log.
	Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error)
}

// Page holds what the handlers share. Every exported field is required, but
// Audit, Requests and Looks may be nil: then the page is without.
type Page struct {
	Log      logrus.FieldLogger
	Overview func(now time.Time) overview.Overview // reads the device's files, each time again; the same as `zedkube status -o json` prints
	Metrics  pubsub.Reader[types.KubeNodeMetrics]  // with the last samples of everything
	Configs  pubsub.Reader[types.AppInstanceConfig]
	AppPods  pubsub.Reader[types.Pod]
	Kube     Kube

	Audit    func(url.Values) (Trail, error)  // by since=, op= and failed=; an error wraps ErrQuery or says why there is no trail at all
	Requests func() uint64                    // to the API server since the start
	Looks    pubsub.Writer[types.MetricsLook] // asks for measurements more often while someone looks

	viewers  viewers
	tails    viewers
	followed atomic.Int64 // containers whose log is followed
	reading  sync.Mutex   // held by the one who reads the files
	mu       sync.Mutex   // guards what follows
	seen     snapshot
	history  history
}

// Routes are the page's paths for the local server, which checks who asks: its own files
// anybody may see, and what they show only who may read all of the device.
func (p *Page) Routes() map[string]localserver.Route {
	routes := map[string]localserver.Route{}
	for path, f := range files() {
		routes[path] = localserver.Route{Handler: f, Access: localserver.WithPage}
	}
	routes["/manual"] = localserver.Route{Handler: http.HandlerFunc(serveManual), Access: localserver.WithPage}
	const often = "measuring more often for 15 s"
	for path, r := range map[string]localserver.Route{
		"/api/overview":        {Handler: http.HandlerFunc(p.serveOverview), Effect: often},
		"/api/events":          {Handler: http.HandlerFunc(p.serveEvents), Effect: often, Stream: true},
		"/api/metrics-history": {Handler: http.HandlerFunc(p.serveHistory), Effect: often},
		"/api/audit":           {Handler: http.HandlerFunc(p.serveAudit)},
		"/api/logs":            {Handler: http.HandlerFunc(p.serveLogs), Stream: true},
	} {
		r.Access = localserver.WithToken
		routes[path] = r
	}
	return routes
}

// serveOverview answers with what the files say now, as far as they were not
// read within the last second. Who asks looks for that moment.
func (p *Page) serveOverview(w http.ResponseWriter, _ *http.Request) {
	p.viewers.enter(math.MaxInt)
	defer p.exit()
	s := p.look(time.Now())
	if s.at.IsZero() {
		http.Error(w, "reading the device's files takes too long: try again", http.StatusServiceUnavailable)
		return
	}
	o := s.read
	o.ReadAt = s.at.UTC()
	content, err := encode(o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, content)
}

func (p *Page) serveHistory(w http.ResponseWriter, _ *http.Request) {
	p.viewers.enter(math.MaxInt)
	defer p.exit()
	p.look(time.Now())
	p.mu.Lock()
	all := p.history.since(0)
	p.mu.Unlock()
	answer(w, all, "measurements")
}

func (p *Page) serveAudit(w http.ResponseWriter, r *http.Request) {
	if p.Audit == nil {
		http.Error(w, "there is no audit trail here", http.StatusNotFound)
		return
	}
	found, err := p.Audit(r.URL.Query())
	switch {
	case errors.Is(err, ErrQuery):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		answer(w, found, "audit trail")
	}
}

// answer answers with v, which an error calls so.
func answer(w http.ResponseWriter, v any, name string) {
	content, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode "+name+": "+err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, content)
}

func writeJSON(w http.ResponseWriter, content []byte) {
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	w.Write(content)
}

//go:embed static
var static embed.FS

// policy lets the page load and ask nothing but its own server, and run nothing
// but its own script, which cannot turn text into HTML either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func files() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	entries, _ := static.ReadDir("static") // it is embedded: the tests find it
	for _, e := range entries {
		handlers["/"+strings.TrimPrefix(e.Name(), "index.html")] = file(e.Name(), kinds[path.Ext(e.Name())])
	}
	return handlers
}

// file serves an embedded file.
func file(name, kind string) http.Handler {
	content, err := static.ReadFile("static/" + name)
	tag := tagOf(content)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil || r.URL.Path != "/"+strings.TrimPrefix(name, "index.html") {
			http.NotFound(w, r) // "/" is a subtree to a ServeMux
			return
		}
		serveContent(w, r, kind, tag, content)
	})
}

// serveManual answers with the documents for operators. They are read each time: few ask, and kept
// they would take more memory than all else of the page.
func serveManual(w http.ResponseWriter, r *http.Request) {
	book, err := manual.Read()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	content := book.HTML()
	serveContent(w, r, kinds[".html"], tagOf(content), content)
}

func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// serveContent answers with what the browser keeps for as long as it is the same.
func serveContent(w http.ResponseWriter, r *http.Request, kind, tag string, content []byte) {
	head := w.Header()
	head.Set("Content-Type", kind)
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-cache")
	head.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// ErrQuery is in the chain of an error that is about what was asked.
var ErrQuery = errors.New("bad query")

// Trail is what /api/audit answers.
type Trail struct {
	Operations []types.Operation `json:"operations"`        // the newest first
	Remarks    []string          `json:"remarks,omitempty"` // what is missing in them and why, a sentence each
}

const mostOperations = 200 // of one answer

// Trails reads the audit trail of a directory for the page. A page asks every few seconds, and mostly
// nothing has changed.
type Trails struct {
	Dir string

	mu    sync.Mutex
	asked string // what the last answer was about, and the files then
	last  Trail
}

// Answer returns the newest operations first, at most mostOperations, and what of
// the trail cannot be read; an error where nothing can. since and until are times or
// durations, op, component, by and target as "zedkube audit" has them, failed anything
// but "" or "false".
func (a *Trails) Answer(query url.Values) (Trail, error) {
	var f audit.Filter
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := query.Get(name); text != "" {
			at, err := audit.ParseTime(text, time.Now())
			if err != nil {
				return Trail{}, fmt.Errorf("%w: %s: %w", ErrQuery, name, err)
			}
			*to = at
		}
	}
	f.Ops, f.Components, f.By = listOf(query.Get("op")), listOf(query.Get("component")), listOf(query.Get("by"))
	f.Target = query.Get("target")
	f.Failed = query.Get("failed") != "" && query.Get("failed") != "false"

	a.mu.Lock()
	defer a.mu.Unlock()
	asked := query.Encode() + " " + audit.Stamp(a.Dir)
	if asked == a.asked && query.Get("since") == "" && query.Get("until") == "" {
		return a.last, nil
	}
	all, problems, err := audit.Read(a.Dir)
	if err != nil && len(all) == 0 {
		return Trail{}, err
	}
	found := []types.Operation{}
	for _, o := range slices.Backward(all) {
		if f.Wants(o) && len(found) < mostOperations {
			found = append(found, o)
		}
	}
	trail := Trail{Operations: found, Remarks: audit.Remarks(problems, err)}
	if err == nil { // what cannot be read now may be read later, and its stamp is the same
		a.asked, a.last = asked, trail
	}
	return trail, nil
}

// Newest are the newest operations, the newest first, and what is missing in them.
func (a *Trails) Newest() ([]types.Operation, []string, error) {
	trail, err := a.Answer(nil)
	return trail.Operations, trail.Remarks, err
}

// listOf are the words of a list with commas, none of "".
func listOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
