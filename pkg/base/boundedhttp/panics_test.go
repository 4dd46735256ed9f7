package boundedhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// server has handlers that panic, each in its way.
func server(t *testing.T) (*httptest.Server, *test.Hook) {
	t.Helper()
	log, hook := test.NewNullLogger()
	mux := http.NewServeMux()
	mux.HandleFunc("/nil", func(http.ResponseWriter, *http.Request) {
		var none *http.Request
		_ = none.Host
	})
	mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half ")
		_ = http.NewResponseController(w).Flush()
		var none []int
		_ = none[len(r.URL.Path)]
	})
	mux.HandleFunc("/well", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	s := httptest.NewServer(Recover(log, mux))
	t.Cleanup(s.Close)
	return s, hook
}

func get(t *testing.T, url string) (code int, body string, err error) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(content), err
}

func TestAPanicIsAnsweredAndLoggedOnceWithItsStack(t *testing.T) {
	s, hook := server(t)
	for range 3 {
		if code, body, err := get(t, s.URL+"/nil"); code != http.StatusInternalServerError || err != nil || strings.Contains(body, "nil pointer") {
			t.Errorf("%d %q, %v", code, body, err)
		}
	}
	if code, body, _ := get(t, s.URL+"/well"); code != http.StatusOK || body != "well" {
		t.Errorf("afterwards: %d %q", code, body)
	}
	logged := hook.AllEntries()
	if len(logged) != 1 {
		t.Fatalf("%d lines are logged", len(logged))
	}
	e := logged[0]
	stack, _ := e.Data["stack"].(string)
	if e.Level != logrus.ErrorLevel || !strings.Contains(e.Message, "nil pointer dereference") || !strings.Contains(stack, "panics_test.go") || e.Data["path"] != "/nil" {
		t.Errorf("%s %v", e.Message, e.Data)
	}
	if at, _ := e.Data["at"].(string); !strings.Contains(at, "panics_test.go:") {
		t.Errorf("it came from %s", at)
	}
}

func TestAHalfAnswerDoesNotLookWhole(t *testing.T) {
	s, hook := server(t)
	if _, body, err := get(t, s.URL+"/late"); err == nil {
		t.Errorf("%q looks whole", body)
	}
	_, _, _ = get(t, s.URL+"/nil")
	if n := len(hook.AllEntries()); n != 2 {
		t.Errorf("%d lines of two faults", n)
	}
}
