package leases

import (
	"context"
	"strings"
	"testing"
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
	var seen Observations
	r := &repairRight{leases: leases{LeaseInterface: yes{}, seen: &seen}, holder: "n1", acquired: time.Now().UTC().Truncate(time.Microsecond)}
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &candidate{bell: make(chan struct{}, 1)}
	if err := p.write(t.Context(), resourcelock.LeaderElectionRecord{}, func(context.Context, resourcelock.LeaderElectionRecord) error { return nil }); err != nil {
		t.Fatal(err)
	}
	seen.reported(types.Lease{Name: StatsLease, Version: "2", Holder: "n2", Duration: time.Minute})
	stats, _, _ := seen.Look(StatsLease)
	repair, _, _ := seen.Look(RepairLease)
	for what, at := range map[string]time.Time{
		"the end of another's Lease":      stats.until(LeaseDuration),
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
