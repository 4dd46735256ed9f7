package kubeconfigs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// Path is where a kubeconfig is issued.
	Path        = "/api/v1alpha1/kubeconfig"
	maxBody     = 4 << 10
	bodyTimeout = 5 * time.Second // how long a client may take to send it
)

var (
	errMany = fmt.Errorf("%d kubeconfigs have not expired yet, and there are no more at a time: zedkube kubeconfig list, zedkube kubeconfig revoke NAME", types.MaxKubeconfigs)
	errHost = errors.New("the address of the API server is not known yet")
)

// Handler answers POST of Path. Who may ask is the local server's to check. Every field is
// required.
type Handler struct {
	Info   pubsub.Reader[types.EdgeNodeInfo]
	Nodes  pubsub.Reader[types.Node]
	Status pubsub.Reader[types.EdgeNodeClusterStatus]
	Kube   Kube

	mu sync.Mutex // one at a time: they are counted before
}

// ServeHTTP implements http.Handler. The answer is 201 with the kubeconfig; 400 for a body
// that is invalid, 409 where there are too many, 503 where the API server does not answer or
// another one is being issued, 500 for all else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // one without deadlines has a bound of its own
	ask, lasts, err := decode(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "invalid request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !h.mu.TryLock() {
		http.Error(w, "another kubeconfig is being issued: try again", http.StatusServiceUnavailable)
		return
	}
	defer h.mu.Unlock()
	issued, text, err := h.issue(r.Context(), ask, lasts)
	if err != nil {
		http.Error(w, err.Error(), codeOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "# Role %s, expires %s. To revoke it: zedkube kubeconfig revoke %s\n%s", issued.Role, issued.Expires.UTC().Format(time.RFC3339), issued.Name, text)
}

// decode reads the one value of a body.
func decode(body io.Reader) (ask Request, lasts time.Duration, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err = d.Decode(&ask); err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err == nil {
		ask, lasts, err = ask.check()
	}
	return ask, lasts, err
}

func (h *Handler) issue(ctx context.Context, ask Request, lasts time.Duration) (types.IssuedKubeconfig, []byte, error) {
	var none types.IssuedKubeconfig
	who, _ := peer.FromContext(ctx)
	ctx = types.AskedFrom(types.Because(types.ActAs(ctx, "kubeconfigs"), "OPERATOR", fmt.Sprintf("role %s for %s: %s", ask.Role, lasts, ask.Reason)), who.Who())
	info, _ := h.Info.Get(types.Global)
	own, found := types.OwnNode(h.Nodes.All(), info)
	status, _ := h.Status.Get(types.Global)
	host := hostOf(own, h.Nodes.All(), status)
	if !found || host == "" {
		return none, nil, errHost
	}
	there, err := h.Kube.Kubeconfigs(ctx)
	there = slices.DeleteFunc(there, func(k types.IssuedKubeconfig) bool { return !k.Expires.After(time.Now()) })
	switch {
	case err != nil:
		return none, nil, err
	case len(there) >= types.MaxKubeconfigs:
		return none, nil, errMany
	}
	return h.Kube.IssueKubeconfig(ctx, types.IssuedKubeconfig{Role: ask.Role, Node: own.Name, From: who.Who(), Reason: ask.Reason}, lasts, host)
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, errMany):
		return http.StatusConflict
	case errors.Is(err, errHost), errors.Is(err, types.ErrNoAPI), errors.Is(err, types.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
