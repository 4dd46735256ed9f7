package kubeapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
)

// leaseServer is the truth about the Leases, behind the API servers of all nodes.
type leaseServer struct {
	mu       sync.Mutex
	leases   map[string]*coordinationv1.Lease
	written  map[string]time.Time // when the present holder's last write arrived
	version  int
	restored int // how often it was set back
	events   []leaseEvent
	changed  chan struct{}
	onWrite  func(name, holder string) // called with mu held
}

type leaseEvent struct {
	version int
	Type    string                `json:"type"`
	Object  *coordinationv1.Lease `json:"object"`
}

func newLeaseServer() *leaseServer {
	return &leaseServer{leases: map[string]*coordinationv1.Lease{}, written: map[string]time.Time{}, changed: make(chan struct{})}
}

// put makes lease the one of its name.
func (s *leaseServer) put(lease *coordinationv1.Lease) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(lease)
}

// write is called with mu held.
func (s *leaseServer) write(lease *coordinationv1.Lease) *coordinationv1.Lease {
	kind := "MODIFIED"
	if s.leases[lease.Name] == nil {
		kind = "ADDED"
	}
	s.version++
	lease = lease.DeepCopy()
	lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	lease.Namespace, lease.ResourceVersion = access.Namespace, strconv.Itoa(s.version)
	s.leases[lease.Name], s.written[lease.Name] = lease, time.Now()
	s.tell(kind, lease)
	return lease
}

// restore sets a Lease back to what it was before, and what is written next gets the
// version after its. The watches end.
func (s *leaseServer) restore(lease *coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[lease.Name] = lease.DeepCopy()
	s.version, _ = strconv.Atoi(lease.ResourceVersion)
	s.events = slices.DeleteFunc(s.events, func(e leaseEvent) bool { return e.version > s.version })
	s.restored++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *leaseServer) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease := s.leases[name]; lease != nil {
		s.version++
		delete(s.leases, name)
		s.tell("DELETED", lease)
	}
}

// tell is called with mu held.
func (s *leaseServer) tell(kind string, lease *coordinationv1.Lease) {
	object := lease.DeepCopy()
	object.ResourceVersion = strconv.Itoa(s.version)
	s.events = append(s.events, leaseEvent{s.version, kind, object})
	close(s.changed)
	s.changed = make(chan struct{})
	if s.onWrite != nil {
		s.onWrite(lease.Name, s.holderOf(lease.Name))
	}
}

func (s *leaseServer) holderOf(name string) string {
	if lease := s.leases[name]; lease != nil {
		return leases.Holder(lease)
	}
	return ""
}

// get returns the Lease, nil if there is none, and when it was last written.
func (s *leaseServer) get(name string) (*coordinationv1.Lease, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy(), s.written[name]
}

// serve answers all but watches. The clock of who asks is ahead.
func (s *leaseServer) serve(r *http.Request, body []byte, ahead time.Duration) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path.Base(r.URL.Path)
	old := s.leases[name]
	if strings.HasSuffix(r.URL.Path, "/leases") && r.Method == http.MethodGet {
		list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}}
		list.ResourceVersion = strconv.Itoa(max(1, s.version))
		for _, name := range slices.Sorted(maps.Keys(s.leases)) {
			list.Items = append(list.Items, *s.leases[name])
		}
		return 200, list
	}
	if r.Method != http.MethodPost && old == nil {
		return 404, failure(404, metav1.StatusReasonNotFound)
	}
	switch r.Method {
	case http.MethodGet:
		return 200, old
	case http.MethodDelete:
		return s.delete(old, body)
	}
	lease, ok := s.decode(r, old, body)
	switch {
	case !ok:
		return 400, failure(400, metav1.StatusReasonBadRequest)
	case r.Method == http.MethodPost && s.leases[lease.Name] != nil:
		return 409, failure(409, metav1.StatusReasonAlreadyExists)
	case r.Method != http.MethodPost && lease.ResourceVersion != old.ResourceVersion:
		return 409, failure(409, metav1.StatusReasonConflict)
	}
	if lease.Spec.RenewTime != nil {
		lease.Spec.RenewTime.Time = lease.Spec.RenewTime.Add(ahead)
	}
	return 200, s.write(lease)
}

func (s *leaseServer) delete(old *coordinationv1.Lease, body []byte) (int, any) {
	var o metav1.DeleteOptions
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &o); err != nil {
		return 400, failure(400, metav1.StatusReasonBadRequest)
	}
	if p := o.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != old.ResourceVersion {
		return 409, failure(409, metav1.StatusReasonConflict)
	}
	s.version++
	delete(s.leases, old.Name)
	s.tell("DELETED", old)
	return 200, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}
}

func (s *leaseServer) decode(r *http.Request, old *coordinationv1.Lease, body []byte) (*coordinationv1.Lease, bool) {
	if r.Method == http.MethodPatch {
		lease := old.DeepCopy()
		return lease, json.Unmarshal(body, lease) == nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, ok := obj.(*coordinationv1.Lease)
	return lease, err == nil && ok
}
