//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is what a node meets when it calls the API server: None, Refused,
// Hung, or terms joined by commas that hold together.
//
//	slow=2s          every answer begins so much later
//	503              every request is answered with this status, 400 to 599
//	503=0.2          this part of the requests is
//	expired          watches that go on from a resource version are told it is too old
//	reset, reset=N   the connection is reset after N bytes of an answer's body, 64 if not said
//	stalled          watches stay open and pass nothing, until it ends
//	only=watch+patch all of this meets only these: get (lists too), watch, create, update, patch, delete
//	of=pods+volumes  all of this meets only requests for these resources, of whatever group
//
// Setting expired ends the open watches, so that they go on from somewhere.
// Open watches survive the other terms; CutWatches ends them.
type Fault string

// The faults below HTTP. They hit connections that are open as well as new ones.
const (
	None    Fault = "none"
	Refused Fault = "refused" // nobody listens, open connections are reset
	Hung    Fault = "hung"    // connections stay open and new ones are accepted, but no byte passes
)

// Expired is what a client meets that was away for too long.
const Expired Fault = "expired"

// Stalled keeps watches open and silent. Events of that time pass when it ends.
const Stalled Fault = "stalled"

// Slow delays every answer.
func Slow(d time.Duration) Fault { return Fault("slow=" + d.String()) }

// Status answers every request with an HTTP status of 400 to 599.
func Status(code int) Fault { return Fault(strconv.Itoa(code)) }

// Reset resets the connection after so many bytes of an answer's body. A
// shorter answer passes.
func Reset(after int) Fault { return Fault("reset=" + strconv.Itoa(after)) }

// String returns what ParseFault reads.
func (f Fault) String() string {
	if f == "" {
		return string(None)
	}
	return string(f)
}

// ParseFault returns the fault of that name, or says what is wrong with it.
func ParseFault(name string) (Fault, error) {
	if name == "" {
		return None, errors.New("no fault named")
	}
	if _, err := Fault(name).plan(); err != nil {
		return None, err
	}
	return Fault(name), nil
}

// plan is a fault taken apart.
type plan struct {
	refused, hung, expired, stalled bool
	slow                            time.Duration
	code                            int     // 0: none
	part                            float64 // of the requests that get the code
	reset                           bool
	after                           int // bytes before the reset
	only                            []string
	of                              []string
}

// verbs are what a fault can be limited to, with their HTTP methods.
var verbs = map[string]string{
	"get": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost,
	"update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
}

func (f Fault) plan() (plan, error) {
	switch f {
	case "", None:
		return plan{}, nil
	case Refused:
		return plan{refused: true}, nil
	case Hung:
		return plan{hung: true}, nil
	}
	var p plan
	for term := range strings.SplitSeq(string(f), ",") {
		if err := p.add(term); err != nil {
			return plan{}, fmt.Errorf("unknown fault %q: %w", string(f), err)
		}
	}
	return p, nil
}

// add reads one term into p.
func (p *plan) add(term string) error {
	name, value, given := strings.Cut(term, "=")
	var err error
	switch {
	case name == "slow":
		p.slow, err = time.ParseDuration(value)
	case name == "reset":
		p.reset, p.after = true, 64
		if given {
			p.after, err = strconv.Atoi(value)
		}
	case term == "expired":
		p.expired = true
	case term == "stalled":
		p.stalled = true
	case name == "only":
		p.only = strings.Split(value, "+")
		for _, verb := range p.only {
			if verbs[verb] == "" {
				err = fmt.Errorf("no verb %q", verb)
			}
		}
	case name == "of" && value != "":
		p.of = strings.Split(value, "+")
	default:
		p.part = 1
		if given {
			p.part, err = strconv.ParseFloat(value, 64)
		}
		if code, bad := strconv.Atoi(name); bad == nil && code >= 400 && code <= 599 {
			p.code = code
		} else {
			err = errors.New("want none, refused or hung alone, or slow=DURATION, STATUS[=PART], expired, stalled, reset[=BYTES], only=VERB+VERB, of=RESOURCE+RESOURCE")
		}
	}
	if err == nil && (p.slow < 0 || p.after < 0 || !(p.part >= 0 && p.part <= 1)) {
		err = errors.New("out of range")
	}
	if err != nil {
		return fmt.Errorf("term %q: %w", term, err)
	}
	return nil
}

// meets says whether p is for this request.
func (p *plan) meets(r *http.Request) bool {
	if len(p.of) > 0 && !slices.ContainsFunc(strings.Split(r.URL.Path, "/"), func(part string) bool { return slices.Contains(p.of, part) }) {
		return false
	}
	if len(p.only) == 0 {
		return true
	}
	if isWatch(r) {
		return slices.Contains(p.only, "watch")
	}
	return slices.ContainsFunc(p.only, func(verb string) bool { return verb != "watch" && verbs[verb] == r.Method })
}

func isWatch(r *http.Request) bool {
	on, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return on && r.Method == http.MethodGet
}
