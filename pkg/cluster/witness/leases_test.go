package witness

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// journal counts what is written to disk.
type journal struct {
	pubsub.Table[types.KnownNode]
	writes map[string]int // by name
}

func (j *journal) Publish(name string, k types.KnownNode) error {
	j.writes[name]++
	return j.Table.Publish(name, k)
}

// NodeLeases implements Kube: the kubelets of all Nodes renew every ten seconds,
// by a clock that is an hour ahead.
func (s *stage) NodeLeases(context.Context) (map[string]time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leasesFail != nil {
		return nil, s.leasesFail
	}
	leases := maps.Clone(s.leases)
	for name := range s.nodes.All() {
		if leases == nil {
			leases = map[string]time.Time{}
		}
		leases[name] = time.Now().Truncate(10 * time.Second).Add(time.Hour)
	}
	return leases, nil
}

func (s *stage) leasesMeet(err error, stay map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leasesFail, s.leases = err, stay
}

func TestTheLastRenewalFromBeforeADeletionIsRemembered(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(5*time.Minute + 7*time.Second)
		deleted := time.Now()
		s.deleteNode()
		first, _ := s.known.Get("n3")
		if by := deleted.Add(time.Hour).Sub(first.LeaseRenewed); by < 0 || by > 45*time.Second {
			t.Errorf("the last renewal that is remembered was %s before the deletion", by)
		}
		if seen := deleted.Sub(first.LeaseSeen); seen < 0 || seen > 35*time.Second {
			t.Errorf("it was seen %s before the deletion", seen)
		}
		s.leasesMeet(nil, map[string]time.Time{"n3": time.Now().Add(2 * time.Hour)}) // it outlives its Node, and is renewed
		s.sleep(time.Hour)
		if k, _ := s.known.Get("n3"); k != first {
			t.Errorf("an hour later it is %+v, was %+v", k, first)
		}
		s.stop()
		_ = s.known.Replace(nil)
		s.start()
		s.sleep(time.Minute)
		if k, _ := s.known.Get("n3"); !k.LeaseRenewed.Equal(first.LeaseRenewed) || !k.LeaseSeen.Equal(first.LeaseSeen) || k.UID != "uid-n3" {
			t.Errorf("after a restart it is %+v, was %+v", k, first)
		}
	})
}

func TestRenewalsAreSeldomWrittenToDisk(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(24*time.Hour + time.Minute)
		for _, name := range []string{"n1", "n2", "n3"} {
			if n := s.journal.writes[name]; n < 20 || n > 26 {
				t.Errorf("of %s there were %d writes in a day", name, n)
			}
			if k, _ := s.known.Get(name); time.Since(k.LeaseSeen) > 45*time.Second {
				t.Errorf("in memory the renewal of %s is %s old", name, time.Since(k.LeaseSeen))
			}
		}
		before := s.journal.writes["n3"]
		s.deleteNode()
		s.sleep(time.Hour)
		if n := s.journal.writes["n3"] - before; n != 1 {
			t.Errorf("%d writes after its Node was deleted", n)
		}
		before = s.journal.writes["n2"]
		s.change(2, addressed("10.9.9.9", ""))
		if n := s.journal.writes["n2"] - before; n != 1 {
			t.Errorf("%d writes at a new address", n)
		}
	})
}

func TestLeasesThatCannotBeListedLoseNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		first, _ := s.known.Get("n3")
		s.leasesMeet(errors.New("refused"), nil)
		s.sleep(time.Hour)
		if k, _ := s.known.Get("n3"); k.LeaseRenewed.Before(first.LeaseRenewed) || k.LeaseRenewed.IsZero() || time.Since(k.LeaseSeen) < 50*time.Minute {
			t.Errorf("it is %+v, was %+v", k, first)
		}
		if _, errs := s.logged(); errs != 1 {
			t.Errorf("%d errors in the log of an hour", errs)
		}
		s.leasesMeet(nil, nil)
		s.sleep(2 * time.Minute)
		if k, _ := s.known.Get("n3"); time.Since(k.LeaseSeen) > 45*time.Second {
			t.Errorf("the list comes again and the renewal is %s old", time.Since(k.LeaseSeen))
		}
	})
}

func TestANodeThatIsMadeAnewHasNoOldRenewal(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		old, _ := s.known.Get("n3")
		s.deleteNode()
		s.leasesMeet(errors.New("refused"), nil)
		s.sleep(time.Minute)
		s.change(3, func(n *types.Node) { n.UID = "again" })
		if k, _ := s.known.Get("n3"); k.UID != "again" || k.LeaseRenewed.Equal(old.LeaseRenewed) {
			t.Errorf("it is %+v, was %+v", k, old)
		}
	})
}
