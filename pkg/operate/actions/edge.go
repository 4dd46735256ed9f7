package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

const (
	// EdgePath answers with what zedkube-edge says of KubeEdge, for who may read the page.
	EdgePath = "/api/edge"
	// EdgePlanPath takes what is wanted of zedkube-edge, and answers with its plan.
	EdgePlanPath = EdgePath + "/plan"
	// EdgeDoPath does what was planned.
	EdgeDoPath = EdgePath + "/do"

	edgeFresh   = 5 * time.Second  // how seldom zedkube-edge is asked, however many people look
	edgeWithin  = 15 * time.Second // how long it may take to say how KubeEdge is
	leaveWithin = "45s"            // of leave, for the pods and again for the device: both and the cleaning fit into within
	maxEdgeBody = 16 << 10
	bodyWithin  = 5 * time.Second // for who sends it
	maxValue    = 1024            // of a setting

	edgeCommand = "edge" // how people call zedkube-edge, behind the name of this program
)

// ErrNoEdge is in the chain of an error that says that zedkube-edge is not installed.
var ErrNoEdge = errors.New("the program zedkube-edge, which runs KubeEdge, is not installed beside this agent")

// Edge lets the page show and do what zedkube-edge does, which the agent itself has no part of.
// The Run of its Handler runs that program.
type Edge struct {
	*Handler

	asking sync.Mutex // held by the one who asks the program
	last   edgeView   // guarded by mu of Handler
}

// edgeView is what the page is shown.
type edgeView struct {
	Here    bool   // it can be done where it was asked
	Program string // how people call the command
	At      time.Time
	Missing string          // why there is no program
	Error   string          // why it does not say
	Status  json.RawMessage // its status -o json; null where there is none
}

// Look answers with how KubeEdge is. While somebody else waits for the program, what it said before is the answer.
func (e *Edge) Look(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return // it would cost requests to the cluster, and nobody would see it
	}
	v := e.view()
	if time.Since(v.At).Abs() >= edgeFresh && e.asking.TryLock() {
		v = e.ask(r.Context())
	}
	if v.At.IsZero() {
		refuse(w, http.StatusServiceUnavailable, "zedkube-edge is being asked: try again soon")
		return
	}
	who, overSocket := peer.FromContext(r.Context())
	v.Here, v.Program = overSocket && who.IsTrusted(), e.Program+" "+edgeCommand
	answer(w, http.StatusOK, v)
}

func (e *Edge) view() edgeView {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

func (e *Edge) keep(v edgeView) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = v
}

// ask runs the program, and unlocks asking. That it ends with an error although it has said what it should means that there are problems.
func (e *Edge) ask(ctx context.Context) edgeView {
	defer e.asking.Unlock()                                                    // also after a panic, which ends no more than the request
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), edgeWithin) // others wait for it, too
	defer cancel()
	defer context.AfterFunc(e.Agent, cancel)()
	said, err := e.run(ctx, "status", "-o", "json")
	v := edgeView{At: time.Now().UTC()}
	switch {
	case errors.Is(err, ErrNoEdge):
		v.Missing = err.Error()
	case json.Valid([]byte(said)):
		v.Status = json.RawMessage(said)
	case ctx.Err() != nil:
		v.Error = fmt.Sprintf("zedkube-edge has not answered within %s", edgeWithin)
	case len(said) > maxSaid-utf8.UTFMax: // the last letter may have been cut
		v.Error = fmt.Sprintf("zedkube-edge prints more than %d KiB, which is not shown here: run %s %s status", maxSaid>>10, e.Program, edgeCommand)
	case err != nil:
		v.Error = err.Error()
	default:
		v.Error = "zedkube-edge did not answer with JSON: another version of it is installed"
	}
	e.keep(v)
	return v
}

