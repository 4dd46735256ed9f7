package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
)

// screen notes what is written, and when.
type screen struct {
	began  time.Time
	writes []string
	after  []time.Duration
}

func (s *screen) Write(p []byte) (int, error) {
	s.writes, s.after = append(s.writes, string(p)), append(s.after, time.Since(s.began))
	return len(p), nil
}

// sayStates shows a node in a line.
func sayStates(v ClusterView) terminal.View {
	return terminal.View{Data: v, Steady: v.Steady(), Draw: func(s *terminal.Screen) {
		for _, r := range v.Nodes {
			s.Put(0, terminal.Plain, r.Name+" "+AnswerText(r, v.ReadAt).Text)
		}
	}}
}

// tenOfWhichFourHang answers as an agent with ten nodes does: five after 100 ms, one after a
// second, and four not at all.
func tenOfWhichFourHang(_ context.Context, tell func(clusterview.Line)) error {
	tell(clusterview.Line{NodesAt: time.Now()})
	send := func(i int, s clusterview.State, why string) {
		r := clusterview.Row{Name: fmt.Sprintf("n%d", i), State: s, Why: why}
		if s == clusterview.Answered {
			r.HeardAt, r.View = time.Now(), &clusterview.View{At: time.Now()}
		}
		tell(clusterview.Line{Row: &r})
	}
	for i := range 10 {
		send(i, clusterview.Asking, "")
	}
	time.Sleep(100 * time.Millisecond)
	for i := range 5 {
		send(i, clusterview.Answered, "")
	}
	time.Sleep(900 * time.Millisecond)
	send(5, clusterview.Answered, "")
	time.Sleep(2 * time.Second)
	for i := 6; i < 10; i++ {
		send(i, clusterview.Silent, "no answer in 3 s")
	}
	tell(clusterview.Line{End: true})
	return nil
}

func output(t *testing.T, form string, watch bool) *terminal.Outputs {
	t.Helper()
	var out terminal.Outputs
	c := &cobra.Command{}
	out.Flag(c)
	if err := errors.Join(c.Flags().Set("output", form), out.Parse()); err != nil {
		t.Fatal(err)
	}
	out.Watch = watch
	return &out
}

func TestTheFirstScreenOfTenNodesDoesNotWaitForThoseThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{began: time.Now()}
		l := &ClusterLook{Read: tenOfWhichFourHang, View: sayStates}
		if err := l.Show(t.Context(), terminal.Terminal{Writer: s, Fd: -1, Live: true}, output(t, "table", false)); err != nil {
			t.Fatal(err)
		}
		first := s.writes[1] // after the one that makes room for a screen
		if s.after[1] != firstScreen || strings.Count(first, "s ago") != 5 || strings.Count(first, "asking") != 5 {
			t.Errorf("after %s: %q", s.after[1], first)
		}
		if last := strings.Join(s.writes[len(s.writes)-10:], ""); strings.Count(last, "no answer in 3 s, never heard") != 4 || strings.Contains(last, "\x1b") {
			t.Errorf("what stays is %q", last)
		}
		if took := time.Since(s.began); took > clusterview.AskFor+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAPipeAndAProgramGetOneWholeAnswer(t *testing.T) {
	for form, want := range map[string]string{"table": "no answer in 3 s", "json": `"State": "silent"`} {
		synctest.Test(t, func(t *testing.T) {
			s := &screen{began: time.Now()}
			l := &ClusterLook{Read: tenOfWhichFourHang, View: sayStates}
			if err := l.Show(t.Context(), terminal.Terminal{Writer: s, Fd: -1}, output(t, form, false)); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(s.writes, "")
			if s.after[0] != clusterview.AskFor || strings.Count(text, want) != 4 || strings.Contains(text, "asking") {
				t.Errorf("after %s: %s", s.after[0], text)
			}
		})
	}
}

func TestWhatIsWatchedIsAskedAgainAndKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rounds := 0
		read := func(ctx context.Context, tell func(clusterview.Line)) error {
			if rounds++; rounds == 3 {
				cancel()
				return ctx.Err()
			}
			tell(clusterview.Line{Row: &clusterview.Row{Name: "n1", State: clusterview.Asking}})
			if rounds == 2 {
				return errors.New("the agent has gone")
			}
			tell(clusterview.Line{Row: &clusterview.Row{Name: "n1", State: clusterview.Answered, HeardAt: time.Now(), View: &clusterview.View{At: time.Now()}}})
			tell(clusterview.Line{End: true})
			return nil
		}
		s := &screen{began: time.Now()}
		l := &ClusterLook{Read: read, View: func(v ClusterView) terminal.View {
			shown := sayStates(v)
			draw := shown.Draw
			shown.Draw = func(s *terminal.Screen) { draw(s); PutUnanswered(s, v) }
			return shown
		}}
		if err := l.Show(ctx, terminal.Terminal{Writer: s, Fd: -1, Live: true}, output(t, "table", true)); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Fatal(err) // it was interrupted
		}
		all := strings.Join(s.writes, "")
		if rounds != 3 || !strings.Contains(all, "n1 9s ago") || !strings.Contains(all, "the agent has gone") || strings.Contains(all, "asking") {
			t.Errorf("%d rounds: %q", rounds, all)
		}
	})
}

func TestAnAnswerThatIsCutOrNoneIsSaid(t *testing.T) {
	for name, r := range map[string]struct {
		read func(context.Context, func(clusterview.Line)) error
		want string
		code int
	}{
		"no agent": {func(context.Context, func(clusterview.Line)) error { return errors.New("no agent") }, "could not be read: no agent", terminal.ExitNotPublished},
		"cut":      {func(context.Context, func(clusterview.Line)) error { return nil }, "is cut", terminal.ExitNotPublished},
	} {
		var out bytes.Buffer
		l := &ClusterLook{Read: r.read, View: sayStates}
		err := l.Show(t.Context(), terminal.Terminal{Writer: &out, Fd: -1}, output(t, "table", false))
		if err == nil || !strings.Contains(err.Error(), r.want) || terminal.ExitCode(err) != r.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestANodeThatIsNoLongerThereIsNotShown(t *testing.T) {
	l := &ClusterLook{View: sayStates}
	view := func(names ...string) string {
		for _, name := range names {
			l.note(clusterLine{Line: clusterview.Line{Row: &clusterview.Row{Name: name, State: clusterview.Answered}}})
		}
		l.note(clusterLine{ended: true})
		var shown []string
		for _, r := range l.seen.Nodes {
			shown = append(shown, r.Name)
		}
		return strings.Join(shown, " ")
	}
	for _, want := range []string{"n1 n2 n3", "n1 n3", "n1 n3 n4"} {
		if got := view(strings.Fields(want)...); got != want {
			t.Errorf("%q are shown, there are %q", got, want)
		}
	}
}

// TestAnAnswerOfOddCharactersIsRead has a node tell what takes six times the bytes where it is encoded
// again.
func TestAnAnswerOfOddCharactersIsRead(t *testing.T) {
	remark := strings.Repeat("<", clusterview.MaxAnswer)
	raw, err := json.Marshal(clusterview.Line{Row: &clusterview.Row{Name: "n1", View: &clusterview.View{Remarks: []string{remark}}}})
	if err != nil || len(raw) >= maxClusterLine {
		t.Errorf("a line of %d bytes, %d are read: %v", len(raw), maxClusterLine, err)
	}
}
