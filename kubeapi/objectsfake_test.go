package kubeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
)

const (
	pathPod        = "/api/v1/namespaces/eve-kube-app/pods/web-1"
	pathVMI        = "/apis/kubevirt.io/v1/namespaces/eve-kube-app/virtualmachineinstances/web4q8zt"
	pathVMISet     = "/apis/kubevirt.io/v1/namespaces/eve-kube-app/virtualmachineinstancereplicasets/web"
	pathSet        = "/apis/apps/v1/namespaces/eve-kube-app/replicasets/web"
	pathAttachment = "/apis/storage.k8s.io/v1/volumeattachments/a1"
)

// objectsAPI is an API server of single objects: it gets, merges and deletes
// them, and honours preconditions and finalizers.
type objectsAPI struct {
	mu      sync.Mutex
	objects map[string]jsonObject // by path
	asked   []asked
	before  func(r *http.Request, o jsonObject) // called with mu held before an answer
	lie     http.HandlerFunc                    // answers instead, if set
}

// asked is a request that changes something.
type asked struct {
	method, path string
	body         jsonObject
}

func named(p, uid string, more jsonObject) jsonObject {
	meta := jsonObject{"name": path.Base(p), "namespace": access.Namespace, "uid": uid, "resourceVersion": "5"}
	for k, v := range more {
		meta[k] = v
	}
	kinds := map[string]string{pathPod: "Pod", pathVMI: "VirtualMachineInstance", pathVMISet: "VirtualMachineInstanceReplicaSet", pathSet: "ReplicaSet", pathAttachment: "VolumeAttachment"}
	return jsonObject{"kind": kinds[p], "apiVersion": versionOf(p), "metadata": meta}
}

func (s *objectsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(orEmpty(r.Body))
	if o, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil); err == nil { // protobuf
		text, _ = json.Marshal(o)
	}
	var body jsonObject
	_ = json.Unmarshal(text, &body)
	s.mu.Lock()
	if r.Method != http.MethodGet {
		s.asked = append(s.asked, asked{r.Method, r.URL.Path, body})
	}
	lie, o := s.lie, s.objects[r.URL.Path]
	s.mu.Unlock()
	if lie != nil {
		lie(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		s.before(r, o)
	}
	if o == nil {
		noSuch(w, r)
		return
	}
	meta := o["metadata"].(jsonObject)
	switch r.Method {
	case http.MethodGet:
		reply(w, http.StatusOK, o)
	case http.MethodDelete:
		s.remove(w, r.URL.Path, meta, body)
	case http.MethodPatch:
		want, _ := body["metadata"].(jsonObject)
		if v, ok := want["resourceVersion"]; ok && v != meta["resourceVersion"] {
			reply(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))
			return
		}
		merge(o, body)
		version, _ := strconv.Atoi(meta["resourceVersion"].(string))
		meta["resourceVersion"] = strconv.Itoa(version + 1)
		if meta["deletionTimestamp"] != nil && meta["finalizers"] == nil {
			delete(s.objects, r.URL.Path)
		}
		reply(w, http.StatusOK, o)
	}
}

func (s *objectsAPI) remove(w http.ResponseWriter, path string, meta, body jsonObject) {
	want, _ := body["preconditions"].(jsonObject)
	switch {
	case want["uid"] != meta["uid"]:
		reply(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))
		return
	case meta["finalizers"] == nil:
		delete(s.objects, path)
	default:
		meta["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
}

func orEmpty(body io.ReadCloser) io.Reader {
	if body == nil {
		return http.NoBody
	}
	return body
}

func (s *objectsAPI) client(t *testing.T) *Client {
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

func objectsOf(objects map[string]jsonObject) *objectsAPI { return &objectsAPI{objects: objects} }
