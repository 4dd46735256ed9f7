package kubeapi

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/test/kubetest"
)

const pathNADs = "/apis/k8s.cni.cncf.io/v1/namespaces/eve-kube-app/network-attachment-definitions"

// nadServer is an API server of attachments, with versions and preconditions.
type nadServer struct {
	mu       sync.Mutex
	objects  map[string]map[string]any
	version  int
	writes   []string // method and name
	selector string   // of the last list
	race     func()   // happens before the next write, once
	lie      http.HandlerFunc
}

// put is how anybody writes there; nil deletes.
func (s *nadServer) put(name string, o map[string]any) map[string]any {
	delete(s.objects, name)
	if o == nil {
		return nil
	}
	s.version++
	meta := o["metadata"].(map[string]any)
	meta["name"], meta["namespace"], meta["resourceVersion"] = name, access.Namespace, strconv.Itoa(s.version)
	o["apiVersion"], o["kind"], meta["uid"] = "k8s.cni.cncf.io/v1", network.NadKind, "uid-"+name
	if s.objects == nil {
		s.objects = map[string]map[string]any{}
	}
	s.objects[name] = o
	return o
}

func (s *nadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lie != nil {
		s.lie(w, r)
		return
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	name := path.Base(r.URL.Path)
	if r.Method != http.MethodGet {
		if s.race != nil {
			s.race()
			s.race = nil
		}
		s.writes = append(s.writes, r.Method+" "+name)
	}
	refuse := func(code int, reason metav1.StatusReason) { reply(w, code, failure(code, reason)) }
	o, there := s.objects[name]
	version := func() any { return o["metadata"].(map[string]any)["resourceVersion"] }
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	switch {
	case r.Method == http.MethodGet && r.URL.Path == pathNADs:
		s.selector = r.URL.Query().Get("labelSelector")
		reply(w, 200, s.list())
	case r.Method == http.MethodPost:
		if name = in["metadata"].(map[string]any)["name"].(string); s.objects[name] != nil {
			refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
		reply(w, 201, s.put(name, in))
	case !there:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		reply(w, 200, o)
	case r.Method == http.MethodPatch && in["metadata"].(map[string]any)["resourceVersion"] != version(),
		r.Method == http.MethodDelete && in["preconditions"].(map[string]any)["resourceVersion"] != version():
		refuse(http.StatusConflict, metav1.StatusReasonConflict)
	case r.Method == http.MethodPatch:
		merge(o, in)
		reply(w, 200, s.put(name, o))
	case r.Method == http.MethodDelete:
		s.put(name, nil)
		reply(w, 200, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	}
}

// list is those with our label.
func (s *nadServer) list() map[string]any {
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		labels, _ := s.objects[name]["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels[network.PassthroughLabel] == "true" {
			items = append(items, s.objects[name])
		}
	}
	return map[string]any{"apiVersion": "k8s.cni.cncf.io/v1", "kind": network.NadKind + "List", "metadata": map[string]any{"resourceVersion": "7"}, "items": items}
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		from, isMap := v.(map[string]any)
		to, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(to, from)
		default:
			into[k] = v
		}
	}
}

func (s *nadServer) client(t *testing.T) *Client {
	t.Helper()
	c, _ := newTestClient(t)
	silence := lively(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: s}, silence)
	if err != nil {
		t.Fatal(err)
	}
	c.session.Swap(conn)
	return c
}

// attachment is one with that configuration; ours if needed is a note.
func attachment(config, needed string) map[string]any {
	meta := map[string]any{"annotations": map[string]any{"somebody": "else's"}}
	if needed != "" {
		meta["labels"] = map[string]any{network.PassthroughLabel: "true"}
		meta["annotations"].(map[string]any)[network.NeededAnnotation] = needed
	}
	return map[string]any{"metadata": meta, "spec": map[string]any{"config": config}}
}

func (s *nadServer) needed(name string) string {
	if s.objects[name] == nil {
		return "-"
	}
	note, _ := s.objects[name]["metadata"].(map[string]any)["annotations"].(map[string]any)[network.NeededAnnotation].(string)
	return note
}
