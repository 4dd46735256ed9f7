package clusterobject

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// The paths of docs/wire.md, "Cluster API".
const (
	Path        = "/api/v1alpha1/cluster"
	AuditPath   = "/api/v1alpha1/cluster/audit"
	OpenAPIPath = "/api/v1alpha1/openapi.json"
)

const (
	maxPatch    = 64 << 10        // bytes; the object itself has a few thousand
	bodyTimeout = 5 * time.Second // how long a client may take to send it
)

// openAPI describes the paths; a test generates it from the types.
//
//go:embed openapi.json
var openAPI []byte

// ServeOpenAPI answers with the OpenAPI document.
func ServeOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // who asked may be gone
}

// API answers at Path. Who may ask is the local server's to check. Every field is required.
type API struct {
	Object      pubsub.Reader[types.ClusterObject]
	Membership  pubsub.Reader[types.ClusterMembership]
	RequestFile string // of the ClusterLeaveRequest: a subscription may be behind what was answered last
	Requests    interface {
		// Request makes a request for who sent r, and for nil withdraws it.
		Request(r *http.Request, topic string, value any) error
	}
	Uptime func() time.Duration // since the boot
}

// Failure is the answer to what is not done, in the form of Kubernetes' Status.
type Failure struct {
	APIVersion string `json:"apiVersion"` // v1
	Kind       string `json:"kind"`       // Status
	Status     string `json:"status"`     // Failure
	Reason     string `json:"reason"`     // CamelCase
	Message    string `json:"message"`
	Code       int    `json:"code"`
}

func failure(code int, format string, args ...any) *Failure {
	reason := strings.ReplaceAll(http.StatusText(code), " ", "")
	return &Failure{APIVersion: "v1", Kind: "Status", Status: "Failure", Reason: reason, Message: fmt.Sprintf(format, args...), Code: code}
}

// ServeHTTP implements http.Handler for GET, PATCH and DELETE.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, ok := a.Object.Get(types.Global)
	if !ok {
		answer(w, http.StatusServiceUnavailable, failure(http.StatusServiceUnavailable, "the agent has just started: try again"))
		return
	}
	code, no := http.StatusOK, (*Failure)(nil)
	switch r.Method {
	case http.MethodDelete:
		code = http.StatusAccepted
		no = a.leave(r, true, &object)
	case http.MethodPatch:
		no = a.patch(w, r, &object)
	}
	if no != nil {
		answer(w, no.Code, no)
		return
	}
	answer(w, code, object)
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // who asked may be gone
}

// leave asks for the leave, as zedkube leave does, or withdraws that. It never takes the
// object's word for what is asked for already: that is behind, and the request may be one
// that was refused.
func (a *API) leave(r *http.Request, wanted bool, object *types.ClusterObject) *Failure {
	m, known := a.Membership.Get(types.Global)
	var last types.ClusterLeaveRequest
	content, err := safefile.Read(a.RequestFile, maxPatch) // more than a topic's value has
	if err == nil {
		err = json.Unmarshal(content, &last)
	}
	var request any
	switch {
	case !wanted && err == nil && last.Undo: // it asks for no leave, and may not have taken effect yet
		object.Spec.Leave = false
		return nil
	case !wanted && m.Belongs() && (m.Without != nil || last.WithoutCluster != nil): // as decided at this moment, it outlasts its request
		request = types.ClusterLeaveRequest{RequestedAt: time.Now().UTC(), Undo: true}
	case !wanted && m.State == types.MembershipLeft && last.WithoutCluster != nil:
		return failure(http.StatusConflict, "this node has left its cluster already, without the cluster's help")
	case !wanted:
	case !known:
		return failure(http.StatusServiceUnavailable, "whether this device is a member of a cluster is not known yet: try again")
	case m.State == types.MembershipLeaving:
		return nil
	case !m.Belongs():
		return failure(http.StatusConflict, "this device is not a member of a cluster: there is nothing to leave")
	case m.State == types.MembershipMember:
		return failure(http.StatusConflict, "the controller's configuration is valid and makes this device a member: "+
			"remove the device from the cluster at the controller first")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failure(http.StatusInternalServerError, "read the last request: %v", err)
	case last.Consent != nil || last.WithoutCluster != nil:
		return failure(http.StatusConflict, "zedkube leave has made a request with a consent, which this one would replace: withdraw that first, with zedkube leave --cancel")
	default:
		request = types.ClusterLeaveRequest{RequestedAt: time.Now().UTC(), Context: r.URL.Query().Get("reason")}
	}
	if err := a.Requests.Request(r, "ClusterLeaveRequest", request); err != nil {
		return failure(http.StatusInternalServerError, "%v", err)
	}
	object.Spec.Leave = wanted
	return nil
}

