package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

const secret = "0123456789abcdef.token"

// newEdge plays zedkube-edge, whose join tells a token.
func newEdge() (*Edge, *device) {
	d := newDevice()
	said := map[string]string{"status -o json": `{"Enabled":true,"Settings":[]}`, "join press-1 --arch arm64 --yes -o json": `{"token":"` + secret + `"}`}
	d.Run = func(_ context.Context, out io.Writer, args ...string) error {
		line := strings.Join(args, " ")
		d.ran = append(d.ran, line)
		text, ok := said[line]
		if !ok {
			text = "said by " + line + "\n"
		}
		_, _ = io.WriteString(out, text)
		return d.fails[line]
	}
	return &Edge{Handler: d.Handler}, d
}

func (e *Edge) asked(ctx context.Context, handle http.HandlerFunc, method, body, id string) answered {
	r := httptest.NewRequestWithContext(peer.NewContext(ctx, peer.Self()), method, "/", strings.NewReader(body))
	r.Header.Set(PlanHeader, id)
	w := httptest.NewRecorder()
	handle(w, r)
	a := answered{Code: w.Code, Body: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a) // a file is none
	return a
}

func (e *Edge) plans(ctx context.Context, body string) answered {
	return e.asked(ctx, e.Plan, http.MethodPost, body, "")
}

func TestEdgeDoesWhatWasPlannedOnce(t *testing.T) {
	for _, c := range []struct{ body, plan, does, command string }{
		{`{"Do":"enable","HA":true,"Settings":{"quic":"true","nodeLimit":"20"}}`, "enable --ha nodeLimit=20 quic=true --dry-run", "enable --ha nodeLimit=20 quic=true --yes", "edge enable --ha nodeLimit=20 quic=true"},
		{`{"Do":"set","HA":true,"Settings":{"image":"a; reboot $(x) 'y'"}}`, "set image=a; reboot $(x) 'y' --dry-run", "set image=a; reboot $(x) 'y' --yes", `edge set 'image=a; reboot $(x) '\''y'\'''`},
		{`{"Do":"set","Force":true,"Settings":{"websocketPort":"31100"}}`, "set --force websocketPort=31100 --dry-run", "set --force websocketPort=31100 --yes", "edge set --force websocketPort=31100"},
		{`{"Do":"enable","Force":true}`, "enable --force --dry-run", "enable --force --yes", "edge enable --force"},
		{`{"Do":"disable","Purge":true,"Force":true}`, "disable --force --purge --dry-run", "disable --force --purge --yes", "edge disable --force --purge"},
		{`{"Do":"join","Name":"press-1","Arch":"arm64"}`, "join press-1 --arch arm64 --dry-run", "join press-1 --arch arm64 --yes -o json", "edge join press-1 --arch arm64"},
		{`{"Do":"bundle","Name":"press-1"}`, "join press-1 --dry-run", "join press-1 --yes --bundle -", "edge join press-1"},
		{`{"Do":"leave","Name":"press-1"}`, "leave press-1 --dry-run", "leave press-1 --yes --timeout 45s", "edge leave press-1"},
		{`{"Do":"leave","Name":"press-1","Lost":true}`, "leave press-1 --lost --dry-run", "leave press-1 --lost --yes --timeout 45s", "edge leave press-1 --lost"},
	} {
		e, d := newEdge()
		plan := e.plans(t.Context(), c.body)
		if plan.ID == "" || plan.Plan != "said by "+c.plan+"\n" || !slices.Equal(d.ran, []string{c.plan}) || len(d.audit) > 0 {
			t.Errorf("%s: the plan %+v ran %q", c.body, plan, d.ran)
		}
		var shown struct{ Command string }
		if err := json.Unmarshal([]byte(plan.Body), &shown); err != nil || shown.Command != c.command {
			t.Errorf("%s: to type is %q, %v", c.body, shown.Command, err)
		}
		done := e.asked(t.Context(), e.Do, http.MethodPost, "", plan.ID)
		if done.Code != http.StatusOK || done.Error != "" || len(d.ran) != 2 || d.ran[1] != c.does {
			t.Errorf("%s: %+v ran %q", c.body, done, d.ran)
		}
		words := strings.TrimSuffix(c.plan, " --dry-run")
		if want := []string{"page|run|command/edge " + words + "|OPERATOR|uid|requested on the page", "ok|<nil>"}; !slices.Equal(d.audit, want) {
			t.Errorf("%s: audited is %q", c.body, d.audit)
		}
		if again := e.asked(t.Context(), e.Do, http.MethodPost, "", plan.ID); again.Code != http.StatusConflict || len(d.ran) != 2 {
			t.Errorf("%s: done twice by one plan: %+v", c.body, again)
		}
	}
}

// A token is for who asked: neither the trail nor what the page is shown afterwards has it.
func TestATokenIsToldOnce(t *testing.T) {
	e, d := newEdge()
	plan := e.plans(t.Context(), `{"Do":"join","Name":"press-1","Arch":"arm64"}`)
	if done := e.asked(t.Context(), e.Do, http.MethodPost, "", plan.ID); !strings.Contains(done.Said, secret) {
		t.Errorf("%+v", done)
	}
	if seen := e.asked(t.Context(), e.Look, http.MethodGet, "", ""); strings.Contains(seen.Body, secret) || !strings.Contains(seen.Body, `"Enabled":true`) {
		t.Errorf("the page is shown %s", seen.Body)
	}
	if text := fmt.Sprint(d.audit); strings.Contains(text, secret) {
		t.Errorf("audited is %s", text)
	}
}

