package clusterobject

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// requests note what is requested.
type requests struct {
	made []string
	err  error
	file string // of the request that is there; "" for none
}

func (q *requests) Request(_ *http.Request, topic string, value any) error {
	text := "withdraw " + topic
	if v, ok := value.(types.WorkloadsRequest); ok {
		text = fmt.Sprintf("make %s %v %q", topic, v.Disable, v.Reason)
		if v.RequestedAt.IsZero() || v.Uptime != time.Hour {
			text += " at no time"
		}
	}
	if v, ok := value.(types.ClusterLeaveRequest); ok {
		text = fmt.Sprintf("make %s %q %v", topic, v.Context, v.Consent)
		if v.RequestedAt.IsZero() {
			text += " at no time"
		}
		if v.Undo {
			text = "undo, by " + text
		}
	}
	if topic == "CertsResetRequest" && value != nil {
		text = "make " + topic
	}
	q.made = append(q.made, text)
	return q.err
}

// asked is what an API answers that knows of a node of that membership.
func asked(f facts, q *requests, method, target, body string) *httptest.ResponseRecorder {
	object, membership := &pubsub.Table[types.ClusterObject]{}, &pubsub.Table[types.ClusterMembership]{}
	_ = object.Publish(types.Global, decide(f))
	if f.known {
		_ = membership.Publish(types.Global, f.membership)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/merge-patch+json; charset=utf-8")
	a := &API{Object: object, Membership: membership, Requests: q, Uptime: func() time.Duration { return time.Hour }}
	if q != nil {
		a.RequestFile = q.file
	}
	a.ServeHTTP(w, r)
	return w
}

func doubtful(f *facts) { f.membership.State = types.MembershipDoubtful }

func TestTheObjectIsAnswered(t *testing.T) {
	w := asked(joinedServer(), nil, http.MethodGet, Path, "")
	var o types.ClusterObject
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d, %v", w.Code, err)
	}
	if d := cmp.Diff(decide(joinedServer()), o); d != "" {
		t.Error(d)
	}
	w = httptest.NewRecorder()
	(&API{Object: &pubsub.Table[types.ClusterObject]{}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("before there is one: %d", w.Code)
	}
}

func TestDeleteIsTheRequestOfAnOperatorToLeave(t *testing.T) {
	const made = `make ClusterLeaveRequest "new site" <nil>`
	for name, row := range map[string]struct {
		f    facts
		code int
		says string
		made []string
	}{
		"a doubtful member":  {joinedServer(doubtful), http.StatusAccepted, `"leave":true`, []string{made}},
		"a member":           {joinedServer(), http.StatusConflict, "remove the device from the cluster at the controller first", nil},
		"one that leaves":    {joinedServer(leaving), http.StatusAccepted, `"leave":false`, nil},
		"a single node":      {single(), http.StatusConflict, "there is nothing to leave", nil},
		"one that has left":  {single(func(f *facts) { f.membership.State = types.MembershipLeft }), http.StatusConflict, "nothing to leave", nil},
		"nobody knows which": {single(func(f *facts) { f.known = false }), http.StatusServiceUnavailable, "not known yet", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &requests{}
			w := asked(row.f, q, http.MethodDelete, Path+"?reason=new+site", "")
			if w.Code != row.code || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, row.code, row.says)
			}
			if d := cmp.Diff(row.made, q.made); d != "" {
				t.Error(d)
			}
		})
	}
	if w := asked(joinedServer(doubtful), &requests{err: errors.New("disk full")}, http.MethodDelete, Path, ""); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "disk full") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAPatchChangesOnlyWhatIsTheOperators(t *testing.T) {
	wished := func(f *facts) { f.asked = true }
	off := func(f *facts) { f.workloads.Phase = types.WorkloadsDisabled }
	decided := func(f *facts) { f.membership.Without = &types.WithoutDecision{Cluster: clusterID} }
	const made, withdrawn, undone = `make ClusterLeaveRequest "" <nil>`, "withdraw ClusterLeaveRequest", `undo, by make ClusterLeaveRequest "" <nil>`
	const disabled, enabled = `make WorkloadsRequest true ""`, `make WorkloadsRequest false ""`
	for name, row := range map[string]struct {
		f     facts
		patch string
		code  int
		says  string
		made  []string
	}{
		"nothing":                  {joinedServer(), `{}`, 200, `"kind":"Cluster"`, nil},
		"leave":                    {joinedServer(doubtful), `{"spec":{"leave":true}}`, 200, `"leave":true`, []string{made}},
		"leave, of a member":       {joinedServer(), `{"spec":{"leave":true}}`, 409, "remove the device from the cluster at the controller first", nil},
		"leave, again":             {joinedServer(doubtful, wished), `{"spec":{"leave":true}}`, 200, `"leave":true`, []string{made}},
		"leave, while it leaves":   {joinedServer(leaving), `{"spec":{"leave":true}}`, 200, `"leave":false`, nil},
		"do not leave, not seen":   {joinedServer(doubtful), `{"spec":{"leave":false}}`, 200, `"leave":false`, []string{withdrawn}},
		"do not leave":             {joinedServer(doubtful, wished), `{"spec":{"leave":false}}`, 200, `"leave":false`, []string{withdrawn}},
		"do not leave, of no wish": {joinedServer(), `{"spec":{"leave":false}}`, 200, `"leave":false`, []string{withdrawn}},
		"do not leave, alone":      {joinedServer(leaving, wished, decided), `{"spec":{"leave":false}}`, 200, `"leave":false`, []string{undone}},
		"do not leave, in order":   {joinedServer(leaving, wished), `{"spec":{"leave":false}}`, 200, `"leave":false`, []string{withdrawn}},
		"leave, of no truth":       {joinedServer(doubtful), `{"spec":{"leave":"yes"}}`, 400, "true or false", nil},
		"leave, removed":           {joinedServer(doubtful, wished), `{"spec":{"leave":null}}`, 400, "true or false", nil},
		"disable":                  {joinedServer(), `{"spec":{"disableWorkloads":true}}`, 200, `"disableWorkloads":true`, []string{disabled}},
		"disable, again":           {joinedServer(off), `{"spec":{"disableWorkloads":true}}`, 200, `"disableWorkloads":true`, []string{disabled}},
		"enable":                   {joinedServer(off), `{"spec":{"disableWorkloads":false}}`, 200, `"disableWorkloads":false`, []string{enabled}},
		"enable, not seen":         {joinedServer(), `{"spec":{"disableWorkloads":false}}`, 200, `"disableWorkloads":false`, []string{enabled}},
		"disable, of no truth":     {joinedServer(), `{"spec":{"disableWorkloads":1}}`, 400, "spec.disableWorkloads is true or false", nil},
		"disable, removed":         {joinedServer(off), `{"spec":{"disableWorkloads":null}}`, 400, "true or false", nil},
		"disable, on a new device": {single(func(f *facts) { *f = facts{now: f.now} }), `{"spec":{"leave":false,"disableWorkloads":true}}`, 409, "there is no Kubernetes here", nil},
		"disable and leave":        {joinedServer(doubtful), `{"spec":{"leave":true,"disableWorkloads":true}}`, 200, `"leave":true,"disableWorkloads":true`, []string{made, disabled}},
		"disable, no leave":        {joinedServer(), `{"spec":{"leave":true,"disableWorkloads":true}}`, 409, "remove the device from the cluster", nil},
		"disable and the version":  {joinedServer(), `{"spec":{"disableWorkloads":true,"version":"v1.35.0+k3s1"}}`, 409, "spec.version", nil},
		"what is so already":       {joinedServer(), `{"kind":"Cluster","metadata":{"name":"press-line"},"spec":{"clusterType":"k3s","networking":{"address":"10.90.7.22/24"}}}`, 200, "", nil},
		"the version":              {joinedServer(), `{"spec":{"version":"v1.35.0+k3s1"}}`, 409, "spec.version cannot be set here: the controller owns it, as the setting k3s.version", nil},
		"the version and leave":    {joinedServer(doubtful), `{"spec":{"leave":true,"version":"v1.35.0+k3s1"}}`, 409, "spec.version", nil},
		"the version, removed":     {joinedServer(func(f *facts) { f.k3s.Wanted = "v1.35.0+k3s1" }), `{"spec":{"version":null}}`, 409, "spec.version", nil},
		"names of the API server":  {joinedServer(), `{"spec":{"apiServer":{"certSANs":["a"]}}}`, 409, "spec.apiServer.certSANs cannot be set here: the controller owns it, as option tls-san", nil},
		"the network":              {joinedServer(), `{"spec":{"networking":{"joinServer":"10.0.0.1"}}}`, 409, "spec.networking.joinServer cannot be set here: the controller owns it, as the cluster configuration", nil},
		"another type":             {joinedServer(), `{"spec":{"clusterType":"kubeadm"}}`, 409, "EVE runs k3s alone", nil},
		"the name":                 {joinedServer(), `{"metadata":{"name":"other"}}`, 409, "metadata.name", nil},
		"the phase":                {joinedServer(), `{"status":{"phase":"Provisioned2"}}`, 409, "status.phase cannot be set here: it is what the agent observes", nil},
		"all of the status":        {joinedServer(), `{"status":null}`, 409, "status", nil},
		"all of the spec":          {joinedServer(), `{"spec":[]}`, 409, "spec", nil},
		"no such field":            {joinedServer(), `{"spec":{"replicas":3}}`, 409, "spec.replicas", nil},
		"another kind":             {joinedServer(), `{"kind":"Pod"}`, 409, "no such field, or a constant one", nil},
		"no object":                {joinedServer(), `[]`, 400, "one JSON object", nil},
		"null":                     {joinedServer(), `null`, 400, "one JSON object", nil},
		"no JSON":                  {joinedServer(), `{"spec":`, 400, "one JSON object", nil},
		"nothing at all":           {joinedServer(), ``, 400, "one JSON object", nil},
		"too much":                 {joinedServer(), `{"a":"` + strings.Repeat("x", maxPatch) + `"}`, 413, "at most", nil},
		"deeply nested":            {joinedServer(), strings.Repeat(`{"spec":`, 5000) + "1" + strings.Repeat("}", 5000), 409, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &requests{}
			w := asked(row.f, q, http.MethodPatch, Path, row.patch)
			if w.Code != row.code || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, row.code, row.says)
			}
			if d := cmp.Diff(row.made, q.made); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWhatAnotherCommandAskedForIsNotReplaced is about requests of zedkube leave that say more than this API can.
func TestWhatAnotherCommandAskedForIsNotReplaced(t *testing.T) {
	const made, withdrawn = `make ClusterLeaveRequest "" <nil>`, "withdraw ClusterLeaveRequest"
	const undone = `undo, by make ClusterLeaveRequest "" <nil>` // it may be decided at this moment
	const leave, stay = `{"spec":{"leave":true}}`, `{"spec":{"leave":false}}`
	for name, row := range map[string]struct {
		there string
		patch string
		code  int
		made  []string
	}{
		"a plain one":                      {`{"RequestedAt":"2026-05-03T06:41:17Z"}`, leave, 200, []string{made}},
		"one with a consent":               {`{"RequestedAt":"2026-05-03T06:41:17Z","Consent":{}}`, leave, 409, nil},
		"one with a consent, withdrawn":    {`{"RequestedAt":"2026-05-03T06:41:17Z","Consent":{}}`, stay, 200, []string{withdrawn}},
		"one to leave without the cluster": {`{"RequestedAt":"2026-05-03T06:41:17Z","WithoutCluster":{}}`, leave, 409, nil},
		"that one, withdrawn":              {`{"RequestedAt":"2026-05-03T06:41:17Z","WithoutCluster":{}}`, stay, 200, []string{undone}},
		"one that undoes a leave":          {`{"RequestedAt":"2026-05-03T06:41:17Z","Undo":true}`, stay, 200, nil},
		"one that cannot be read":          {`{"RequestedAt":`, leave, 500, nil},
		"the same, withdrawn":              {`{"RequestedAt":`, stay, 200, []string{withdrawn}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &requests{file: filepath.Join(t.TempDir(), "global.json")}
			if err := os.WriteFile(q.file, []byte(row.there), 0o600); err != nil {
				t.Fatal(err)
			}
			w := asked(joinedServer(doubtful, func(f *facts) { f.asked = true }), q, http.MethodPatch, Path, row.patch)
			if w.Code != row.code || w.Code == 200 && strings.Contains(w.Body.String(), `"leave":true`) != (row.patch == leave) {
				t.Errorf("%d %s, want %d", w.Code, w.Body, row.code)
			}
			if d := cmp.Diff(row.made, q.made); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALeaveWithoutTheClusterThatHasTakenPlaceIsNotCalledWithdrawn(t *testing.T) {
	for there, code := range map[string]int{
		`{"RequestedAt":"2026-05-03T06:41:17Z","WithoutCluster":{}}`: http.StatusConflict,
		`{"RequestedAt":"2026-05-03T06:41:17Z"}`:                     http.StatusOK, // there is nothing it could end
	} {
		q := &requests{file: filepath.Join(t.TempDir(), "global.json")}
		if err := os.WriteFile(q.file, []byte(there), 0o600); err != nil {
			t.Fatal(err)
		}
		w := asked(single(func(f *facts) {
			f.membership = types.ClusterMembership{State: types.MembershipLeft, Without: &types.WithoutDecision{Cluster: clusterID}}
		}), q, http.MethodPatch, Path, `{"spec":{"leave":false}}`)
		if w.Code != code || (len(q.made) == 0) != (code == http.StatusConflict) {
			t.Errorf("%s: %d %s, and %v", there, w.Code, w.Body, q.made)
		}
	}
}

func TestAPatchOfAnotherKindIsRefused(t *testing.T) {
	for _, kind := range []string{"", "application/json", "application/json-patch+json", "text/plain"} {
		object := &pubsub.Table[types.ClusterObject]{}
		_ = object.Publish(types.Global, decide(joinedServer()))
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPatch, Path, strings.NewReader(`{}`))
		r.Header.Set("Content-Type", kind)
		(&API{Object: object, Membership: &pubsub.Table[types.ClusterMembership]{}, Requests: &requests{}}).ServeHTTP(w, r)
		if w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d", kind, w.Code)
		}
	}
}
