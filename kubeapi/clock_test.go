package kubeapi

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/types"
)

// yes grants every Lease.
type yes struct {
	typedcoordination.LeaseInterface
}

func (yes) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l = l.DeepCopy()
	l.ResourceVersion = "1"
	return l, nil
}

// A clock that is set does not move a time that carries a monotonic reading.
// There is none in fake time, hence the real one here.
func TestAClockThatIsSetMovesNoEndOfALease(t *testing.T) {
	var seen sightings
	r := &right{leases: leases{yes{}, &seen}, holder: "n1", acquired: time.Now().UTC().Truncate(time.Microsecond)}
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &candidate{bell: make(chan struct{}, 1)}
	if err := p.write(resourcelock.LeaderElectionRecord{}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	seen.told(types.Lease{Name: statsLease, Version: "2", Holder: "n2", Duration: time.Minute})
	stats, _, _ := seen.look(statsLease)
	repair, _, _ := seen.look(repairLease)
	for what, at := range map[string]time.Time{
		"the end of another's Lease":      stats.until(leaseDuration),
		"the end of another's repair":     repair.until(repairDuration),
		"the end of our leadership":       p.leadsUntil(),
		"the end of our right to repair":  r.until,
		"the end by the wall clock alone": time.Now().Round(0),
	} {
		if steady := strings.Contains(at.String(), " m="); steady == (what == "the end by the wall clock alone") {
			t.Errorf("%s is %v", what, at)
		}
	}
}

func TestANodeThatFindsItsNameInTheLeaseLeadsOnlyAfterARenewal(t *testing.T) {
	for name, fault := range map[string]func(*link){
		"no write gets an answer": func(l *link) { l.deaf = true },
		"nothing is written":      func(l *link) { l.late = 20 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				s.put(statsOf("n1", 25, time.Now()))
				n := &contender{name: "n1", word: &word{}}
				n.c, n.link, _ = seat(t, s, fault)
				n.run(t, n.word.set)
				for range 60 {
					time.Sleep(time.Second)
					n.word.is(t, "without a renewal", "", false)
				}
				n.link.set(n.link.heal)
				time.Sleep(30 * time.Second)
				n.word.is(t, "when it is renewed", "n1", true)
			})
		})
	}
}

func TestOfTwoAgentsWithOneNameTheLaterLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first := leader(t)
		time.Sleep(time.Second)
		second := stands(t, s, "n1")
		time.Sleep(time.Second)
		for range 120 {
			synctest.Wait()
			first.word.is(t, "the first", "n1", false)
			second.word.is(t, "the second", "n1", true)
			time.Sleep(time.Second)
		}
		if err := first.stop(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		second.word.is(t, "after the first has stopped", "n1", true)
		second.link.set(func() { second.link.cut = true })
		third := stands(t, s, "n2")
		time.Sleep(time.Minute)
		second.word.is(t, "a minute after it was cut off", "", false)
		third.word.is(t, "another node", "n2", true)
	})
}
