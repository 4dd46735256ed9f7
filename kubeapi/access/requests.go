package access

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Requests hears of every request to the API server, the probes' and the logs'
// too. It is called from many goroutines.
type Requests interface {
	// Answered is one request by verb (get, list, watch, create, update, patch,
	// delete): its HTTP status, 0 where no answer came, and the time to the head
	// of the answer.
	Answered(verb string, code int, took time.Duration)
	// Watching is a watch that was opened (1) or has ended (-1).
	Watching(change int)
}

const verbWatch = "watch"

// MetricsTransport tells requests of all that passes.
type MetricsTransport struct {
	RoundTripper
	Requests Requests
}

// RoundTrip implements http.RoundTripper.
func (c *MetricsTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.pass(c.RoundTripper, req)
}

// ForLogs counts and times the requests of logs apart from the others.
func (c *MetricsTransport) ForLogs() http.RoundTripper {
	if s, ok := c.RoundTripper.(interface{ ForLogs() http.RoundTripper }); ok {
		return metricsLogs{c, s.ForLogs()}
	}
	return c
}

// metricsLogs counts what goes the way of logs.
type metricsLogs struct {
	*MetricsTransport
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c metricsLogs) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.pass(c.base, req)
}

func (c *MetricsTransport) pass(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	start, verb := time.Now(), verbOf(req)
	resp, err := base.RoundTrip(req)
	if err != nil {
		c.Requests.Answered(verb, 0, time.Since(start))
		return nil, err
	}
	c.Requests.Answered(verb, resp.StatusCode, time.Since(start))
	if verb == verbWatch && resp.StatusCode == http.StatusOK {
		c.Requests.Watching(1)
		resp.Body = &openWatch{ReadCloser: resp.Body, ended: sync.OnceFunc(func() { c.Requests.Watching(-1) })}
	}
	return resp, nil
}

// openWatch is the answer to a watch, which lasts until it breaks off or is closed.
type openWatch struct {
	io.ReadCloser
	ended func()
}

// Read implements io.Reader.
func (w *openWatch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.ended()
	}
	return n, err
}

// Close implements io.Closer.
func (w *openWatch) Close() error {
	w.ended()
	return w.ReadCloser.Close()
}

// verbOf is the verb of Kubernetes that req stands for; "other" for none.
func verbOf(req *http.Request) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	case http.MethodGet:
	default:
		return "other"
	}
	switch {
	case watches(req):
		return verbWatch
	case isCollection(req.URL.Path):
		return "list"
	}
	return "get"
}

// isCollection reports whether path names all objects of a kind, in a namespace
// or everywhere, and not one of them.
func isCollection(path string) bool {
	part := strings.Split(strings.Trim(path, "/"), "/")
	switch part[0] {
	case "api": // api/v1/...
		part = part[min(2, len(part)):]
	case "apis": // apis/group/version/...
		part = part[min(3, len(part)):]
	default:
		return false
	}
	if len(part) == 3 && part[0] == "namespaces" {
		return true
	}
	return len(part) == 1
}
