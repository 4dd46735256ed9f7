package kubeapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

func TestStorageIsTheVolumesAndWhatIsAttachedToTheNode(t *testing.T) {
	got, err := longhornAPI().client(t).Storage(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	healthy := time.Date(2026, 5, 3, 6, 0, 0, 0, time.UTC)
	want := types.Storage{
		Longhorn: true, Policy: "block-if-contains-last-replica",
		Attachments: []types.Attachment{{Name: "a1", UID: "uid-a1", Node: "n1", Volume: "pv-a1"}},
		Volumes: []types.Volume{{
			UID: "uid-v", Name: "v", Claim: "eve-kube-app/v-pvc-0", State: "attached", Robustness: "healthy", Wanted: 2, Engine: "n1", Running: true,
			Replicas: []types.Replica{
				{Name: "v-r-1", Node: "n1", Running: true, Mode: "RW", HealthyAt: healthy, State: "running"},
				{Name: "v-r-2", Node: "n2", Running: true, Mode: "RW", HealthyAt: healthy, State: "running"},
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("storage:\n%s", diff)
	}
}

func TestWithoutItsNamespaceOrItsKindsThereIsNoLonghorn(t *testing.T) {
	for name, change := range map[string]func(*storageAPI){
		"no namespace": func(s *storageAPI) { s.lies[pathNamespace] = noSuch },
		"no kinds": func(s *storageAPI) {
			s.lies[pathVolumes], s.objects[pathGroups] = notFound, groups("apps", "storage.k8s.io")
		},
	} {
		s := longhornAPI()
		change(s)
		got, err := s.client(t).Storage(t.Context(), "n1")
		want := types.Storage{Attachments: []types.Attachment{{Name: "a1", UID: "uid-a1", Node: "n1", Volume: "pv-a1"}}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestAMissingDrainPolicyIsUnknown(t *testing.T) {
	s := longhornAPI()
	s.lies[pathPolicy] = noSuch
	got, err := s.client(t).Storage(t.Context(), "n1")
	if err != nil || got.Policy != "" || !got.Longhorn || len(got.Volumes) != 1 {
		t.Errorf("storage is %+v, %v", got, err)
	}
}

// A node whose volumes are not seen would be given free by a drain.
func TestNoLieIsStorage(t *testing.T) {
	says := func(code int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { reply(w, code, body) }
	}
	text := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write([]byte(body))
		}
	}
	meta := metav1.ListMeta{ResourceVersion: "8"}
	lies := map[string]http.HandlerFunc{
		"another kind":         says(200, corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: meta}),
		"a success":            says(200, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}),
		"nothing":              text("application/json", ""),
		"null":                 text("application/json", "null"),
		"an empty object":      text("application/json", "{}"),
		"an array":             text("application/json", "[]"),
		"a page of HTML":       text("text/html", "<html>"),
		"the end of an answer": tearOff,
		"forbidden":            says(403, failure(403, metav1.StatusReasonForbidden)),
		"unauthorized":         says(401, failure(401, metav1.StatusReasonUnauthorized)),
		"a failure":            status500,
		"overload":             says(429, failure(429, metav1.StatusReasonTooManyRequests)),
		"a page not found":     notFound,
		"a nameless object":    nameless,
		"no version":           versionless,
	}
	for _, path := range []string{pathNamespace, pathAttachments, pathVolumes, pathEngines, pathReplicas, pathPolicy} {
		for name, lie := range lies {
			if path == pathPolicy && name == "a page not found" { // unknown, and that is no policy that allows anything
				continue
			}
			s := longhornAPI()
			s.lies[path] = lie
			if got, err := s.client(t).Storage(t.Context(), "n1"); err == nil || !cmp.Equal(got, types.Storage{}) {
				t.Errorf("%s for %s is taken for %+v, %v", name, path, got, err)
			}
		}
	}
	for name, lie := range lies { // for the list of groups, with the kinds gone
		s := longhornAPI()
		s.lies[pathVolumes], s.lies[pathGroups] = notFound, lie
		if got, err := s.client(t).Storage(t.Context(), "n1"); err == nil {
			t.Errorf("%s is taken for a server without Longhorn: %+v", name, got)
		}
	}
}

// nameless answers any path with an object, or a list of one, without a name.
func nameless(w http.ResponseWriter, r *http.Request) {
	kind := kindOf(r.URL.Path)
	if kind == "" {
		kind = "Namespace"
	}
	reply(w, 200, map[string]any{
		"kind": kind, "apiVersion": versionOf(r.URL.Path),
		"metadata": map[string]any{"resourceVersion": "8"}, "items": []any{map[string]any{}},
	})
}

func versionless(w http.ResponseWriter, r *http.Request) {
	reply(w, 200, map[string]any{"kind": kindOf(r.URL.Path), "apiVersion": versionOf(r.URL.Path), "items": []any{}})
}

func TestATruncatedAnswerIsNoStorage(t *testing.T) {
	for _, path := range []string{pathAttachments, pathVolumes, pathEngines, pathReplicas} {
		answer := httptest.NewRecorder()
		longhornAPI().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path+"?limit=500", nil))
		whole := strings.TrimSpace(answer.Body.String())
		for n := 0; n < len(whole); n += 11 {
			s := longhornAPI()
			s.lies[path] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(whole[:n]))
			}
			if got, err := s.client(t).Storage(t.Context(), "n1"); err == nil {
				t.Fatalf("%d of %d bytes of %s are taken for %+v", n, len(whole), path, got)
			}
		}
	}
}

