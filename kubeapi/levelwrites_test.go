package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const (
	pathLevels    = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/"
	pathOwnDisks  = pathLevels + "nodes/n1"
	pathDrain     = pathLevels + "settings/node-drain-policy"
	pathSnapshots = pathLevels + "recurringjobs/default-eve-kube-app-snapshot"
)

// levelsAPI is an API server of what is kept in Longhorn: it gets, makes, merges
// and deletes, under the conditions that a request names.
type levelsAPI struct {
	mu      sync.Mutex
	objects map[string]jsonObject // by path
	asked   []asked
	before  func(*levelsAPI, *http.Request) // called with mu held
	lie     http.HandlerFunc                // answers instead of what changes something, if set
}

func level(p, kind, uid string, more jsonObject) jsonObject {
	o := jsonObject{"kind": kind, "apiVersion": "longhorn.io/v1beta2", "metadata": jsonObject{
		"name": path.Base(p), "namespace": "longhorn-system", "uid": uid, "resourceVersion": "5",
	}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

func someLevels() *levelsAPI {
	disk := func(reserved int) jsonObject {
		return jsonObject{"path": "/p", "allowScheduling": true, "storageReserved": reserved, "tags": []any{"ssd"}, "newer": "field"}
	}
	return &levelsAPI{objects: map[string]jsonObject{
		pathOwnDisks: level(pathOwnDisks, "Node", "u1", jsonObject{"spec": jsonObject{
			"allowScheduling": true, "disks": jsonObject{"a": disk(0), "b": disk(7), "c": disk(5)},
		}}),
		pathDrain: level(pathDrain, "Setting", "s1", jsonObject{"value": "always-allow"}),
		pathSnapshots: level(pathSnapshots, "RecurringJob", "j1", jsonObject{"spec": jsonObject{
			"name": types.SnapshotJobName, "task": "snapshot", "groups": []any{"default"}, "cron": "0 3 * * *", "retain": 9, "concurrency": 2,
		}}),
	}}
}

func (s *levelsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(orEmpty(r.Body))
	var body jsonObject
	_ = json.Unmarshal(text, &body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		s.asked = append(s.asked, asked{r.Method, r.URL.Path, body})
		if s.lie != nil {
			s.lie(w, r)
			return
		}
	}
	if s.before != nil {
		s.before(s, r)
	}
	if r.Method == http.MethodPost {
		s.create(w, r, body)
		return
	}
	o := s.objects[r.URL.Path]
	if o == nil {
		noSuch(w, r)
		return
	}
	meta := o["metadata"].(jsonObject)
	want, _ := body["metadata"].(jsonObject)
	if r.Method == http.MethodDelete {
		want, _ = body["preconditions"].(jsonObject)
	}
	for _, key := range []string{"uid", "resourceVersion"} {
		if v, ok := want[key]; ok && v != meta[key] {
			reply(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))
			return
		}
	}
	switch r.Method {
	case http.MethodDelete:
		delete(s.objects, r.URL.Path)
		reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
		return
	case http.MethodPatch:
		merge(o, body)
		bump(meta)
	}
	reply(w, http.StatusOK, o)
}

func (s *levelsAPI) create(w http.ResponseWriter, r *http.Request, body jsonObject) {
	meta := body["metadata"].(jsonObject)
	p := r.URL.Path + "/" + meta["name"].(string)
	if s.objects[p] != nil {
		reply(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonAlreadyExists))
		return
	}
	meta["uid"], meta["resourceVersion"] = "new", "1"
	s.objects[p] = body
	reply(w, http.StatusCreated, body)
}

func bump(meta jsonObject) {
	version, _ := strconv.Atoi(meta["resourceVersion"].(string))
	meta["resourceVersion"] = strconv.Itoa(version + 1)
}

func (s *levelsAPI) client(t *testing.T) *Client {
	t.Helper()
	silence := lively(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: s}, silence)
	if err != nil {
		t.Fatal(err)
	}
	return over(conn, types.NoOperations{})
}

