package boundedhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
)

func TestAnAnswerIsReadUpToItsBoundAndNotRedirected(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) })
	mux.HandleFunc("/five", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "12345") })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/five", http.StatusFound) })
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	defer s.Close()
	c := NewClient(nil, nil, 0)
	get := func(path string, most int64, within time.Duration) (Answer, error) {
		return Get(t.Context(), c, s.URL+path, "", most, within)
	}
	if a, err := get("/long", 5, time.Minute); err != nil || len(a.Body) != 6 {
		t.Errorf("%q, %v", a.Body, err)
	}
	if a, err := get("/long", 0, time.Minute); err != nil || a.Code != http.StatusOK || len(a.Body) != 0 {
		t.Errorf("%q, %v", a.Body, err)
	}
	if a, err := get("/elsewhere", 5, time.Minute); err != nil || a.Code != http.StatusFound {
		t.Errorf("%d, %v", a.Code, err)
	}
	if _, err := get("/silent", 5, 10*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of silence: %v", err)
	}
	for path, want := range map[string]string{"/five": "", "/long": "more than 5 bytes", "/none": "404 Not Found"} {
		body, err := Whole(t.Context(), c, s.URL+path, 5, time.Minute)
		if want == "" && (err != nil || string(body) != "12345") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", path, body, err)
		}
	}
}

func TestAServerEndsWithItsRequests(t *testing.T) {
	log, _ := test.NewNullLogger()
	path := filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60)) // too long for a socket address
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan bool), make(chan bool)
	s := Serve(log, "server", l, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- true
		<-answer
		_, _ = io.WriteString(w, "last")
	})})
	body := make(chan []byte, 1)
	go func() {
		got, _ := Whole(t.Context(), NewClient(nil, nil, 0), "http://"+l.Addr().String(), 10, time.Minute)
		body <- got
	}()
	<-asked
	if !s.Alive() {
		t.Error("it does not accept")
	}
	var ending sync.WaitGroup
	s.Stop(t.Context(), &ending)
	if s.Alive() {
		t.Error("it still accepts")
	}
	close(answer)
	if got := <-body; string(got) != "last" {
		t.Errorf("the request under way got %q", got)
	}
	ending.Wait()
	if _, err := Whole(t.Context(), NewSocketClient(path), "http://zedkube/", 10, time.Minute); err == nil {
		t.Error("nobody listens, and answers")
	}
}
