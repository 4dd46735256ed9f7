package clusterview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "K10token-of-the-cluster"

// stage is a viewer on node n0 and what its peers do when they are asked.
type stage struct {
	*Viewer
	nodes []overview.ClusterNode
	peers map[string]func(context.Context) ([]byte, error) // by address; nil answers
	asked map[string]int
}

func newStage(names ...string) *stage {
	s := &stage{peers: map[string]func(context.Context) ([]byte, error){}, asked: map[string]int{}}
	for i, name := range names {
		s.nodes = append(s.nodes, overview.ClusterNode{Name: name, Own: i == 0, Agent: "1.4.0", Address: fmt.Sprintf("10.0.0.%d", i), Status: "Ready"})
	}
	status := &pubsub.Table[types.EdgeNodeClusterStatus]{}
	_ = status.Publish(types.Global, types.EdgeNodeClusterStatus{EncryptedClusterToken: secret})
	s.Viewer = (&Viewer{
		Own: teller(status, func(now time.Time) overview.Overview { return overview.Overview{ReadAt: now} }), Status: status,
		Nodes: func(now time.Time) overview.Nodes {
			return overview.Nodes{Source: overview.Source{At: now}, List: slices.Clone(s.nodes)}
		},
		Ask: s.ask,
	}).Ready()
	return s
}

func teller(status pubsub.Reader[types.EdgeNodeClusterStatus], look func(time.Time) overview.Overview) *Teller {
	none := func() ([]types.Operation, []string, error) { return nil, nil, nil }
	return (&Teller{Version: "1.4.0", Overview: look, Operations: none, Status: status}).Ready()
}

func (s *stage) ask(ctx context.Context, ip netip.Addr) ([]byte, error) {
	s.mu.Lock()
	s.asked[ip.String()]++
	s.mu.Unlock()
	if answer := s.peers[ip.String()]; answer != nil {
		return answer(ctx)
	}
	return json.Marshal(View{At: time.Now(), Zedkube: ip.String()})
}

func hang(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }

func says(raw string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(raw), nil }
}

// told are the lines of one view, each with when it was told.
type line struct {
	Line
	after time.Duration
}

func (s *stage) told(ctx context.Context, only string) (lines []line) {
	began := time.Now()
	s.look(ctx, only, func(l Line) { lines = append(lines, line{l, time.Since(began)}) })
	return lines
}

// last is what was told of a node last.
func last(t *testing.T, lines []line, name string) (found Row) {
	t.Helper()
	for _, l := range lines {
		if l.Row != nil && l.Row.Name == name {
			found = *l.Row
		}
	}
	if found.Name != name {
		t.Fatalf("nothing is told of %q", name)
	}
	return found
}

func TestTenNodesAreShownAtOnceAndNobodyWaitsForThoseThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage("n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9")
		hangs := []string{"n2", "n3", "n5", "n9"}
		for _, ip := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.9"} {
			s.peers[ip] = hang
		}
		lines := s.told(t.Context(), "")
		if len(lines) != 1+10+10+1 || lines[0].NodesAt.IsZero() || !lines[len(lines)-1].End {
			t.Fatalf("%d lines: %+v", len(lines), lines)
		}
		for i, l := range lines[1:11] {
			if l.Row.State != Asking || l.Row.Name != fmt.Sprintf("n%d", i) || l.Row.Node.Status != "Ready" {
				t.Errorf("line %d: %+v", i, l.Row)
			}
		}
		for _, l := range lines[11 : len(lines)-1] {
			is, want, after := l.Row, Answered, time.Duration(0)
			if slices.Contains(hangs, is.Name) {
				want, after = Silent, AskFor
			}
			if is.State != want || l.after != after || (is.View != nil) != (want == Answered) {
				t.Errorf("%s is %s after %s: %+v", is.Name, is.State, l.after, is)
			}
		}
		for ip, n := range s.asked {
			if n != 1 {
				t.Errorf("%s is asked %d times for one view", ip, n)
			}
		}
	})
}

func TestWhatWasToldLastIsShownWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage("n0", "n1", "n2")
		if is := last(t, s.told(t.Context(), ""), "n1"); is.State != Answered || is.HeardAt != time.Now().UTC() {
			t.Fatalf("%+v", is)
		}
		heard := time.Now().UTC()
		time.Sleep(5 * time.Minute)
		s.peers["10.0.0.1"] = hang
		lines := s.told(t.Context(), "")
		for _, l := range lines {
			if l.Row != nil && l.Row.Name == "n1" && (l.Row.View == nil || l.Row.HeardAt != heard) {
				t.Errorf("%+v", l.Row)
			}
		}
		is := last(t, lines, "n1")
		if is.State != Silent || is.Why != "no answer in 3 s" {
			t.Errorf("%+v", is)
		}
		if at := is.Ago(time.Now()); at.Sub(is.View.At) != 5*time.Minute+AskFor {
			t.Errorf("its clock is taken to show %s", at)
		}
		s.nodes = slices.Delete(s.nodes, 1, 2) // the Node is deleted, and comes back
		s.told(t.Context(), "")
		s.nodes = append(s.nodes, overview.ClusterNode{Name: "n1", Agent: "1.4.0", Address: "10.0.0.1"})
		if is := last(t, s.told(t.Context(), ""), "n1"); is.View != nil {
			t.Errorf("of a Node that was deleted is still known %+v", is.View)
		}
	})
}

func TestAnAnswerServesTheViewsOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage("n0", "n1")
		for range 10 {
			if is := last(t, s.told(t.Context(), ""), "n1"); is.State != Answered {
				t.Fatalf("%+v", is)
			}
		}
		time.Sleep(fresh)
		s.told(t.Context(), "")
		if n := s.asked["10.0.0.1"]; n != 2 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

func TestNothingThatAPeerSaysIsBelieved(t *testing.T) {
	huge := `{"At":"2026-05-03T06:07:00Z","Why":"` + strings.Repeat("x", MaxAnswer) + `"}`
	for name, r := range map[string]struct {
		answer func(context.Context) ([]byte, error)
		why    string
	}{
		"no JSON":          {says("<html>"), "does not tell of itself"},
		"nothing":          {says(""), "does not tell of itself"},
		"null":             {says("null"), "does not tell of itself"},
		"a list":           {says("[1]"), "does not tell of itself"},
		"without a time":   {says(`{"Phase":"Provisioned"}`), "does not tell of itself"},
		"another type":     {says(`{"At":"2026-05-03T06:07:00Z","Apps":7}`), "does not tell of itself"},
		"too long":         {says(huge), "more than 256 kB"},
		"too many objects": {says(`{"At":"2026-05-03T06:07:00Z","Apps":[` + strings.Repeat("{},", MaxAnswer/8) + `{}]}`), "does not tell of itself"},
		"nested":           {says(strings.Repeat("[", MaxAnswer/2)), "does not tell of itself"},
		"a wrong proof":    {func(context.Context) ([]byte, error) { return nil, errors.New("ask peer: HTTP 403 Forbidden") }, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage("n0", "n1", "n2")
			s.peers["10.0.0.1"] = r.answer
			lines := s.told(t.Context(), "")
			if is := last(t, lines, "n1"); is.State != Failed || !strings.Contains(is.Why, r.why) || is.View != nil {
				t.Errorf("%+v", is)
			}
			if is := last(t, lines, "n2"); is.State != Answered {
				t.Errorf("another node: %+v", is)
			}
		})
	}
	s := newStage("n0", "n1")
	apps := strings.Repeat(`{"Name":"a"},`, 2*maxListed) + `{"Name":"last"}`
	s.peers["10.0.0.1"] = says(`{"At":"2026-05-03T06:07:00Z","Unknown":{"a":1},"Why":"` + strings.Repeat("y", 4*maxText) + `","Problems":[{"What":"joined with ` + secret + `"}],"Apps":[` + apps + `]}`)
	is := last(t, s.told(t.Context(), ""), "n1")
	raw, _ := json.Marshal(is)
	if is.State != Answered || len(is.View.Why) > 2*maxText || len(is.View.Apps) != maxListed || bytes.Contains(raw, []byte(secret)) || bytes.Contains(raw, []byte("Unknown\":")) {
		t.Errorf("%s: %.2000s", is.Why, raw)
	}
}

