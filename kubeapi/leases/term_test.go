package leases

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/types"
)

// named is a Lease of which only our own name is asked.
type named struct{ resourcelock.Interface }

func (named) Identity() string { return "n1" }

// A write that was refused does not make a term last longer: an etcd that is set back
// to it brings back what is over.
func TestARefusedWriteDoesNotProlongATerm(t *testing.T) {
	leases := schema.GroupResource{Resource: "leases"}
	for name, row := range map[string]struct {
		err  error
		ours bool
	}{
		"it was made":              {nil, true},
		"nobody knows":             {errors.New("timeout"), true},
		"another one was faster":   {apierrors.NewConflict(leases, StatsLease, errors.New("changed")), false},
		"another one has made one": {apierrors.NewAlreadyExists(leases, StatsLease), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &candidate{Interface: named{}, bell: make(chan struct{}, 1)}
			acquired := time.Now().UTC().Truncate(time.Microsecond)
			write := func(err error) {
				record := resourcelock.LeaderElectionRecord{HolderIdentity: "n1", AcquireTime: metav1.NewTime(acquired)}
				_ = p.write(t.Context(), record, func(context.Context, resourcelock.LeaderElectionRecord) error { return err })
			}
			write(nil)
			time.Sleep(time.Millisecond)
			p.sees(observation{Lease: types.Lease{Name: StatsLease, Holder: "n2"}, since: time.Now()}, false)
			if p.wrote("n1", acquired) {
				t.Fatal("it is ours while another one has it")
			}
			write(row.err)
			if ours := p.wrote("n1", acquired); ours != row.ours {
				t.Errorf("it is ours: %t", ours)
			}
		})
	}
	p := &candidate{Interface: named{}, bell: make(chan struct{}, 1)}
	_ = p.write(t.Context(), resourcelock.LeaderElectionRecord{}, func(context.Context, resourcelock.LeaderElectionRecord) error {
		return apierrors.NewConflict(leases, StatsLease, errors.New("changed"))
	})
	if p.inherits("n1", time.Now()) {
		t.Error("a Lease that was not there at the first write is taken for one that we left behind")
	}
	p = &candidate{Interface: named{}, bell: make(chan struct{}, 1)}
	first := time.Now().UTC().Truncate(time.Microsecond)
	for _, err := range []error{errors.New("timeout"), apierrors.NewAlreadyExists(leases, StatsLease)} {
		_ = p.write(t.Context(), resourcelock.LeaderElectionRecord{AcquireTime: metav1.NewTime(first)}, func(context.Context, resourcelock.LeaderElectionRecord) error { return err })
	}
	if !p.wrote("n1", first) {
		t.Error("the one without answer, which may have been made, is forgotten")
	}
}