func TestWhatEdgeDoesNotTake(t *testing.T) {
	e, d := newEdge()
	for _, body := range []string{
		"", "x", "[]", `{"Do":"reboot"}`, `{"Do":"set","Unknown":1}`, `{"Do":"wait","Name":"press-1"}`, `{"Do":"leave"}`, `{"Do":"leave","Name":"--lost"}`, `{"Do":"join"}`, `{"Do":"join","Name":"--kubeconfig=/tmp/x"}`,
		`{"Do":"join","Name":"a;reboot"}`, `{"Do":"join","Name":"$(id)"}`, `{"Do":"join","Name":"../x"}`, `{"Do":"join","Name":"a b"}`, `{"Do":"join","Name":"a\nb"}`,
		`{"Do":"join","Name":"` + strings.Repeat("a", 254) + `"}`, `{"Do":"join","Name":"a","Arch":"--bundle"}`, `{"Do":"set","Settings":{"--root":"x"}}`, `{"Do":"set","Settings":{"":"x"}}`,
		`{"Do":"set","Settings":{"image":"a\u0000"}}`, `{"Do":"set","Settings":{"image":"` + strings.Repeat("a", maxValue+1) + `"}}`,
		`{"Do":"set","Settings":{"image":"` + strings.Repeat("a", maxEdgeBody) + `"}}`, strings.Repeat(`{"Settings":`, 5000),
	} {
		if got := e.plans(t.Context(), body); got.Code != http.StatusBadRequest || got.Error == "" || got.ID != "" {
			t.Errorf("%.60q: %d %.200s", body, got.Code, got.Body)
		}
	}
	if got := e.asked(t.Context(), e.Do, http.MethodPost, "", "AAAA"); got.Code != http.StatusConflict {
		t.Errorf("an invented plan: %+v", got)
	}
	if len(d.ran) > 0 || len(d.audit) > 0 {
		t.Errorf("it ran %q, audited %q", d.ran, d.audit)
	}
	d.fails["enable --dry-run"] = errors.New("refused: port 31000 is another Service's")
	if got := e.plans(t.Context(), `{"Do":"enable"}`); got.ID != "" || got.Error != "refused: port 31000 is another Service's" {
		t.Errorf("what is refused has a plan: %+v", got)
	}
}

func TestEdgeIsAskedAtMostEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, d := newEdge()
		look := func() string { return e.asked(t.Context(), e.Look, http.MethodGet, "", "").Body }
		e.asked(t.Context(), e.Look, http.MethodHead, "", "")
		if len(d.ran) != 0 {
			t.Errorf("HEAD ran %q", d.ran)
		}
		d.fails["status -o json"] = errors.New("there are problems") // it has said what they are
		for range 20 {
			if text := look(); !strings.Contains(text, `"Here":true`) || !strings.Contains(text, `"Error":""`) || !strings.Contains(text, `"Program":"zedkube --root /node edge"`) {
				t.Fatal(text)
			}
			time.Sleep(time.Second)
		}
		if len(d.ran) != 4 {
			t.Errorf("in 20 s it ran %d times", len(d.ran))
		}
	})
}

func TestEdgeIsAskedAgainAfterAPanic(t *testing.T) {
	e, d := newEdge()
	run := d.Run
	d.Run = func(context.Context, io.Writer, ...string) error { panic("a defect") }
	func() {
		defer func() { _ = recover() }() // as the server does
		e.asked(t.Context(), e.Look, http.MethodGet, "", "")
	}()
	d.Run = run
	if got := e.asked(t.Context(), e.Look, http.MethodGet, "", ""); got.Code != http.StatusOK || !strings.Contains(got.Body, `"Enabled":true`) {
		t.Errorf("%+v", got)
	}
}

func TestAnEdgeProgramThatIsMissingHangsOrSaysTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, run := range map[string]func(ctx context.Context, out io.Writer) error{
			`"Missing":"` + ErrNoEdge.Error(): func(context.Context, io.Writer) error { return fmt.Errorf("%w: see docs", ErrNoEdge) },
			"has not answered within 15s":     func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() },
			"another version of it": func(_ context.Context, out io.Writer) error {
				_, _ = io.WriteString(out, "KubeEdge is off")
				return nil
			},
			"no answer from the API server": func(context.Context, io.Writer) error { return errors.New("no answer from the API server") },
			"more than 256 KiB": func(_ context.Context, out io.Writer) error {
				for range 100 {
					_, _ = out.Write([]byte(`"` + strings.Repeat("a", 100<<10)))
				}
				return nil
			},
		} {
			e, _ := newEdge()
			e.Run = func(ctx context.Context, out io.Writer, _ ...string) error { return run(ctx, out) }
			first := make(chan answered)
			go func() { first <- e.asked(t.Context(), e.Look, http.MethodGet, "", "") }()
			synctest.Wait()
			if second := e.asked(t.Context(), e.Look, http.MethodGet, "", ""); strings.Contains(want, "15s") && second.Code != http.StatusServiceUnavailable {
				t.Errorf("a second one waits: %+v", second)
			}
			if got := <-first; got.Code != http.StatusOK || !strings.Contains(got.Body, want) || len(got.Body) > 10<<10 {
				t.Errorf("want %q, got %.500s", want, got.Body)
			}
		}
	})
}
