package kubeapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/test/kubetest"
)

const (
	pathNamespace   = "/api/v1/namespaces/longhorn-system"
	pathAttachments = "/apis/storage.k8s.io/v1/volumeattachments"
	pathGroups      = "/apis"
	pathVolumes     = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes"
	pathEngines     = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/engines"
	pathReplicas    = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/replicas"
	pathPolicy      = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/settings/node-drain-policy"
)

// storageAPI is an API server of volumes. It gives lists in pages, as many
// objects as it is asked for.
type storageAPI struct {
	lists   map[string][]any            // by path
	objects map[string]any              // by path
	lies    map[string]http.HandlerFunc // answers instead, by path
	version func(page int) string       // of a list; "7" if nil
	asked   map[string]int
}

// longhornAPI has one volume "v", attached to n1 and healthy on n1 and n2.
func longhornAPI() *storageAPI {
	return &storageAPI{
		lists: map[string][]any{
			pathAttachments: {
				volumeAttachment("a1", "n1", true), volumeAttachment("a2", "n2", true), volumeAttachment("a3", "n1", false),
			},
			pathVolumes:  {lhVolume("v", "attached", "n1")},
			pathEngines:  {lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW", "v-r-2", "RW")},
			pathReplicas: {lhReplica("v-r-1", "v", "n1", "running"), lhReplica("v-r-2", "v", "n2", "running")},
		},
		objects: map[string]any{
			pathNamespace: corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Name: "longhorn-system"},
			},
			pathPolicy: longhornv1.Setting{
				TypeMeta:   metav1.TypeMeta{Kind: "Setting", APIVersion: "longhorn.io/v1beta2"},
				ObjectMeta: metav1.ObjectMeta{Name: "node-drain-policy"}, Value: "block-if-contains-last-replica",
			},
			pathGroups: groups("storage.k8s.io", "longhorn.io"),
		},
		lies:  map[string]http.HandlerFunc{},
		asked: map[string]int{},
	}
}

func (s *storageAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	s.asked[path]++
	if lie := s.lies[path]; lie != nil {
		lie(w, r)
		return
	}
	if o, ok := s.objects[path]; ok {
		reply(w, http.StatusOK, o)
		return
	}
	items, ok := s.lists[path]
	if !ok {
		notFound(w, r)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to := min(len(items), from+limit)
	version := "7"
	if s.version != nil {
		version = s.version(from / limit)
	}
	meta := map[string]any{"resourceVersion": version}
	if to < len(items) {
		meta["continue"], meta["remainingItemCount"] = strconv.Itoa(to), len(items)-to
	}
	reply(w, http.StatusOK, map[string]any{"kind": kindOf(path), "apiVersion": versionOf(path), "metadata": meta, "items": items[from:to]})
}

func kindOf(path string) string {
	return map[string]string{
		pathAttachments: "VolumeAttachmentList", podsPath: "PodList", pathVolumes: "VolumeList", pathEngines: "EngineList", pathReplicas: "ReplicaList",
	}[path]
}

func versionOf(path string) string {
	if parts := strings.Split(path, "/"); parts[1] == "apis" && len(parts) > 3 {
		return parts[2] + "/" + parts[3]
	}
	return "v1"
}

// notFound is what the API server says of a path that it does not know.
func notFound(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// noSuch is what the API server says of an object that it does not have.
func noSuch(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))
}

func (s *storageAPI) client(t *testing.T) *Client {
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

func groups(names ...string) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range names {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
	}
	return list
}

func volumeAttachment(name, node string, attached bool) storagev1.VolumeAttachment {
	pv := "pv-" + name
	return storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: ktypes.UID("uid-" + name)},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: attached},
	}
}

func lhVolume(name, state, node string) *longhornv1.Volume {
	return &longhornv1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: ktypes.UID("uid-" + name)},
		Spec:       longhornv1.VolumeSpec{NumberOfReplicas: 2},
		Status: longhornv1.VolumeStatus{
			State: longhornv1.VolumeState(state), CurrentNodeID: node, Robustness: "healthy",
			KubernetesStatus: longhornv1.KubernetesStatus{Namespace: "eve-kube-app", PVCName: name + "-pvc-0"},
		},
	}
}

// lhEngine takes the modes as pairs of a replica's name and its mode.
func lhEngine(name, volume, node, state string, modes ...string) *longhornv1.Engine {
	e := &longhornv1.Engine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec.VolumeName, e.Spec.NodeID = volume, node
	e.Status.CurrentState = longhornv1.InstanceState(state)
	e.Status.ReplicaModeMap = map[string]longhornv1.ReplicaMode{}
	for pair := range slices.Chunk(modes, 2) {
		e.Status.ReplicaModeMap[pair[0]] = longhornv1.ReplicaMode(pair[1])
	}
	return e
}

func lhReplica(name, volume, node, state string) *longhornv1.Replica {
	r := &longhornv1.Replica{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.VolumeName, r.Spec.NodeID, r.Spec.EngineName = volume, node, volume+"-e-0"
	r.Spec.DesireState, r.Status.CurrentState = longhornv1.InstanceState(state), longhornv1.InstanceState(state)
	r.Spec.HealthyAt = "2026-05-03T06:00:00Z"
	r.Status.IP, r.Status.Port = "10.1.0.1", 10000
	return r
}

// many fills the server with volumes of three replicas each.
func many(n int) *storageAPI {
	s := longhornAPI()
	snapshots := map[string]*longhornv1.SnapshotInfo{}
	for i := range 4 {
		name := fmt.Sprintf("snapshot-%d-%s", i, strings.Repeat("x", 30))
		snapshots[name] = &longhornv1.SnapshotInfo{Name: name, Created: "2026-05-03T06:00:00Z", Size: "1048576", Children: map[string]bool{}, Labels: map[string]string{"RecurringJob": "daily"}}
	}
	var volumes, engines, replicas []any
	for i := range n {
		name := fmt.Sprintf("pvc-%08d-1111-4222-8333-444455556666", i)
		modes := map[string]string{}
		for j := range 3 {
			r := lhReplica(fmt.Sprintf("%s-r-%d", name, j), name, fmt.Sprint("n", j+1), "running")
			modes[r.Name] = "RW"
			replicas = append(replicas, r)
		}
		e := lhEngine(name+"-e-0", name, "n1", "running")
		for r := range maps.Keys(modes) {
			e.Status.ReplicaModeMap[r] = longhornv1.ReplicaModeRW
		}
		e.Status.Snapshots = snapshots
		volumes, engines = append(volumes, lhVolume(name, "attached", "n1")), append(engines, e)
	}
	s.lists[pathVolumes], s.lists[pathEngines], s.lists[pathReplicas] = volumes, engines, replicas
	return s
}