// ownNode, policyRow and jobRow are what the tables show of someLevels.
func ownNode() types.LonghornNode { return types.LonghornNode{Name: "n1", UID: "u1"} }

func policyRow() types.LonghornSetting {
	return types.LonghornSetting{Name: types.LonghornDrainPolicy, UID: "s1", Version: "5", Value: "always-allow"}
}

func jobRow() types.SnapshotJob {
	return types.SnapshotJob{Name: types.SnapshotJobName, UID: "j1", Version: "5"}
}

// levelVerbs are all that write one.
func levelVerbs(c *Client) map[string]func(context.Context) error {
	out := map[string]func(context.Context) error{
		"set policy": func(ctx context.Context) error { return c.SetLonghornSetting(ctx, policyRow(), "block-for-eviction") },
	}
	for verb, do := range lookingVerbs(c) {
		out[verb] = func(ctx context.Context) error {
			_, err := do(ctx)
			return err
		}
	}
	return out
}

// lookingVerbs are those that say whether they have changed anything.
func lookingVerbs(c *Client) map[string]func(context.Context) (bool, error) {
	return map[string]func(context.Context) (bool, error){
		"reserve":    func(ctx context.Context) (bool, error) { return c.SetReserved(ctx, ownNode(), 5) },
		"schedule":   func(ctx context.Context) (bool, error) { return c.EnsureSnapshotJob(ctx, "@daily") },
		"delete job": func(ctx context.Context) (bool, error) { return c.DeleteSnapshotJob(ctx, jobRow()) },
	}
}

func TestAWriteToLonghornSaysWhetherThereWasAnythingToChange(t *testing.T) {
	s := someLevels()
	for verb, do := range lookingVerbs(s.client(t)) {
		for _, want := range []bool{true, false} {
			if changed, err := do(t.Context()); err != nil || changed != want {
				t.Errorf("%s: changed %v, %v; want %v", verb, changed, err, want)
			}
		}
		s.objects = someLevels().objects
	}
}

func TestAWriteToLonghornNamesOnlyItsFieldsAndWhatItIsFor(t *testing.T) {
	for verb, want := range map[string]asked{
		"reserve": {http.MethodPatch, pathOwnDisks, jsonObject{
			"metadata": jsonObject{"uid": "u1", "resourceVersion": "5"},
			"spec":     jsonObject{"disks": jsonObject{"a": jsonObject{"storageReserved": 5.0}, "b": jsonObject{"storageReserved": 5.0}}},
		}},
		"set policy": {http.MethodPatch, pathDrain, jsonObject{
			"metadata": jsonObject{"uid": "s1", "resourceVersion": "5"}, "value": "block-for-eviction",
		}},
		"schedule": {http.MethodPatch, pathSnapshots, jsonObject{
			"metadata": jsonObject{"uid": "j1", "resourceVersion": "5"}, "spec": jsonObject{"cron": "@daily"},
		}},
		"delete job": {http.MethodDelete, pathSnapshots, jsonObject{
			"kind": "DeleteOptions", "apiVersion": "longhorn.io/v1beta2", "preconditions": jsonObject{"uid": "j1", "resourceVersion": "5"},
		}},
	} {
		s := someLevels()
		c := s.client(t)
		if err := levelVerbs(c)[verb](t.Context()); err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		if d := cmp.Diff([]asked{want}, s.asked, cmp.AllowUnexported(asked{})); d != "" {
			t.Errorf("%s: %s", verb, d)
		}
		if verb == "delete job" {
			continue
		}
		again := levelVerbs(c)[verb]
		if verb == "set policy" {
			again = func(ctx context.Context) error {
				row := policyRow()
				row.Version = "6"
				return c.SetLonghornSetting(ctx, row, "always-allow")
			}
		}
		if err := again(t.Context()); err != nil || verb != "set policy" && len(s.asked) > 1 {
			t.Errorf("%s again: %v, sent %d", verb, err, len(s.asked))
		}
	}
}

