package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/types"
)

// device is a handler whose commands say what the test wants, and what it did.
type device struct {
	*Handler
	ran    []string
	audit  []string
	fails  map[string]error // by command
	begins chan struct{}    // closed by a command that waits for holds; nil for none that waits
	holds  chan struct{}
}

func newDevice() *device {
	d := &device{fails: map[string]error{}}
	d.Handler = &Handler{Agent: context.Background(), Operations: d, Program: "zedkube --root /node", Run: func(_ context.Context, out io.Writer, args ...string) error {
		line := strings.Join(args, " ")
		d.ran = append(d.ran, line)
		if d.begins != nil {
			close(d.begins)
			<-d.holds
		}
		if d.fails[line] == nil || strings.HasPrefix(line, "support-bundle") {
			fmt.Fprintf(out, "said by %s\n", line)
		}
		return d.fails[line]
	}}
	return d
}

// Begin implements types.OperationLog.
func (d *device) Begin(o types.Operation) func(types.OperationOutcome, error) {
	d.audit = append(d.audit, strings.Join([]string{o.Component, o.Op, o.Target, o.By, strings.Fields(o.From)[0], o.Why}, "|"))
	return func(outcome types.OperationOutcome, err error) {
		d.audit = append(d.audit, fmt.Sprintf("%s|%v", outcome, err))
	}
}

// answered is what the device says to a request.
type answered struct {
	Code                  int
	Plan, Error, ID, Said string
	Body                  string
}

func (d *device) ask(t *testing.T, method, name, id string) answered {
	t.Helper()
	r := httptest.NewRequestWithContext(peer.NewContext(t.Context(), peer.Peer{PID: os.Getpid()}), method, Path+"/"+name, nil)
	if id != "" {
		r.Header.Set(PlanHeader, id)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	a := answered{Code: w.Code, Body: w.Body.String()}
	if w.Header().Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
	}
	return a
}

func TestAnActionRunsItsCommandOnceAfterItsPlanWasShown(t *testing.T) {
	for _, a := range table {
		d := newDevice()
		plan := d.ask(t, http.MethodGet, a.Name, "")
		if plan.Code != http.StatusOK || plan.ID == "" || !slices.Equal(d.ran, a.plan) || len(d.audit) > 0 {
			t.Errorf("%s: the plan %+v ran %q, audited %q", a.Name, plan, d.ran, d.audit)
		}
		for _, line := range a.plan {
			if !strings.Contains(plan.Plan, "said by "+line) {
				t.Errorf("%s: the plan lacks %s: %q", a.Name, line, plan.Plan)
			}
		}
		d.ran = nil
		done := d.ask(t, http.MethodPost, a.Name, plan.ID)
		want := a.Command
		if a.File {
			want += " -f -"
		}
		if done.Code != http.StatusOK || !slices.Equal(d.ran, []string{want}) || !strings.Contains(done.Body, "said by "+want) {
			t.Errorf("%s: %+v ran %q", a.Name, done, d.ran)
		}
		if audited := []string{"page|run|command/" + a.Command + "|OPERATOR|uid|requested on the page", "ok|<nil>"}; !slices.Equal(d.audit, audited) {
			t.Errorf("%s: audited is %q, want %q", a.Name, d.audit, audited)
		}
		if again := d.ask(t, http.MethodPost, a.Name, plan.ID); again.Code != http.StatusConflict || len(d.ran) != 1 {
			t.Errorf("%s: done twice by one plan: %+v", a.Name, again)
		}
	}
}

func TestNothingIsDoneWithoutItsPlan(t *testing.T) {
	d := newDevice()
	drain := d.ask(t, http.MethodGet, "drain-request", "")
	old := d.ask(t, http.MethodGet, "keep-cordon", "")
	d.plans[1].at = time.Now().Add(-planHolds - time.Second)
	d.ran = nil
	for what, got := range map[string]answered{
		"without a plan":          d.ask(t, http.MethodPost, "drain-request", ""),
		"with an invented plan":   d.ask(t, http.MethodPost, "drain-request", "AAAA"),
		"with another's plan":     d.ask(t, http.MethodPost, "workloads-disable", drain.ID),
		"with a plan that is old": d.ask(t, http.MethodPost, "keep-cordon", old.ID),
	} {
		if got.Code != http.StatusConflict || got.Error == "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := d.ask(t, http.MethodPost, "reboot", drain.ID); got.Code != http.StatusBadRequest {
		t.Errorf("an unknown action: %+v", got)
	}
	if len(d.ran) > 0 || len(d.audit) > 0 {
		t.Errorf("it ran %q, audited %q", d.ran, d.audit)
	}
	for range 3 * maxPlans {
		d.ask(t, http.MethodGet, "bundle", "")
	}
	if len(d.plans) != maxPlans {
		t.Errorf("%d plans are remembered", len(d.plans))
	}
}