// wish is what somebody wants of zedkube-edge.
type wish struct {
	Do       string            // enable, set, disable, join, bundle or leave
	Settings map[string]string // of enable and set
	HA       bool              // of enable
	Purge    bool              // of disable
	Force    bool              // of enable, set and disable
	Name     string            // of join, bundle and leave
	Arch     string            // of join and bundle; "" for that of the program
	Lost     bool              // of leave
}

var (
	settingName = regexp.MustCompile(`^[a-zA-Z]{1,64}$`)
	nodeName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	plainWord   = regexp.MustCompile(`^[A-Za-z0-9_./:,=@%+-]+$`)
)

// words are those that zedkube-edge is run with, without the question whether to do it.
func (s wish) words() (words []string, err error) {
	flags := func(all map[string]bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] {
				words = append(words, name)
			}
		}
	}
	switch s.Do {
	case "enable", "set":
		words = []string{s.Do}
		flags(map[string]bool{"--ha": s.HA && s.Do == "enable", "--force": s.Force})
		for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
			value := s.Settings[name]
			if !settingName.MatchString(name) || len(value) > maxValue || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				return nil, errors.New("a setting has a name or a value that none can have")
			}
			words = append(words, name+"="+value)
		}
	case "disable":
		words = []string{s.Do}
		flags(map[string]bool{"--purge": s.Purge, "--force": s.Force})
	case "join", "bundle", "leave":
		if !nodeName.MatchString(s.Name) {
			return nil, errors.New("the name of an edge node has small letters, digits, - and ., and begins and ends with a letter or a digit")
		}
		if s.Do == "leave" {
			words = []string{s.Do, s.Name}
			flags(map[string]bool{"--lost": s.Lost})
			return words, nil
		}
		words = []string{"join", s.Name}
		switch s.Arch {
		case "":
		case "amd64", "arm64":
			words = append(words, "--arch", s.Arch)
		default:
			return nil, errors.New("an edge node is amd64 or arm64")
		}
	default:
		return nil, errors.New("unknown action: another version of zedkube may support it")
	}
	return words, nil
}

// Plan answers with the plan of what is wanted, which changes nothing. What zedkube-edge refuses has no plan.
func (e *Edge) Plan(w http.ResponseWriter, r *http.Request) {
	var s wish
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // a test's writer has none
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEdgeBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		refuse(w, http.StatusBadRequest, "what is wanted cannot be read: "+err.Error())
		return
	}
	words, err := s.words()
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if !e.working.TryLock() {
		refuse(w, http.StatusServiceUnavailable, busy)
		return
	}
	defer e.working.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	shown := struct{ Plan, Error, ID, Command string }{Command: edgeCommand + " " + typed(words)}
	if shown.Plan, err = e.run(ctx, append(slices.Clone(words), "--dry-run")...); err != nil {
		shown.Error = err.Error()
	} else {
		shown.ID = e.remember(plan{action: s.Do, args: words, at: time.Now()})
	}
	answer(w, http.StatusOK, shown)
}

// Do does what was planned. What a join says has a secret, for who asked alone: nothing here keeps it.
func (e *Edge) Do(w http.ResponseWriter, r *http.Request) {
	if !e.working.TryLock() {
		refuse(w, http.StatusServiceUnavailable, busy)
		return
	}
	defer e.working.Unlock()
	p, ok := e.take(r.Header.Get(PlanHeader), "", time.Now())
	if !ok {
		refuse(w, http.StatusConflict, notPlanned)
		return
	}
	end := e.begin(r, edgeCommand+" "+strings.Join(p.args, " "))
	defer e.keep(edgeView{}) // it is another now
	switch args := append(slices.Clone(p.args), "--yes"); p.action {
	case "bundle":
		end(e.file(w, r, append(args, "--bundle", "-")...))
	case "join":
		e.carryOut(w, r, end, append(args, "-o", "json")...)
	case "leave":
		e.carryOut(w, r, end, append(args, "--timeout", leaveWithin)...)
	default:
		e.carryOut(w, r, end, args...)
	}
}

// typed are words as somebody types them to a shell.
func typed(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
