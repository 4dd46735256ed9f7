package kubeapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/types"
)

// word is what a candidate was told last, and when.
type word struct {
	mu     sync.Mutex
	leader string
	leads  bool
	off    time.Time // when it last ceased to lead
	on     time.Time // when it last began to
	n      int
}

func (h *word) set(leader string, leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leads && !leads {
		h.off = time.Now()
	}
	if !h.leads && leads {
		h.on = time.Now()
	}
	h.leader, h.leads = leader, leads
	h.n++
}

func (h *word) last() (leader string, leads bool, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader, h.leads, h.n
}

func (h *word) is(t *testing.T, when, leader string, leads bool) {
	t.Helper()
	if l, is, n := h.last(); l != leader || is != leads {
		t.Errorf("%s: after %d words the leader is %q, leads %v; want %q, %v", when, n, l, is, leader, leads)
	}
}

// contender is a node that takes part in the election.
type contender struct {
	name string
	c    *Client
	link *link
	word *word
	over chan error // how its election ended
	stop func() error
}

// stands lets a node stand for election until the test ends or stop is called.
func stands(t *testing.T, s *leaseServer, name string) *contender {
	t.Helper()
	n := &contender{name: name, word: &word{}}
	n.c, n.link, _ = seat(t, s)
	n.run(t, n.word.set)
	return n
}

func (n *contender) run(t *testing.T, changed func(string, bool)) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- n.c.Elect(ctx, n.name, changed); close(over) }()
	n.over = over
	n.stop = sync.OnceValue(func() error { cancel(); return <-over })
	t.Cleanup(func() { _ = n.stop() })
}

// leader is a node whose election is won.
func leader(t *testing.T) (*leaseServer, *contender) {
	t.Helper()
	s := newLeaseServer()
	n := stands(t, s, "n1")
	time.Sleep(32 * time.Second)
	n.word.is(t, "at first", "n1", true)
	return s, n
}

// statsOf is a Lease as another node writes it.
func statsOf(holder string, seconds int32, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: access.Namespace, Name: leases.StatsLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at,
		},
	}
}

func TestALeaderThatCannotRenewStopsBeforeItsLeaseRunsOut(t *testing.T) {
	for name, fault := range map[string]func(*link){
		"hung":            func(l *link) { l.set(func() { l.cut = true }) },
		"the lease alone": func(l *link) { l.set(func() { l.stuck = true }) },
		"slower and slower": func(l *link) {
			l.set(func() { l.slow = 9 * time.Second })
			go func() { time.Sleep(12 * time.Second); l.set(func() { l.stuck = true }) }()
		},
		"another object in place of it": func(l *link) { l.set(func() { l.lie = statsOf("n1", 25, time.Now()).Spec }) },
		"another Lease in place of it": func(l *link) {
			other := statsOf("n1", 25, time.Now())
			other.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
			other.Name, other.ResourceVersion = "other", "9"
			l.set(func() { l.lie = other })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n := leader(t)
				fault(n.link)
				time.Sleep(time.Minute)
				n.word.is(t, "a minute later", "", false)
				_, written := s.get(leases.StatsLease)
				held := n.word.off.Sub(written)
				t.Logf("said so %v after the last renewal", held)
				if held >= leases.LeaseDuration {
					t.Errorf("said so %v after the last renewal", held)
				}
				n.link.set(n.link.heal)
				time.Sleep(30 * time.Second)
				n.word.is(t, "when it is well again", "n1", true)
			})
		})
	}
}

func TestANewKubeconfigEndsTheLeadershipAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := leader(t)
		n.link.set(func() { n.link.cut = true })
		begin := time.Now()
		n.c.session.Present().Retire()
		synctest.Wait()
		n.word.is(t, "at once", "", false)
		if err := <-n.over; !errors.Is(err, types.ErrNoAPI) || time.Since(begin) > leases.GiveBackWithin {
			t.Errorf("ends after %v: %v", time.Since(begin), err)
		}
	})
}

func TestALeaseTakenAwayIsLeftAtOnce(t *testing.T) {
	for name, take := range map[string]func(*leaseServer){
		"by another": func(s *leaseServer) { s.put(statsOf("n2", 25, time.Now())) },
		"emptied":    func(s *leaseServer) { s.put(statsOf("", 1, time.Now())) },
		"deleted":    func(s *leaseServer) { s.remove(leases.StatsLease) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n := leader(t)
				begin := time.Now()
				take(s)
				synctest.Wait()
				if _, leads, _ := n.word.last(); leads {
					t.Error("it goes on leading")
				}
				if name == "by another" {
					n.word.is(t, "at once", "n2", false)
					begin = begin.Add(leases.LeaseDuration)
				}
				time.Sleep(time.Minute)
				n.word.is(t, "a minute later", "n1", true)
				if took := n.word.on.Sub(begin); took > 6*time.Second {
					t.Errorf("leads again %v after it might", took)
				}
			})
		})
	}
}

func TestASlowServerKeepsItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := stands(t, newLeaseServer(), "n1")
		n.link.set(func() { n.link.slow = 7 * time.Second })
		time.Sleep(30 * time.Second)
		_, leads, words := n.word.last()
		time.Sleep(10 * time.Minute)
		if _, still, more := n.word.last(); !leads || !still || more != words {
			t.Errorf("leads %v, then %v, said %d times", leads, still, more-words)
		}
	})
}

func TestACandidateThatStopsGivesBackWhatMayBeItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		n := stands(t, s, "n1")
		n.link.set(func() { n.link.deaf = true }) // its Lease is made, and it does not know
		time.Sleep(3 * time.Second)
		if lease, _ := s.get(leases.StatsLease); lease == nil || leases.Holder(lease) != "n1" {
			t.Fatalf("the Lease is %+v", lease)
		}
		n.word.is(t, "without an answer", "", false)
		n.link.set(func() { n.link.deaf = false })
		if err := n.stop(); err != nil {
			t.Error(err)
		}
		lease, _ := s.get(leases.StatsLease)
		if leases.Holder(lease) != "" || *lease.Spec.LeaseDurationSeconds != 1 {
			t.Errorf("the Lease is %+v", lease.Spec)
		}
	})
}
