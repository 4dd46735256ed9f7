package page

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// ErrQuery is in the chain of an error that is about what was asked.
var ErrQuery = errors.New("bad query")

// Trail is what /api/audit answers.
type Trail struct {
	Operations []types.Operation `json:"operations"`        // the newest first
	Remarks    []string          `json:"remarks,omitempty"` // what is missing in them and why, a sentence each
}

// mostOperations bounds an answer.
const mostOperations = 200

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

// listOf are the words of a list with commas, none of "".
func listOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
