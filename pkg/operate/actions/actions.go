// Package actions lets an operator who reads the page over the agent's socket do what some
// commands do. Each is one of a fixed table, or one of zedkube-edge: the page gets its plan first,
// which changes nothing, and what is then done needs the identifier of that plan, once. Who may ask, and from which site,
// is the local server's to check.
//
//	reads:  what the commands print
//	writes: what the commands write, and a line of the audit trail for each
package actions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/types"
)

const (
	// Path lists the actions, for who may read the page. Path + "/" + name is one of them: GET
	// is its plan and POST does it.
	Path = "/api/actions"
	// PlanHeader is where a POST names the plan that was shown. No form and no link of another
	// site can set it.
	PlanHeader = "Zedkube-Plan"

	planHolds = 10 * time.Minute // how long what was planned may still be done
	maxPlans  = 8                // that are remembered
	within    = 2 * time.Minute  // for a plan, and for what is done
	maxSaid   = 256 << 10        // of what a command prints

	withinFile = 10 * time.Minute // for a file, which may go to a slow reader
)

// Handler answers Path and what is below it. Every field is required.
type Handler struct {
	Agent      context.Context    // done when the agent stops
	Operations types.OperationLog // is told who does what, before it is done
	Program    string             // how the commands of this agent are called: "zedkube", with --root where it has one
	// Run runs a command of this program, as the words after "zedkube" say.
	Run func(ctx context.Context, out io.Writer, args ...string) error

	working sync.Mutex // held while a command runs: one at a time
	mu      sync.Mutex // guards what follows
	plans   []plan     // the newest last
}

// plan is one that somebody was shown.
type plan struct {
	id, action string
	args       []string // that it runs
	at         time.Time
}

// List answers with what can be done, and whether it can be done where it was asked: over the
// socket. Elsewhere people paste the commands.
func (h *Handler) List(w http.ResponseWriter, r *http.Request) {
	who, overSocket := peer.FromContext(r.Context())
	answer(w, http.StatusOK, struct {
		Here    bool
		Program string
		Actions []action
	}{overSocket && who.IsTrusted(), h.Program, table})
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path+"/")
	at := slices.IndexFunc(table, func(a action) bool { return a.Name == name })
	if at < 0 {
		refuse(w, http.StatusBadRequest, "unknown action: another version of zedkube may support it")
		return
	}
	if r.Method == http.MethodHead {
		return // a plan costs requests to the cluster, and nobody would see it
	}
	if !h.working.TryLock() {
		refuse(w, http.StatusServiceUnavailable, busy)
		return
	}
	defer h.working.Unlock()
	if r.Method == http.MethodPost {
		h.do(w, r, table[at])
		return
	}
	h.show(w, r, table[at])
}

// show answers with the plan of an action. What of it is not known it says: the command itself does
// not need it, and refuses what it has to refuse.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, a action) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	var text strings.Builder
	var unknown []string
	for _, line := range a.plan {
		said, err := h.run(ctx, strings.Fields(line)...)
		text.WriteString(said)
		if err != nil {
			fmt.Fprintf(&text, "unknown: %s %s: %v\n", h.Program, line, err)
			unknown = append(unknown, err.Error())
		}
	}
	answer(w, http.StatusOK, struct{ Plan, Error, ID string }{text.String(), strings.Join(unknown, "; "), h.remember(plan{action: a.Name, args: strings.Fields(a.Command), at: time.Now()})})
}

// do runs an action whose plan was shown.
func (h *Handler) do(w http.ResponseWriter, r *http.Request, a action) {
	p, ok := h.take(r.Header.Get(PlanHeader), a.Name, time.Now())
	if !ok {
		refuse(w, http.StatusConflict, notPlanned)
		return
	}
	end := h.begin(r, a.Command)
	if a.File {
		end(h.file(w, r, append(p.args, "-f", "-")...))
		return
	}
	h.carryOut(w, r, end, p.args...)
}

const (
	notPlanned = "its plan has not been shown, was used, or is older than ten minutes: show it again"
	busy       = "another plan or action is under way: try again soon"
)

// begin notes in the audit trail who requests a command.
func (h *Handler) begin(r *http.Request, command string) (end func(error)) {
	who, _ := peer.FromContext(r.Context())
	finish := h.Operations.Begin(types.Operation{
		Component: "page", Op: "run", Target: "command/" + command, By: "OPERATOR", From: who.Who(), Why: "requested on the page",
	})
	return func(err error) {
		outcome := types.OperationOK
		if err != nil {
			outcome = types.OperationFailed
		}
		finish(outcome, err)
	}
}

// carryOut runs a command, and answers with what it says.
func (h *Handler) carryOut(w http.ResponseWriter, r *http.Request, end func(error), args ...string) {
	said, err := h.runOn(r.Context(), args...)
	end(err)
	done := struct{ Said, Error string }{Said: said}
	if err != nil {
		done.Error = err.Error()
	}
	answer(w, http.StatusOK, done)
}

// runOn is what a command prints that goes on when who asked for it goes away, until the agent
// stops.
func (h *Handler) runOn(ctx context.Context, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	defer context.AfterFunc(h.Agent, cancel)()
	if said, err = h.run(ctx, args...); err != nil && h.Agent.Err() != nil {
		err = fmt.Errorf("the agent stopped before the command had ended: %w", err)
	}
	return said, err
}

// file sends what a command prints as it comes. Where it fails meanwhile the connection ends, so
// that nobody takes a part for the whole.
func (h *Handler) file(w http.ResponseWriter, r *http.Request, args ...string) error {
	w.Header().Set("Content-Type", "application/gzip")
	ctx, cancel := context.WithTimeout(r.Context(), withinFile)
	defer cancel()
	out := &counted{Writer: w}
	err := h.Run(ctx, out, args...)
	switch {
	case err == nil:
	case out.n == 0:
		refuse(w, http.StatusInternalServerError, err.Error())
	default:
		if conn, _, hijacked := http.NewResponseController(w).Hijack(); hijacked == nil {
			_ = conn.Close()
		}
	}
	return err
}

// counted counts what is written.
type counted struct {
	io.Writer
	n int
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += n
	return n, err
}

// run is what a command prints.
func (h *Handler) run(ctx context.Context, args ...string) (said string, err error) {
	var out front
	err = h.Run(ctx, &out, args...)
	return strings.ToValidUTF8(string(out), "?"), err
}

// front keeps the front of what is written.
type front []byte

// Write implements io.Writer.
func (f *front) Write(b []byte) (int, error) {
	*f = append(*f, b[:min(len(b), maxSaid-len(*f))]...)
	return len(b), nil
}

// remember keeps that a plan was shown.
func (h *Handler) remember(p plan) (id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.plans) == maxPlans {
		h.plans = slices.Delete(h.plans, 0, 1)
	}
	p.id = rand.Text()
	h.plans = append(h.plans, p)
	return p.id
}

// take is a plan of an action, or "" for any, that was shown and may be done, which is so once.
func (h *Handler) take(id, action string, now time.Time) (p plan, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.plans, func(p plan) bool { return p.id == id && (p.action == action || action == "") })
	if at < 0 {
		return plan{}, false
	}
	p = h.plans[at]
	h.plans = slices.Delete(h.plans, at, at+1)
	return p, now.Sub(p.at).Abs() <= planHolds
}

// refuse answers with why nothing was done.
func refuse(w http.ResponseWriter, code int, why string) {
	answer(w, code, struct{ Error string }{why})
}

// answer answers with v, which is made of texts.
func answer(w http.ResponseWriter, code int, v any) {
	content, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(content) // who asked has gone
}
