package access

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// dripping is an answer of left bytes, one every so often. It has no goroutine
// that could outlast the bubble of a test.
type dripping struct {
	ctx   context.Context
	every time.Duration
	left  int
}

func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.every):
	}
	d.left--
	p[0] = 'x'
	return 1, nil
}

func (d *dripping) Close() error { return nil }

func TestEveryAnswerHasADeadline(t *testing.T) {
	drip := func(every time.Duration, n int) trip {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &dripping{r.Context(), every, n}, Request: r}, nil
		}
	}
	read := func(t *testing.T, rt trip, path string) (time.Duration, error) {
		s, _ := watched(t.Context())
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://kube"+path, nil)
		start := time.Now()
		resp, err := (&livenessTransport{base: rt, silence: s, retired: t.Context()}).RoundTrip(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		return time.Since(start), err
	}
	synctest.Test(t, func(t *testing.T) {
		if d, err := read(t, after(time.Hour, answer(200)), "/"); d != AnswerWithin || err == nil {
			t.Errorf("a hung call took %v, error %v", d, err)
		}
		if d, err := read(t, after(time.Hour, answer(200)), "/pods?watch=true"); d != AnswerWithin || err == nil {
			t.Errorf("a watch without a head took %v, error %v", d, err)
		}
		if d, err := read(t, drip(time.Second, 3600), "/"); d != readWithin || err == nil || err.Error() != "read answer: not complete within 30s" {
			t.Errorf("a dripping answer took %v, error %v", d, err)
		}
		if d, err := read(t, drip(time.Second, 600), "/pods?watch=true"); d != 10*time.Minute || err != nil {
			t.Errorf("an open watch ended after %v, error %v", d, err)
		}
		if d, err := read(t, drip(time.Second, 3600), "/pods?watch=true"); d != watchWithin || err == nil || err.Error() != "read answer: not complete within 11m0s" {
			t.Errorf("a watch that the server forgot took %v, error %v", d, err)
		}
	})
}

// flood is an answer without end.
type flood struct{}

func TestAHugeAnswerIsCut(t *testing.T) {
	s, _ := watched(t.Context())
	err := send(t.Context(), s, func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(flood{}), Request: r}, nil
	}, http.MethodGet, "/pods")
	if err == nil || err.Error() != "read answer: more than 128 MiB" {
		t.Errorf("error is %v", err)
	}
}

func TestAReasonIsTheSameAtEveryTry(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	certificate := func(later time.Duration) error {
		c := srv.Client()
		c.Transport.(*http.Transport).TLSClientConfig.Time = func() time.Time { return srv.Certificate().NotAfter.Add(later) }
		resp, err := c.Get(srv.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	timeout := func(port int) error {
		return fmt.Errorf("get: %w", &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: os.ErrDeadlineExceeded})
	}
	for want, errs := range map[string][2]error{
		"tls: failed to verify certificate: x509: certificate has expired or is not yet valid": {certificate(time.Hour), certificate(2 * time.Hour)},
		"read: i/o timeout": {timeout(41234), timeout(41235)},
	} {
		if errs[0] == nil || errs[1] == nil || errs[0].Error() == errs[1].Error() {
			t.Fatalf("two tries: %v", errs)
		}
		for _, err := range errs {
			if got := ReasonOf(err); got != want {
				t.Errorf("%q, want %q, of %v", got, want, err)
			}
		}
	}
}