// A command that can be given without the API server can be given from the page as well; one that
// cannot refuses there as it does in a shell.
func TestAPlanSaysWhatIsUnknownAndTheCommandDecides(t *testing.T) {
	d := newDevice()
	d.fails["drain plan"] = errors.New("no answer from the API server")
	plan := d.ask(t, http.MethodGet, "drain-request", "")
	if plan.ID == "" || plan.Error != "no answer from the API server" || plan.Plan != "unknown: zedkube --root /node drain plan: no answer from the API server\n" {
		t.Errorf("%+v", plan)
	}
	if done := d.ask(t, http.MethodPost, "drain-request", plan.ID); done.Code != http.StatusOK || done.Said != "said by drain request\n" {
		t.Errorf("%+v", done)
	}
	d.fails["workloads status"] = errors.New("the agent has not seen the cluster yet")
	plan = d.ask(t, http.MethodGet, "workloads-enable", "")
	if plan.ID == "" || !strings.HasPrefix(plan.Plan, "unknown: ") || !strings.HasSuffix(plan.Plan, "\nsaid by apps\n") {
		t.Errorf("what is known is not in the plan: %+v", plan)
	}
	d.fails["drain keep-cordon"] = errors.New("no answer from the API server")
	plan = d.ask(t, http.MethodGet, "keep-cordon", "")
	if done := d.ask(t, http.MethodPost, "keep-cordon", plan.ID); done.Said != "" || done.Error != "no answer from the API server" {
		t.Errorf("%+v", done)
	}
}

func TestAnActionThatFailsSaysSoToItsOperatorAndTheAudit(t *testing.T) {
	d := newDevice()
	d.fails["drain cancel"] = errors.New("disk full")
	plan := d.ask(t, http.MethodGet, "drain-cancel", "")
	if done := d.ask(t, http.MethodPost, "drain-cancel", plan.ID); done.Error != "disk full" {
		t.Errorf("%+v", done)
	}
	if len(d.audit) != 2 || d.audit[1] != "failed|disk full" {
		t.Errorf("audited is %q", d.audit)
	}
}

// A bundle of which a part is missing must not look like a whole one.
func TestABundleThatBreaksOffEndsItsConnection(t *testing.T) {
	d := newDevice()
	d.fails["support-bundle -f -"] = errors.New("disk error")
	plan := d.ask(t, http.MethodGet, "bundle", "")
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+Path+"/bundle", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(PlanHeader, plan.ID)
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("what was cut off looks complete")
	}
}

func TestOneActionIsUnderWayAtATime(t *testing.T) {
	d := newDevice()
	d.begins, d.holds = make(chan struct{}), make(chan struct{})
	ended := make(chan answered)
	go func() { ended <- d.ask(t, http.MethodGet, "drain-request", "") }()
	<-d.begins
	if got := d.ask(t, http.MethodGet, "drain-cancel", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("%+v", got)
	}
	close(d.holds)
	if got := <-ended; got.ID == "" {
		t.Errorf("%+v", got)
	}
}

// What has begun is not broken off by a browser that goes away, and does not keep the agent from
// stopping: the audit has its true end.
func TestWhatHasBegunEndsWithTheAgentAndNotWithThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		plan := d.ask(t, http.MethodGet, "drain-cancel", "")
		agent, stop := context.WithCancel(t.Context())
		d.Agent = agent
		d.Run = func(ctx context.Context, _ io.Writer, _ ...string) error {
			<-ctx.Done()
			return errors.New("interrupted")
		}
		asked, leave := context.WithCancel(peer.NewContext(t.Context(), peer.Self()))
		ended := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			r := httptest.NewRequestWithContext(asked, http.MethodPost, Path+"/drain-cancel", nil)
			r.Header.Set(PlanHeader, plan.ID)
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			ended <- w
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		if len(d.audit) != 1 {
			t.Errorf("it ended with the page: %q", d.audit)
		}
		begun := time.Now()
		stop()
		w := <-ended
		if took := time.Since(begun); took > 0 {
			t.Errorf("the agent waited %s for it", took)
		}
		const why = "the agent stopped before the command had ended: interrupted"
		if len(d.audit) != 2 || d.audit[1] != "failed|"+why || !strings.Contains(w.Body.String(), why) {
			t.Errorf("audited is %q, answered %s", d.audit, w.Body)
		}
	})
}

func TestTheListSaysWhetherItCanBeDoneHere(t *testing.T) {
	for want, ctx := range map[bool]context.Context{true: peer.NewContext(t.Context(), peer.Self()), false: t.Context()} {
		w := httptest.NewRecorder()
		newDevice().List(w, httptest.NewRequestWithContext(ctx, http.MethodGet, Path, nil))
		var got struct {
			Here    bool
			Program string
			Actions []struct{ Name, Title, Command, Effect string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Here != want || got.Program != "zedkube --root /node" || len(got.Actions) != len(table) {
			t.Errorf("over the socket %v: %+v", want, got)
		}
	}
}

func TestWhatACommandSaysIsBounded(t *testing.T) {
	d := newDevice()
	d.Run = func(_ context.Context, out io.Writer, _ ...string) error {
		for range 10 {
			if _, err := out.Write(make([]byte, maxSaid/3)); err != nil {
				return err
			}
		}
		return nil
	}
	if said, err := d.run(t.Context(), "status"); err != nil || len(said) != maxSaid {
		t.Errorf("%d bytes, %v", len(said), err)
	}
}
