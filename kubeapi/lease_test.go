package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/zedkube/zedkube/types"
)

// leaseAPI is an API server of one Lease, beside what its base serves.
type leaseAPI struct {
	base *fakeAPI

	mu      sync.Mutex
	lease   *coordinationv1.Lease
	written time.Time // when the present holder's last write arrived
	slow    time.Duration
	hung    bool // all of it
	stuck   bool // what concerns the Lease
	version int
}

func (l *leaseAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	hung, slow, stuck := l.hung, l.slow, l.stuck
	l.mu.Unlock()
	switch {
	case hung:
		hang(w, r)
		return
	case !strings.Contains(r.URL.Path, "/leases"):
		l.base.ServeHTTP(w, r)
		return
	case stuck:
		hang(w, r)
		return
	}
	code, body := l.serve(r)
	select {
	case <-time.After(slow):
		reply(w, code, body)
	case <-r.Context().Done():
	}
}

func (l *leaseAPI) serve(r *http.Request) (int, any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method == http.MethodGet {
		if l.lease == nil {
			return 404, failure(404, metav1.StatusReasonNotFound)
		}
		return 200, l.lease
	}
	data, _ := io.ReadAll(r.Body)
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	lease, ok := obj.(*coordinationv1.Lease)
	switch {
	case err != nil || !ok:
		return 400, failure(400, metav1.StatusReasonBadRequest)
	case l.lease != nil && lease.ResourceVersion != l.lease.ResourceVersion:
		return 409, failure(409, metav1.StatusReasonConflict)
	}
	l.write(lease)
	return 200, l.lease
}

// write is called with mu held.
func (l *leaseAPI) write(lease *coordinationv1.Lease) {
	l.version++
	l.lease, l.written = lease.DeepCopy(), time.Now()
	l.lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	l.lease.ResourceVersion = strconv.Itoa(l.version)
}

func (l *leaseAPI) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// word is what a candidate was told last, and when.
type word struct {
	mu     sync.Mutex
	leader string
	leads  bool
	off    time.Time // when it last ceased to lead
	n      int
}

func (h *word) set(leader string, leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leads && !leads {
		h.off = time.Now()
	}
	h.leader, h.leads = leader, leads
	h.n++
}

func (h *word) last() (leader string, leads bool, off time.Time, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader, h.leads, h.off, h.n
}

// leader runs a client whose election is won, lets fault happen, and returns
// what the candidate said last a minute later.
func leader(t *testing.T, fault func(*Client, *leaseAPI)) (api *leaseAPI, said *word, ended error) {
	t.Helper()
	c, _ := newTestClient(t)
	api, said = &leaseAPI{base: someCluster()}, &word{}
	end := startInMemory(t, c, &inMemory{handler: api})
	defer end()
	over := make(chan error, 1)
	go func() { over <- c.Elect(t.Context(), "n1", said.set) }()
	time.Sleep(32 * time.Second)
	if who, leads, _, n := said.last(); who != "n1" || !leads || n > 2 {
		t.Fatalf("after %d words the leader is %q, leads %v", n, who, leads)
	}
	fault(c, api)
	time.Sleep(time.Minute)
	select {
	case ended = <-over:
	default:
		t.Error("the election goes on")
	}
	return api, said, ended
}

func TestALeaderThatCannotRenewStopsBeforeItsLeaseRunsOut(t *testing.T) {
	for name, fault := range map[string]func(*Client, *leaseAPI){
		"hung":            func(_ *Client, a *leaseAPI) { a.set(func() { a.hung = true }) },
		"the lease alone": func(_ *Client, a *leaseAPI) { a.set(func() { a.stuck = true }) },
		"slower and slower": func(_ *Client, a *leaseAPI) {
			a.set(func() { a.slow = 9 * time.Second })
			go func() { time.Sleep(12 * time.Second); a.set(func() { a.stuck = true }) }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, said, err := leader(t, fault)
				_, leads, at, _ := said.last()
				held := at.Sub(api.written)
				t.Logf("said so %v after the last renewal: %v", held, err)
				if leads || held >= leaseDuration {
					t.Errorf("leads %v, said %v after the last renewal", leads, held)
				}
			})
		})
	}
}

func TestANewKubeconfigEndsTheLeadershipAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begin time.Time
		_, said, err := leader(t, func(c *Client, a *leaseAPI) {
			a.set(func() { a.hung = true })
			begin = time.Now()
			c.conn.retire()
		})
		_, leads, at, _ := said.last()
		if leads || at.Sub(begin) > time.Second || !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("leads %v, said after %v: %v", leads, at.Sub(begin), err)
		}
	})
}

func TestALeaseTakenByForceIsLeftAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, said, _ := leader(t, func(_ *Client, a *leaseAPI) {
			a.set(func() {
				other, now, long := "n2", metav1.NowMicro(), int32(25)
				lease := a.lease.DeepCopy()
				lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &other, &now, &long
				a.write(lease)
			})
		})
		if _, leads, at, _ := said.last(); leads || at.Sub(api.written) > retryPeriod {
			t.Errorf("leads %v, said %v later", leads, at.Sub(api.written))
		}
	})
}

func TestASlowServerKeepsItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api, said := &leaseAPI{base: someCluster(), slow: 7 * time.Second}, &word{}
		end := startInMemory(t, c, &inMemory{handler: api})
		defer end()
		over := make(chan struct{})
		go func() { defer close(over); _ = c.Elect(t.Context(), "n1", said.set) }()
		time.Sleep(30 * time.Second)
		_, leads, _, n := said.last()
		time.Sleep(10 * time.Minute)
		if _, still, _, m := said.last(); !leads || !still || m != n {
			t.Errorf("leads %v, then %v, said %d times", leads, still, m-n)
		}
		select {
		case <-over:
			t.Error("the election is over")
		default:
		}
		c.conn.retire()
		<-over
	})
}

func TestAnElectionSaysEachChangeOnceAndEndsWithItsConnection(t *testing.T) {
	kube := fake.NewClientset()
	ctx, retire := context.WithCancel(t.Context())
	c := &Client{Log: quiet(), conn: &connection{ctx: ctx, kube: kube}}
	var said []string
	err := c.Elect(t.Context(), "n1", func(leader string, leads bool) {
		said = append(said, leader)
		if leads {
			retire()
		}
	})
	if !errors.Is(err, types.ErrNoAPI) {
		t.Errorf("error is %v", err)
	}
	if len(said) == 0 || said[len(said)-1] != "" || said[len(said)-2] != "n1" {
		t.Errorf("said %q", said)
	}
	lease, err := kube.CoordinationV1().Leases(Namespace).Get(t.Context(), statsLease, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("lease is %+v, %v", lease, err)
	}
}
