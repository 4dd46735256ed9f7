package edge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
)

// lease is an API server that has one Lease.
type lease struct {
	mu  sync.Mutex
	now *coordinationv1.Lease
}

func (l *lease) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		written := &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(written); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		l.now = written
	}
	if l.now == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		return
	}
	_ = json.NewEncoder(w).Encode(l.now)
}

func TestWhoCannotLeadGivesTheLeaseUp(t *testing.T) {
	l := &lease{}
	server := httptest.NewServer(l)
	defer server.Close()
	c, err := over(access.InJSON(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cannot := errors.New("no client")
	if err := c.Elect(ctx, "kubeedge", "zedkube-edge", "a", func(context.Context) error { return cannot }); !errors.Is(err, cannot) {
		t.Errorf("it ends with %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder := ptr.Deref(l.now.Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("the Lease is held by %q", holder)
	}
}
