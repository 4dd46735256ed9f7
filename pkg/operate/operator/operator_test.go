package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/types"
)

// trail notes operations as they begin and end.
type trail struct {
	t    *testing.T
	file string // whether it is there is noted too
	said []string
}

func (l *trail) Begin(o types.Operation) func(types.OperationOutcome, error) {
	_, err := os.Stat(l.file)
	l.said = append(l.said, strings.Join([]string{o.Component, o.Op, o.Target, o.By, o.From, textOf(err == nil)}, "|"))
	return func(outcome types.OperationOutcome, _ error) {
		_, err := os.Stat(l.file)
		l.said = append(l.said, string(outcome)+"|"+textOf(err == nil))
	}
}

func textOf(there bool) string {
	if there {
		return "there"
	}
	return "not there"
}

// stage is a handler on an empty device.
type stage struct {
	*Handler
	t     *testing.T
	trail *trail
}

func newStage(t *testing.T) stage {
	root := t.TempDir()
	l := &trail{t: t, file: filepath.Join(root, "run/zedkube-cli/NodeDrainRequest/global.json")}
	return stage{&Handler{Root: root, Operations: l, Topics: []Topic{TopicOf[types.NodeDrainRequest](), Renewed(TopicOf[types.MetricsLook]())}}, t, l}
}

// asks is the answer to a request of a process that is not there any more.
func (s stage) asks(method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r = r.WithContext(peer.NewContext(r.Context(), peer.Peer{UID: 0}))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (s stage) lies() (string, error) {
	content, err := os.ReadFile(s.trail.file)
	return string(content), err
}

const drain = `{"RequestedAt":"2026-05-03T06:41:17.25Z","RequestedBy":1,"Context":"new disk"}`

func TestWhatIsAskedLiesInItsTopicUntilItIsTakenBack(t *testing.T) {
	s := newStage(t)
	if code, text := s.asks(http.MethodPut, "/requests/NodeDrainRequest/global", drain); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	if got, err := s.lies(); got != drain || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if code, text := s.asks(http.MethodDelete, "/requests/NodeDrainRequest/global", ""); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	if _, err := s.lies(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("taken back: %v", err)
	}
	want := []string{
		"command|ask|topic/NodeDrainRequest/global|OPERATOR|uid 0|not there", "ok|there",
		"command|ask no more|topic/NodeDrainRequest/global|OPERATOR|uid 0|there", "ok|not there",
	}
	if diff := cmp.Diff(want, s.trail.said); diff != "" {
		t.Errorf("the audit: %s", diff)
	}
}

func TestARequestThatAnotherHandlerMakesIsThatOfWhoAskedIt(t *testing.T) {
	s := newStage(t)
	r := httptest.NewRequest(http.MethodPatch, "/api/v1alpha1/cluster", nil)
	r = r.WithContext(peer.NewContext(r.Context(), peer.Peer{UID: 0}))
	at := time.Date(2026, 5, 3, 6, 41, 17, 250_000_000, time.UTC)
	if err := s.Request(r, "NodeDrainRequest", types.NodeDrainRequest{RequestedAt: at, RequestedBy: types.DrainRequesterNone, Context: "new disk"}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.lies(); got != drain || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Request(r, "NodeDrainRequest", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.lies(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("withdrawn: %v", err)
	}
	want := []string{
		"command|ask|topic/NodeDrainRequest/global|OPERATOR|uid 0|not there", "ok|there",
		"command|ask no more|topic/NodeDrainRequest/global|OPERATOR|uid 0|there", "ok|not there",
	}
	if diff := cmp.Diff(want, s.trail.said); diff != "" {
		t.Errorf("the audit: %s", diff)
	}
	if err := s.Request(r, "EdgeNodeClusterConfig", nil); err == nil {
		t.Error("a topic of another agent is written")
	}
}

func TestNothingIsRequestedForWhoHasGivenUpButItIsWithdrawn(t *testing.T) {
	s := newStage(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodPut, "/", nil).WithContext(gone)
	if err := s.Request(r, "NodeDrainRequest", types.NodeDrainRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("asked: %v", err)
	}
	if got, err := s.lies(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is %q, %v", got, err)
	}
	if code, text := s.asks(http.MethodPut, "/requests/NodeDrainRequest/global", drain); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	if err := s.Request(r, "NodeDrainRequest", nil); err != nil {
		t.Errorf("taken back: %v", err)
	}
	if got, err := s.lies(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is still %q, %v", got, err)
	}
}

func TestAFileThatNobodyCanReadIsTakenBackAndReplaced(t *testing.T) {
	for _, method := range []string{http.MethodDelete, http.MethodPut} {
		s := newStage(t)
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.trail.file), 0o700), os.WriteFile(s.trail.file, []byte(`{"Phase":`), 0o600)); err != nil {
			t.Fatal(err)
		}
		if code, text := s.asks(method, "/requests/NodeDrainRequest/global", drain); code != 204 {
			t.Fatalf("%s: %d %s", method, code, text)
		}
		if got, err := s.lies(); method == http.MethodPut && got != drain || method == http.MethodDelete && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %q, %v", method, got, err)
		}
	}
}

func TestWhatCannotBeIsRefusedAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		want       int
	}{
		"a topic of another agent":       {"/requests/EdgeNodeClusterConfig/global", "{}", 404},
		"no topic":                       {"/requests/", drain, 404},
		"no key":                         {"/requests/NodeDrainRequest", drain, 400},
		"an empty key":                   {"/requests/NodeDrainRequest/", drain, 400},
		"a key that leads elsewhere":     {"/requests/NodeDrainRequest/..%2f..%2fzedagent", drain, 400},
		"a hidden file":                  {"/requests/NodeDrainRequest/.global", drain, 400},
		"a key beyond what files have":   {"/requests/NodeDrainRequest/" + strings.Repeat("a", 300), drain, 400},
		"no JSON":                        {"/requests/NodeDrainRequest/global", "{", 400},
		"null":                           {"/requests/NodeDrainRequest/global", " null ", 400},
		"nothing":                        {"/requests/NodeDrainRequest/global", "", 400},
		"a list":                         {"/requests/NodeDrainRequest/global", "[]", 400},
		"two values":                     {"/requests/NodeDrainRequest/global", drain + drain, 400},
		"what a newer version asks":      {"/requests/NodeDrainRequest/global", `{"Context":"","Consent":["v1"]}`, 400},
		"another type":                   {"/requests/NodeDrainRequest/global", `{"RequestedBy":"1"}`, 400},
		"more than a topic takes":        {"/requests/NodeDrainRequest/global", `{"Context":"` + strings.Repeat("a", 60<<10) + `"}`, 413},
		"more than is read":              {"/requests/NodeDrainRequest/global", `{"Context":"` + strings.Repeat("a", 1<<20) + `"}`, 413},
		"a number beyond what it can be": {"/requests/NodeDrainRequest/global", `{"RequestedBy":256}`, 400},
	} {
		s := newStage(t)
		if code, text := s.asks(http.MethodPut, "/requests/NodeDrainRequest/global", drain); code != 204 {
			t.Fatalf("%d %s", code, text)
		}
		if code, text := s.asks(http.MethodPut, c.path, c.body); code != c.want {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if got, _ := s.lies(); got != drain {
			t.Errorf("%s: what was good became %q", name, got)
		}
		files, _ := filepath.Glob(filepath.Join(s.Root, "run/*/*/*"))
		if len(files) != 1 {
			t.Errorf("%s: %v", name, files)
		}
	}
}

func TestADiskThatTakesNothingIsSaid(t *testing.T) {
	s := newStage(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(s.Root, "run"), 0o755), os.WriteFile(filepath.Join(s.Root, "run/zedkube-cli"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if code, _ := s.asks(http.MethodPut, "/requests/NodeDrainRequest/global", drain); code != 500 {
		t.Errorf("%d", code)
	}
	if n := len(s.trail.said); n != 2 || s.trail.said[1] != "failed|not there" {
		t.Errorf("the audit: %q", s.trail.said)
	}
}

func TestWhatIsRenewedIsNotInTheAudit(t *testing.T) {
	s := newStage(t)
	body := `{"At":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}`
	if code, text := s.asks(http.MethodPut, "/requests/MetricsLook/5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11", body); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	if len(s.trail.said) != 0 {
		t.Errorf("%q", s.trail.said)
	}
}

func TestARequestThatHasHadItsEffectIsRemovedAndNobodyAskedForThat(t *testing.T) {
	s := newStage(t)
	if code, text := s.asks(http.MethodPut, "/requests/NodeDrainRequest/global", drain); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	said := len(s.trail.said)
	for range 2 { // once it is gone, nothing is left to do
		if err := s.Fulfilled("NodeDrainRequest"); err != nil {
			t.Error(err)
		}
		if _, err := s.lies(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("removed: %v", err)
		}
	}
	if len(s.trail.said) != said {
		t.Errorf("the audit: %q", s.trail.said[said:])
	}
	if err := s.Fulfilled("EdgeNodeClusterConfig"); err == nil || !strings.Contains(err.Error(), "EdgeNodeClusterConfig") {
		t.Errorf("of a topic that is no request: %v", err)
	}
}