func TestASnapshotJobIsMadeWholeAndMarked(t *testing.T) {
	s := someLevels()
	delete(s.objects, pathSnapshots)
	if _, err := s.client(t).EnsureSnapshotJob(t.Context(), "0 0 * * *"); err != nil {
		t.Fatal(err)
	}
	made := s.objects[pathSnapshots]
	want := jsonObject{
		"name": types.SnapshotJobName, "task": "snapshot", "groups": []any{"default"}, "cron": "0 0 * * *", "retain": 3.0, "concurrency": 1.0,
	}
	if d := cmp.Diff(want, made["spec"]); d != "" {
		t.Error(d)
	}
	if labels, _ := made["metadata"].(jsonObject)["labels"].(jsonObject); labels[storage.SnapshotLabel] != "true" {
		t.Errorf("labels are %v", labels)
	}
}

func TestSomebodyElsesSnapshotJobIsNotScheduled(t *testing.T) {
	for name, spec := range map[string]jsonObject{
		"a backup":              {"task": "backup", "groups": []any{"default"}, "cron": "1 1 * * *"},
		"of a group of its own": {"task": "snapshot", "groups": []any{"mine"}, "cron": "1 1 * * *"},
		"of no group":           {"task": "snapshot", "cron": "1 1 * * *"},
	} {
		s := someLevels()
		s.objects[pathSnapshots]["spec"] = spec
		if _, err := s.client(t).EnsureSnapshotJob(t.Context(), "@daily"); !errors.Is(err, storage.ErrForeignJob) || len(s.asked) > 0 {
			t.Errorf("%s: %v, sent %v", name, err, s.asked)
		}
		s.objects[pathSnapshots]["metadata"].(jsonObject)["labels"] = jsonObject{storage.SnapshotLabel: "true"}
		if _, err := s.client(t).EnsureSnapshotJob(t.Context(), "@daily"); err != nil {
			t.Errorf("%s, once zedkube's: %v", name, err)
		}
	}
}

// Longhorn writes the status of its node every half minute.
func TestAReservationIsRepeatedWhereLonghornWasFaster(t *testing.T) {
	s := someLevels()
	times := 3
	s.before = func(s *levelsAPI, r *http.Request) {
		if r.Method == http.MethodPatch && times > 0 {
			times--
			bump(s.objects[pathOwnDisks]["metadata"].(jsonObject))
			disks := s.objects[pathOwnDisks]["spec"].(jsonObject)["disks"].(jsonObject)
			delete(disks, "b") // it must not come back
		}
	}
	if _, err := s.client(t).SetReserved(t.Context(), ownNode(), 5); err != nil {
		t.Fatal(err)
	}
	disks := s.objects[pathOwnDisks]["spec"].(jsonObject)["disks"].(jsonObject)
	if a := disks["a"].(jsonObject); a["storageReserved"] != 5.0 || a["newer"] != "field" || len(disks) != 2 || len(s.asked) != 4 {
		t.Errorf("disks are %v after %d requests", disks, len(s.asked))
	}
}

func TestWhatIsAnotherObjectByNowIsAConflict(t *testing.T) {
	for what, change := range map[string]func(s *levelsAPI, p string, meta jsonObject){
		"gone": func(s *levelsAPI, p string, _ jsonObject) { delete(s.objects, p) },
		"another one": func(_ *levelsAPI, _ string, meta jsonObject) {
			meta["uid"], meta["resourceVersion"] = "other", "9"
		},
		"being deleted": func(_ *levelsAPI, _ string, meta jsonObject) { meta["deletionTimestamp"] = "2026-01-02T03:04:05Z" },
	} {
		for verb, p := range map[string]string{"reserve": pathOwnDisks, "set policy": pathDrain, "schedule": pathSnapshots, "delete job": pathSnapshots} {
			s := someLevels()
			change(s, p, s.objects[p]["metadata"].(jsonObject))
			err := levelVerbs(s.client(t))[verb](t.Context())
			fine := what == "gone" && (verb == "delete job" || verb == "schedule") ||
				what == "another one" && verb == "schedule" || what == "being deleted" && verb != "schedule"
			switch {
			case fine && err != nil:
				t.Errorf("%s, %s: %v", verb, what, err)
			case !fine && verb == "reserve" && what == "gone":
				if err == nil {
					t.Errorf("%s, %s: no error", verb, what)
				}
			case !fine && !errors.Is(err, types.ErrConflict):
				t.Errorf("%s, %s: %v", verb, what, err)
			}
		}
	}
}