func TestListsThatContradictOneAnotherAreNoStorage(t *testing.T) {
	for name, change := range map[string]func(*storageAPI){
		"an engine reads and writes a replica that is not listed": func(s *storageAPI) { s.lists[pathReplicas] = s.lists[pathReplicas][1:] },
		"an attached volume has no engine":                        func(s *storageAPI) { s.lists[pathEngines] = nil },
		"an attached volume has no replica": func(s *storageAPI) {
			s.lists[pathReplicas], s.lists[pathEngines] = nil, []any{lhEngine("v-e-0", "v", "n1", "running")}
		},
		"a replica has no name": func(s *storageAPI) {
			s.lists[pathVolumes], s.lists[pathEngines] = []any{lhVolume("v", "detached", "")}, nil
			s.lists[pathReplicas] = []any{lhReplica("", "v", "n2", "stopped")}
		},
		"a time is none": func(s *storageAPI) {
			r := lhReplica("v-r-1", "v", "n1", "running")
			r.Spec.FailedAt = "yesterday"
			s.lists[pathReplicas][0] = r
		},
	} {
		s := longhornAPI()
		change(s)
		if got, err := s.client(t).Storage(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "v") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Longhorn's manager clears the modes of the engines that it monitors. One that
// it took over from a lost node keeps them, and its replica there is deleted.
func TestWhatAnEngineKnewBeforeItStoppedDoesNotContradictTheReplicas(t *testing.T) {
	for state, whole := range map[string]bool{
		"": true, "stopped": true, "error": true, "terminated": true,
		"running": false, "unknown": false, "starting": false, "stopping": false,
	} {
		s := longhornAPI()
		s.lists[pathVolumes] = append(s.lists[pathVolumes], lhVolume("w", "detached", ""))
		s.lists[pathEngines] = append(s.lists[pathEngines], lhEngine("w-e-0", "w", "", state, "w-r-1", "RW", "w-r-2", "RW"))
		s.lists[pathReplicas] = append(s.lists[pathReplicas], lhReplica("w-r-2", "w", "n2", "stopped"))
		got, err := s.client(t).Storage(t.Context(), "n1")
		if !whole {
			if err == nil || !strings.Contains(err.Error(), "volume w of Longhorn: its engine uses replica w-r-1, which is not listed") {
				t.Errorf("%q: %+v, %v", state, got, err)
			}
			continue
		}
		if err != nil || len(got.Volumes) != 2 || len(got.Volumes[1].Replicas) != 1 || got.Volumes[1].Replicas[0].Name != "w-r-2" {
			t.Errorf("%q: %+v, %v", state, got, err)
		}
	}
}

func TestAListInPagesIsWholeOrAnError(t *testing.T) {
	s := many(600)
	got, err := s.client(t).Storage(t.Context(), "n1")
	if err != nil || len(got.Volumes) != 600 || len(got.Volumes[599].Replicas) != 3 || s.asked[pathVolumes] != 3 {
		t.Fatalf("%d volumes in %d pages, %v", len(got.Volumes), s.asked[pathVolumes], err)
	}
	list := func(metadata map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			reply(w, 200, map[string]any{"kind": "VolumeList", "apiVersion": "longhorn.io/v1beta2", "metadata": metadata})
		}
	}
	for name, change := range map[string]func(){
		"other versions": func() { s.version = func(page int) string { return fmt.Sprint(page) + "0" } },
		"an early end":   func() { s.lies[pathVolumes] = list(map[string]any{"resourceVersion": "7", "remainingItemCount": 3}) },
		"the same page":  func() { s.lies[pathVolumes] = list(map[string]any{"resourceVersion": "7", "continue": "x"}) },
		"an expired token": func() {
			s.lies[pathVolumes] = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("continue") != "" {
					reply(w, 410, failure(410, metav1.StatusReasonExpired))
					return
				}
				list(map[string]any{"resourceVersion": "7", "continue": "x"})(w, r)
			}
		},
	} {
		s = many(600)
		change()
		if got, err := s.client(t).Storage(t.Context(), "n1"); err == nil {
			t.Errorf("%s: taken for %d volumes", name, len(got.Volumes))
		}
	}
}

// Every look at everything costs these lists, and a drain takes many.
func TestVolumesAreNotAskedForInVain(t *testing.T) {
	s := longhornAPI()
	c := s.client(t)
	for range 3 {
		if got, err := c.Storage(t.Context(), "n1"); err != nil || !got.Longhorn || len(got.Volumes) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if s.asked[pathNamespace] != 1 || s.asked[pathVolumes] != 3 || s.asked[pathReplicas] != 3 {
		t.Errorf("asked %v", s.asked)
	}
	clear(s.asked)
	s.lists[pathVolumes] = nil
	if got, err := c.Storage(t.Context(), "n1"); err != nil || !got.Longhorn || len(got.Volumes) != 0 {
		t.Errorf("without volumes: %+v, %v", got, err)
	}
	if s.asked[pathEngines]+s.asked[pathReplicas]+s.asked[pathPolicy] != 0 {
		t.Errorf("without volumes asked %v", s.asked)
	}
	// Longhorn is taken away.
	delete(s.lists, pathVolumes)
	s.objects[pathGroups] = groups("storage.k8s.io")
	if got, err := c.Storage(t.Context(), "n1"); err != nil || got.Longhorn {
		t.Errorf("without Longhorn: %+v, %v", got, err)
	}
}