func TestWhoCannotTellOfItselfIsARowOfWhatItsNodeShows(t *testing.T) {
	s := newStage("n0", "eve", "stale", "nowhere")
	s.nodes[1].Agent, s.nodes[1].Drain = "", "draining"
	s.nodes[2].AgentStale = true
	s.nodes[3].Address = ""
	lines := s.told(t.Context(), "")
	for name, want := range map[string]State{"eve": NotAsked, "stale": NotAsked, "nowhere": Failed} {
		if is := last(t, lines, name); is.State != want || is.Why == "" || is.View != nil || name == "eve" && is.Node.Drain != "draining" {
			t.Errorf("%+v", is)
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("asked were %v", s.asked)
	}
}

func TestOneNodeAloneIsAskedWhereOneIsNamed(t *testing.T) {
	s := newStage("n0", "n1", "n2")
	lines := s.told(t.Context(), "n2")
	if len(lines) != 4 || last(t, lines, "n2").State != Answered || len(s.asked) != 1 {
		t.Errorf("%+v, asked were %v", lines, s.asked)
	}
	if lines := s.told(t.Context(), "n7"); len(lines) != 2 {
		t.Errorf("of a node that is not there: %+v", lines)
	}
}

func TestANodeThatHasSeenNoNodesTellsOfItself(t *testing.T) {
	s := newStage()
	if lines := s.told(t.Context(), ""); len(lines) != 4 || lines[2].Row.State != Answered || !lines[2].Row.Own {
		t.Errorf("%+v", lines)
	}
}

func TestSoManyAreAskedAndSoMuchIsKept(t *testing.T) {
	var names []string
	for i := range maxAsked + 11 {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	s := newStage(names...)
	long, _ := json.Marshal(View{At: time.Now(), Remarks: slices.Repeat([]string{strings.Repeat("z", maxText)}, 200)})
	for i := range names {
		s.peers[fmt.Sprintf("10.0.0.%d", i)] = says(string(long))
	}
	lines := s.told(t.Context(), "")
	answered, kept := 0, 0
	for _, name := range names {
		if last(t, lines, name).State == Answered {
			answered++
		}
	}
	for _, l := range s.last {
		kept += l.size
	}
	if answered != maxAsked+1 || len(s.asked) != maxAsked || kept > maxKept || kept < maxKept/2 {
		t.Errorf("%d answered, %d were asked, %d bytes are kept", answered, len(s.asked), kept)
	}
}

func TestTwoViewsAreMadeAtATimeAndAThirdWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage("n0", "n1")
		s.peers["10.0.0.1"] = hang
		get := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, Path, nil))
			return w
		}
		ctx, leave := context.WithCancel(t.Context())
		for range 2 {
			go get(ctx)
		}
		synctest.Wait()
		third := make(chan *httptest.ResponseRecorder)
		go func() { third <- get(t.Context()) }()
		synctest.Wait()
		if n := s.asked["10.0.0.1"]; n != 2 {
			t.Errorf("%d views are made at a time", n)
		}
		leave() // who looked has gone: nobody is asked for him any more
		synctest.Wait()
		if n := s.asked["10.0.0.1"]; n != 3 {
			t.Errorf("the third has not begun: %d", n)
		}
		if w := <-third; w.Code != http.StatusOK || strings.Count(w.Body.String(), "\n") != 6 || !strings.HasSuffix(w.Body.String(), `{"End":true}`+"\n") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		// Where the two do not end, it is told to come back.
		s.turns.TryAcquire(2)
		if w := get(t.Context()); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
