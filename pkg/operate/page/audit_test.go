package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

// audits asks for the trail.
func (s *stage) audits(query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.page.Routes()["/api/audit"].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/audit?"+query, nil))
	return w
}

func TestTheTrailIsAnsweredAsItIsTold(t *testing.T) {
	s := newStage(t)
	if w := s.audits(""); w.Code != http.StatusNotFound {
		t.Errorf("without a trail: %d", w.Code)
	}
	var asked url.Values
	var failed error
	s.page.Audit = func(query url.Values) (Trail, error) {
		asked = query
		return Trail{Operations: []types.Operation{{ID: "a", Op: "cordon", Target: "</script>"}}, Remarks: []string{"a file is bad"}}, failed
	}
	w := s.audits("since=2h&op=cordon")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || strings.Contains(w.Body.String(), "<") || !strings.Contains(w.Body.String(), `"op":"cordon"`) || !strings.Contains(w.Body.String(), `"remarks":["a file is bad"]`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if asked.Get("since") != "2h" || asked.Get("op") != "cordon" {
		t.Errorf("it was asked for %v", asked)
	}
	for want, err := range map[int]error{
		http.StatusBadRequest:          fmt.Errorf("since: %w", ErrQuery),
		http.StatusInternalServerError: errors.New("the disk does not answer"),
	} {
		failed = err
		if w := s.audits("since=x"); w.Code != want || !strings.Contains(w.Body.String(), err.Error()) {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

// FuzzQuery asks everything that takes a query.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "app=x&tail=5&follow=1", "tail=-1", "app=%00&tail=%zz", "since=2h&op=,,&failed", "app=..%2f..%2fetc%2fpasswd;x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		s := newStage(t)
		s.page.Audit = func(url.Values) (Trail, error) { return Trail{}, ErrQuery }
		for _, path := range []string{"/api/logs", "/api/audit", "/page.js"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			s.page.Routes()[path].Handler.ServeHTTP(w, r)
			if w.Code == http.StatusOK != (path == "/page.js") || w.Code >= 500 {
				t.Errorf("%s?%s: %d", path, query, w.Code)
			}
		}
	})
}