func TestAnAnswerAboutSomethingElseIsNoWriteToLonghorn(t *testing.T) {
	for lie, body := range map[string]jsonObject{
		"of another kind": {"kind": "Status", "apiVersion": "v1", "status": "Success"},
		"empty":           {},
		"of another one":  level(pathLevels+"nodes/n9", "Node", "u9", nil),
		"that kept its value": {
			"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": jsonObject{"name": "n1", "uid": "u1"},
			"spec": jsonObject{"disks": jsonObject{"a": jsonObject{"storageReserved": 9}}},
		},
	} {
		s := someLevels()
		s.lie = func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, body) }
		for verb, do := range levelVerbs(s.client(t)) {
			if verb == "delete job" {
				continue // nothing is read of that answer, and the table tells
			}
			if err := do(t.Context()); err == nil {
				t.Errorf("%s: an answer %s is taken for it", verb, lie)
			}
		}
	}
}

func TestAReadOfSomethingElseIsNotActedUpon(t *testing.T) {
	for lie, body := range map[string]any{
		"empty": jsonObject{}, "nothing": nil, "of another one": level(pathLevels+"nodes/n9", "Node", "u9", nil),
		"without a version": jsonObject{"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": jsonObject{"name": "n1", "uid": "u1"}},
	} {
		c := answersWith(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("%s %s after an answer %s", r.Method, r.URL.Path, lie)
			}
			reply(w, http.StatusOK, body)
		})
		for _, verb := range []string{"reserve", "schedule"} {
			if err := levelVerbs(c)[verb](t.Context()); err == nil {
				t.Errorf("%s: an answer %s is taken for the object", verb, lie)
			}
		}
	}
}

func TestEachWriteToLonghornSaysHowItFailed(t *testing.T) {
	for code, class := range map[int]error{
		http.StatusForbidden: types.ErrRefused, http.StatusUnprocessableEntity: types.ErrRefused, http.StatusBadRequest: types.ErrRefused,
		http.StatusInternalServerError: types.ErrNoAnswer, http.StatusConflict: types.ErrConflict,
	} {
		s := someLevels()
		s.lie = func(w http.ResponseWriter, _ *http.Request) { reply(w, code, failure(code, reasonFor(code))) }
		for verb, do := range levelVerbs(s.client(t)) {
			ctx, cancel := context.WithCancel(t.Context())
			if code == http.StatusConflict && (verb == "reserve" || verb == "schedule") {
				cancel() // they would go on trying
				continue
			}
			if err := do(ctx); !errors.Is(err, class) || !strings.Contains(err.Error(), "Longhorn") && !strings.Contains(err.Error(), "snapshot job") {
				t.Errorf("%d, %s: %v", code, verb, err)
			}
			cancel()
		}
	}
	for verb, do := range levelVerbs(over(nil, types.NoOperations{})) {
		if err := do(t.Context()); !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("%s without a kubeconfig: %v", verb, err)
		}
	}
}

func reasonFor(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusConflict: metav1.StatusReasonConflict,
	}[code]
}

func TestARowWithoutAVersionIsNotWritten(t *testing.T) {
	s := someLevels()
	c := s.client(t)
	err := c.SetLonghornSetting(t.Context(), types.LonghornSetting{Name: types.LonghornDrainPolicy}, "always-allow")
	_, gone := c.DeleteSnapshotJob(t.Context(), types.SnapshotJob{Name: types.SnapshotJobName, UID: "j1"})
	if err == nil || gone == nil || len(s.asked) > 0 {
		t.Errorf("%v, %v, sent %v", err, gone, s.asked)
	}
}
