package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/types"
)

// Operation names what a verb does, and to what (docs/wire.md, "Audit").
type Operation struct{ Op, Target string }

// beforeWrite is the key in a context of the func() that puts an operation on record:
// it is called before each write.
type beforeWrite struct{}

// operationKey is the key in a context of the name of its operation.
type operationKey struct{}

// Record carries out do as that operation. It leaves one record where do writes or
// fails, and none where there was nothing to change.
func (s *Session) Record(ctx context.Context, d Operation, do func(context.Context) error) error {
	what := types.Acting(ctx)
	what.Op, what.Target = d.Op, d.Target
	begin := sync.OnceValue(func() func(types.OperationOutcome, error) { return s.operations.Begin(what) })
	var sent atomic.Bool
	err := do(context.WithValue(context.WithValue(ctx, operationKey{}, d.Op), beforeWrite{}, func() {
		sent.Store(true)
		begin()
	}))
	if wrote := sent.Load(); wrote || err != nil {
		end := begin()
		end(outcomeOf(err, wrote), err)
	}
	return err
}

// Unrecorded is for requests that look like writes and change nothing.
func Unrecorded(ctx context.Context) context.Context {
	return context.WithValue(ctx, beforeWrite{}, func() {})
}

// outcomeOf is how a verb ended that returned err; sent: after a write was sent.
func outcomeOf(err error, sent bool) types.OperationOutcome {
	switch {
	case err == nil:
		return types.OperationOK
	case errors.Is(err, types.ErrConflict), errors.Is(err, types.ErrRefused), errors.Is(err, types.ErrDisruptionBudget),
		saysNo(err), apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.IsUnauthorized(err):
		return types.OperationRefused
	case sent && (unanswered(err) || errors.Is(err, context.Canceled)):
		return types.OperationUnanswered
	}
	return types.OperationFailed
}

// AuditTransport is the net under the verbs: it sees every request, and puts on
// record what is written under no operation, too.
type AuditTransport struct {
	RoundTripper
	Log types.OperationLog
}

// RoundTrip implements http.RoundTripper.
func (r *AuditTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !mayWrite(req) {
		return r.RoundTripper.RoundTrip(req)
	}
	if record, named := req.Context().Value(beforeWrite{}).(func()); named {
		record()
		return r.RoundTripper.RoundTrip(req)
	}
	d, worth := operationOf(req)
	if !worth {
		return r.RoundTripper.RoundTrip(req)
	}
	what := types.Acting(req.Context())
	what.Op, what.Target = d.Op, d.Target
	end := r.Log.Begin(what)
	resp, err := r.RoundTripper.RoundTrip(req)
	switch {
	case err != nil:
		end(types.OperationUnanswered, err)
	case resp.StatusCode >= http.StatusInternalServerError:
		end(types.OperationUnanswered, statusError(resp.StatusCode))
	case resp.StatusCode >= http.StatusBadRequest:
		end(types.OperationRefused, statusError(resp.StatusCode))
	default:
		end(types.OperationOK, nil)
	}
	return resp, err
}

func statusError(code int) error { return fmt.Errorf("HTTP %d %s", code, http.StatusText(code)) }

func mayWrite(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return req.URL.Query().Get("dryRun") == ""
}

// operationOf names a write by its request. Not worth a record are the Leases, which
// are renewed all the time, Events, which are a record themselves, and questions
// about rights.
func operationOf(req *http.Request) (d Operation, worth bool) {
	group, namespace, part := resourceOf(req.URL.Path)
	if len(part) == 0 {
		return Operation{strings.ToLower(req.Method), req.URL.Path}, true
	}
	kind := part[0]
	switch {
	case kind == "leases" && group == "coordination.k8s.io", kind == "events",
		group == "authorization.k8s.io", group == "authentication.k8s.io":
		return Operation{}, false
	}
	kind = strings.TrimSuffix(kind, "s")
	verb := verbOf(req) + " " + kind
	target := kind + "/"
	if namespace != "" {
		target += namespace + "/"
	}
	if len(part) > 1 {
		target += part[1]
	}
	if len(part) > 2 {
		verb += " " + part[2]
	}
	return Operation{verb, strings.TrimSuffix(target, "/")}, true
}

// VerbWithin bounds a whole verb, its retries included.
const VerbWithin = 20 * time.Second

// Values are those of an object that a patch names, by field.
type Values map[string]any

// AnnotationsPatch is a merge patch of annotations; a value of nil removes one.
func AnnotationsPatch(annotations Values) Values {
	return Values{"metadata": Values{"annotations": annotations}}
}

// UntilDone is as often as it takes, until a context ends it.
var UntilDone = wait.Backoff{Duration: 50 * time.Millisecond, Jitter: 1, Steps: 200}

// RetryOnConflict repeats what somebody else was faster than, as often as it
// takes, until its context ends it.
func RetryOnConflict(do func() error) error { return retry.RetryOnConflict(UntilDone, do) }

// Patcher is a client for the objects of one kind, as far as a patch needs it.
type Patcher[T any] interface {
	Patch(ctx context.Context, name string, kind ktypes.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
}

// Merge sends a merge patch as that field manager, and returns the object as it is then.
func Merge[T any](ctx context.Context, api Patcher[T], name, manager string, patch Values) (T, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		var none T
		return none, err
	}
	return api.Patch(ctx, name, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: manager})
}

// ForVersion has the patch fail with a conflict on any other version.
func ForVersion(version string, patch Values) Values {
	metadata, ok := patch["metadata"].(Values)
	if !ok {
		metadata = Values{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	return patch
}

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
	start, verb := time.Now(), verbOf(req)
	resp, err := c.RoundTripper.RoundTrip(req)
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

func (w *openWatch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.ended()
	}
	return n, err
}

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
