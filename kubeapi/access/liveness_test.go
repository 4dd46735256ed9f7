package access

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
)

// trip is a RoundTripper of one function.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(code int) trip {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody, Request: r}, nil
	}
}

func after(d time.Duration, next trip) trip {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func refuse(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

// watched is a silence with what it last reported.
func watched(ctx context.Context) (*Liveness, func() (time.Time, string)) {
	var since time.Time
	var reason string
	s := NewLiveness(ctx, kubetest.Quiet(), func(t time.Time, r string) { since, reason = t, r })
	return s, func() (time.Time, string) { return since, reason }
}

func send(ctx context.Context, s *Liveness, rt trip, method, path string) error {
	return sendOver(ctx, &livenessTransport{base: rt, silence: s, retired: context.Background()}, method, path)
}

func sendOver(ctx context.Context, o *livenessTransport, method, path string) error {
	req, err := http.NewRequestWithContext(ctx, method, "https://kube"+path, nil)
	if err != nil {
		return err
	}
	resp, err := o.RoundTrip(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

func TestSilenceIsWhatKeepsARequestFromAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		base   trip
		path   string
		reason string // "" is an answer
	}{
		"refused":              {base: refuse, reason: "connection refused"},
		"closed in mid-answer": {base: func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, reason: "connection closed"},
		"hung":                 {base: after(time.Hour, answer(200)), reason: "no answer within 10s"},
		"does not know us":     {base: answer(401), reason: "HTTP 401 Unauthorized"},
		"fails":                {base: answer(500), reason: "HTTP 500 Internal Server Error"},
		"not ready":            {base: answer(503), reason: "HTTP 503 Service Unavailable"},
		"overloaded":           {base: answer(429)},
		"forbidden":            {base: answer(403)},
		"not found":            {base: answer(404)},
		"slow":                 {base: after(9*time.Second, answer(200))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, reported := watched(t.Context())
				start := time.Now()
				_ = send(t.Context(), s, test.base, "GET", test.path)
				if since, reason := reported(); !since.IsZero() || reason != "" {
					t.Errorf("silent since %v for %q after one request", since, reason)
				}
				settles := s.probing()
				if settles != (test.reason != "") {
					t.Errorf("a probe settles a doubt: %v", settles)
				}
				time.Sleep(time.Second)
				again := time.Now()
				_ = send(t.Context(), s, test.base, "GET", test.path)
				s.probed(again, settles)
				since, reason := reported()
				if reason != test.reason {
					t.Errorf("reason is %q, want %q", reason, test.reason)
				}
				if test.reason == "" && !since.IsZero() {
					t.Errorf("silent since %v, though it answered", since)
				}
				if test.reason != "" && !since.Equal(start) {
					t.Errorf("silent since %v, want the start of the first request, %v", since, start)
				}
			})
		})
	}
}

func TestSilenceBeginsWithTheFirstUnansweredRequestAndEndsWithAnyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reported := watched(t.Context())
		begin := time.Now()
		_ = send(t.Context(), s, refuse, "GET", "/1")
		time.Sleep(time.Minute)
		probe := time.Now()
		_ = send(t.Context(), s, answer(500), "GET", "/2")
		s.probed(probe, true)
		if since, reason := reported(); !since.Equal(begin) || reason != "HTTP 500 Internal Server Error" {
			t.Errorf("silent since %v for %q, want since the first and for the last failure", since, reason)
		}
		_ = send(t.Context(), s, answer(404), "GET", "/3")
		if since, reason := reported(); !since.IsZero() || reason != "" {
			t.Errorf("still silent since %v for %q after an answer", since, reason)
		}
	})
}

func TestAFailureOlderThanTheLastAnswerIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reported := watched(t.Context())
		go func() { _ = send(t.Context(), s, after(time.Hour, answer(200)), "GET", "/hangs") }()
		time.Sleep(5 * time.Second)
		_ = send(t.Context(), s, answer(200), "GET", "/")
		time.Sleep(20 * time.Second)
		if since, reason := reported(); !since.IsZero() {
			t.Errorf("silent since %v for %q", since, reason)
		}
	})
}

// broken is an answer that ends in the middle.
type broken struct{ io.Reader }

func (b broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (b broken) Close() error             { return nil }

func TestAnAnswerThatBreaksOffIsADoubt(t *testing.T) {
	cut := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: broken{}, Request: r}, nil
	}
	for _, path := range []string{"/pods", "/pods?watch=true"} {
		s, _ := watched(t.Context())
		if err := send(t.Context(), s, cut, "GET", path); err == nil {
			t.Error("no error from half an answer")
		}
		if !s.probing() || s.reason != "connection closed" {
			t.Errorf("%s: no doubt, %q", path, s.reason)
		}
	}
}

func TestACallerThatGivesUpSaysNothingOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reported := watched(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := send(ctx, s, after(time.Hour, answer(200)), "GET", "/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if since, _ := reported(); !since.IsZero() {
			t.Errorf("silent since %v", since)
		}
	})
}

func TestARetiredConnectionNoLongerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reported := watched(t.Context())
		retired, retire := context.WithCancel(t.Context())
		retire()
		_ = sendOver(t.Context(), &livenessTransport{base: trip(refuse), silence: s, retired: retired}, http.MethodGet, "/")
		if since, _ := reported(); !since.IsZero() {
			t.Errorf("silent since %v", since)
		}
	})
}
