package joincmd

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
)

// pour writes until nobody reads any more.
func pour(w http.ResponseWriter, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// hostileMember is a member that answers whatever it likes.
type hostileMember struct {
	name  string
	serve http.HandlerFunc
	says  string // in why there is no report about the way back
}

// hostileMembers are such members; elsewhere counts those who follow one of them.
func hostileMembers(elsewhere *atomic.Int32) []hostileMember {
	return []hostileMember{
		{"an endless answer", func(w http.ResponseWriter, _ *http.Request) { pour(w, strings.Repeat("cluster:", 999)) }, "more than 65536 bytes"},
		{"a hung one", silent, "does not answer within 500ms"},
		{"a head without an end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 200<<10))
		}, "does not answer"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\x1b[2J<html>") }, `"?[2J<html>", which is not a report`},
		{"another JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ports":"all","cluster":7}`) }, "which is not a report"},
		{"counts beyond reason", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"cluster":{"etcdMembers":9223372036854775807}}`)
		}, "an implausible number of nodes"},
		{"less than nothing", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"cluster":{"etcdMembers":-1}}`)
		}, "an implausible number of nodes"},
		{"another way", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				elsewhere.Add(1)
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "it answers 302"},
		{"none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "EVE's own zedkube or an older version runs there"},
		{"busy for ever", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many", http.StatusTooManyRequests)
		}, `it answers 429, "too many"`},
		{"busy for years", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999999")
			http.Error(w, "too many", http.StatusTooManyRequests)
		}, "it answers 429"},
	}
}

func TestAHostileMemberGetsNowhere(t *testing.T) {
	var elsewhere atomic.Int32
	for _, m := range hostileMembers(&elsewhere) {
		t.Run(m.name, func(t *testing.T) {
			ip := member(t, m.serve)
			q := asking(t, "127.47.8.100")
			if m.name == "a hung one" {
				q.patience, q.trying = quick, quick
			}
			began := time.Now()
			p := q.ask(t.Context(), ip)
			if p.Reach != nil || !strings.Contains(p.NoReach, m.says) || strings.ContainsRune(p.NoReach, 0x1b) {
				t.Errorf("got %+v, %q", p.Reach, p.NoReach)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			plan := joinplan.Join(joinplan.Facts{Role: joinplan.Candidate, Own: q.own, Peers: []joinplan.Peer{p}})
			if plan.Verdict != joinplan.Blocks {
				t.Errorf("the plan is %s", plan.Verdict)
			}
			for _, line := range terminal.Draw(80, false, func(s *terminal.Screen) { putPlan(s, plan, "") }) {
				if strings.ContainsRune(line, 0x1b) || len(line) > 100 {
					t.Errorf("on the screen: %q", line)
				}
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("it was followed elsewhere")
	}
}
