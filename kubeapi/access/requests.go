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
	if watches(req) {
		return verbWatch
	}
	// All objects of a kind, in a namespace or everywhere, and not one of them.
	if _, _, part := resourceOf(req.URL.Path); len(part) == 1 {
		return "list"
	}
	return "get"
}

// resourceOf reads the path of a request: group, "" for Kubernetes' own, namespace, ""
// for none, and the kind, name and subresource as far as they are named; none of it for
// another path.
func resourceOf(path string) (group, namespace string, part []string) {
	part = strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case part[0] == "api" && len(part) > 2: // api/v1/...
		part = part[2:]
	case part[0] == "apis" && len(part) > 3: // apis/group/version/...
		group, part = part[1], part[3:]
	default:
		return "", "", nil
	}
	if part[0] == "namespaces" && len(part) > 2 {
		namespace, part = part[1], part[2:]
	}
	return group, namespace, part
}
