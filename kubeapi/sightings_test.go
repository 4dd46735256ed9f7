package kubeapi

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/types"
)

func TestTheTableOfLeasesFollowsAndStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		at := time.Now().UTC().Truncate(time.Microsecond)
		s.put(statsOf("n7", 300, at))
		c, l, tb := seat(t, s)
		time.Sleep(time.Second)
		want := types.Lease{Name: leases.StatsLease, Holder: "n7", Duration: 300 * time.Second, Acquired: at, Renewed: at, Version: "1"}
		if got, _ := tb.leases.Get(leases.StatsLease); got != want {
			t.Errorf("row is %+v, want %+v", got, want)
		}
		s.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
		s.remove(leases.StatsLease)
		time.Sleep(time.Second)
		if got := tb.leases.All(); len(got) != 1 || got["bare"] != (types.Lease{Name: "bare", Version: "2"}) {
			t.Errorf("rows are %+v", got)
		}
		l.set(func() { l.blind = true })
		time.Sleep(15 * time.Minute) // its watches end, and are refused from then on
		if s := tb.status(); !s.Synced || !s.Answers() {
			t.Errorf("without Leases the status is %+v", s)
		}
		if _, whole, _ := access.Kept[leases.Observations](c.session.Present()).Look(leases.StatsLease); whole {
			t.Error("it counts as watched")
		}
	})
}

func TestAnswersAboutSomethingElseAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		s.put(statsOf("n2", 25, time.Now()))
		c, l, _ := seat(t, s)
		conn, done, err := c.session.Use()
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		of := func(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
			lease := statsOf("n1", 25, time.Now())
			lease.TypeMeta, lease.ResourceVersion = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}, "5"
			change(lease)
			return lease
		}
		for name, lie := range map[string]any{
			"another name":      of(func(l *coordinationv1.Lease) { l.Name = "x" }),
			"another namespace": of(func(l *coordinationv1.Lease) { l.Namespace = "x" }),
			"no version":        of(func(l *coordinationv1.Lease) { l.ResourceVersion = "" }),
			"another holder":    of(func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = "n3" }),
			"a success":         metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"},
			"nothing":           struct{}{},
		} {
			l.set(func() { l.lie = lie })
			_, err := leases.On(conn).Update(t.Context(), statsOf("n1", 25, time.Now()), metav1.UpdateOptions{})
			if err == nil {
				t.Errorf("%s is taken for the answer to a write", name)
			}
			if name != "a success" && name != "nothing" && !errors.Is(err, access.ErrOther) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
			if seen, _, _ := access.Kept[leases.Observations](conn).Look(leases.StatsLease); seen.Holder != "n2" {
				t.Errorf("%s: then the Lease is %s's", name, seen.Holder)
			}
		}
	})
}