// disable asks that the workloads of the cluster be disabled or enabled, as zedkube workloads
// does.
func (a *API) disable(r *http.Request, wanted bool, object *types.ClusterObject) *Failure {
	request := types.WorkloadsRequest{RequestedAt: time.Now().UTC(), Uptime: a.Uptime(), Disable: wanted, Reason: r.URL.Query().Get("reason")}
	if err := a.Requests.Request(r, "WorkloadsRequest", request); err != nil {
		return failure(http.StatusInternalServerError, "%v", err)
	}
	object.Spec.Disabled = wanted
	return nil
}

// patch applies a JSON merge patch (RFC 7396). Only spec.leave and spec.disableWorkloads may
// change.
func (a *API) patch(w http.ResponseWriter, r *http.Request, object *types.ClusterObject) *Failure {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/merge-patch+json" {
		return failure(http.StatusUnsupportedMediaType, "the Content-Type of a patch is application/merge-patch+json")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // one without deadlines has a bound of its own
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPatch))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return failure(http.StatusRequestEntityTooLarge, "a patch has at most %d bytes", maxPatch)
	}
	var patch, now map[string]any
	if json.Unmarshal(body, &patch) != nil || patch == nil {
		return failure(http.StatusBadRequest, "a patch is one JSON object")
	}
	spec, _ := patch["spec"].(map[string]any)
	wishes := map[string]bool{}
	for _, name := range []string{"leave", "disableWorkloads"} {
		if wanted, given := spec[name]; given {
			is, ok := wanted.(bool)
			if !ok {
				return failure(http.StatusBadRequest, "spec.%s is true or false", name)
			}
			wishes[name] = is
			delete(spec, name)
		}
	}
	raw, _ := json.Marshal(object) // of strings, numbers and times it does not fail
	_ = json.Unmarshal(raw, &now)
	if field := changed("", patch, now); field != "" {
		return failure(http.StatusConflict, "%s cannot be set here: %s", field, ownerOf(field))
	}
	disable, workloads := wishes["disableWorkloads"]
	if workloads && object.Status.Phase == types.ClusterNotInitialized {
		return failure(http.StatusConflict, "spec.disableWorkloads cannot be set yet: there is no Kubernetes here")
	}
	if leave, given := wishes["leave"]; given {
		if no := a.leave(r, leave, object); no != nil {
			return no
		}
	}
	if workloads {
		return a.disable(r, disable, object)
	}
	return nil
}

// changed is the first field that a patch would change, "" for none.
func changed(path string, patch, now any) string {
	fields, ok := patch.(map[string]any)
	was, object := now.(map[string]any)
	if !ok || !object && now != nil {
		if reflect.DeepEqual(patch, now) {
			return ""
		}
		return path
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if field := changed(strings.TrimPrefix(path+"."+name, "."), fields[name], was[name]); field != "" {
			return field
		}
	}
	return ""
}

// ownerOf says who sets a field, and where.
func ownerOf(field string) string {
	const inConfig = "the controller owns it, as the cluster configuration of this device (EdgeNodeClusterConfig)"
	for _, o := range []struct{ prefix, owner string }{
		{"spec.version", "the controller owns it, as the setting k3s.version of each device of the cluster"},
		{"spec.apiServer", "the controller owns it, as option tls-san in the setting k3s.config.override"},
		{"spec.clusterType", "EVE runs k3s alone"},
		{"spec", inConfig},
		{"metadata", inConfig},
		{"status", "it is what the agent observes"},
	} {
		if field == o.prefix || strings.HasPrefix(field, o.prefix+".") {
			return o.owner
		}
	}
	return "the object has no such field, or a constant one"
}
