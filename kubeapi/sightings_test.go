package kubeapi

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsSeenOfALeaseNeverGoesBack(t *testing.T) {
	row := func(version, holder string) types.Lease {
		return types.Lease{Name: "l", Version: version, Holder: holder}
	}
	for name, test := range map[string]struct {
		happens func(*sightings)
		want    string // version and holder
	}{
		"the watch lags behind an answer":   {func(s *sightings) { s.answered(row("12", "b"), s.ask()); s.told(row("9", "a")) }, "12 b"},
		"the watch goes on":                 {func(s *sightings) { s.answered(row("9", "a"), s.ask()); s.told(row("12", "b")) }, "12 b"},
		"a long version is newer":           {func(s *sightings) { s.told(row("99", "a")); s.told(row("100", "b")) }, "100 b"},
		"an answer is what is true":         {func(s *sightings) { s.told(row("12", "a")); s.answered(row("9", "b"), s.ask()) }, "9 b"},
		"the watch lags behind a removal":   {func(s *sightings) { s.answered(row("12", "a"), s.ask()); s.gone("l"); s.told(row("12", "a")) }, " "},
		"a Lease made anew":                 {func(s *sightings) { s.answered(row("12", "a"), s.ask()); s.gone("l"); s.told(row("14", "b")) }, "14 b"},
		"a version that cannot be compared": {func(s *sightings) { s.told(row("12", "a")); s.told(row("x", "b")) }, "x b"},
		"the watch tells of a removal":      {func(s *sightings) { s.told(row("12", "a")); s.untold("l") }, " "},
		"... late, after a Lease made anew": {func(s *sightings) {
			s.told(row("12", "a"))
			s.gone("l")
			s.answered(row("14", "b"), s.ask())
			s.untold("l")
			s.told(row("14", "b"))
		}, "14 b"},
		"... of one that it has caught up with": {func(s *sightings) {
			s.answered(row("14", "b"), s.ask())
			s.told(row("12", "a"))
			s.told(row("14", "b"))
			s.untold("l")
		}, " "},
		"removed twice, and never there":        {func(s *sightings) { s.gone("l"); s.told(row("3", "a")); s.gone("l"); s.gone("l") }, " "},
		"the watch was faster than an answer":   {func(s *sightings) { asked := s.ask(); s.told(row("12", "b")); s.answered(row("9", "a"), asked) }, "12 b"},
		"... than an answer that there is none": {func(s *sightings) { asked := s.ask(); s.told(row("12", "b")); s.absent("l", asked) }, "12 b"},
		"an answer that there is none":          {func(s *sightings) { s.told(row("12", "b")); s.absent("l", s.ask()) }, " "},
		"an answer after a removal": {func(s *sightings) {
			s.answered(row("12", "a"), s.ask())
			s.gone("l")
			s.answered(row("11", "b"), s.ask())
		}, "11 b"},
	} {
		s := &sightings{}
		test.happens(s)
		if seen, _, _ := s.look("l"); seen.Version+" "+seen.Holder != test.want {
			t.Errorf("%s: seen is %+v, want %q", name, seen, test.want)
		}
	}
}

func TestOnlyARenewalMakesALeaseYounger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sightings{}
		row := types.Lease{Name: "l", Version: "1", Holder: "a", Renewed: time.Now()}
		s.told(row)
		begin := time.Now()
		_, _, changed := s.look("l")
		time.Sleep(time.Second)
		row.Version = "2" // somebody annotates it
		s.told(row)
		if seen, _, _ := s.look("l"); !seen.since.Equal(begin) || seen.Version != "2" {
			t.Errorf("seen is %+v", seen)
		}
		select {
		case <-changed:
			t.Error("that was no news")
		default:
		}
		row.Version, row.Renewed = "3", row.Renewed.Add(-time.Hour)
		s.told(row)
		if seen, _, _ := s.look("l"); !seen.since.Equal(time.Now()) {
			t.Errorf("after a renewal by a clock that was put back: %+v", seen)
		}
		<-changed
	})
}

func TestTheTableOfLeasesFollowsAndStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		at := time.Now().UTC().Truncate(time.Microsecond)
		s.put(statsOf("n7", 300, at))
		c, l, tb := seat(t, s)
		time.Sleep(time.Second)
		want := types.Lease{Name: statsLease, Holder: "n7", Duration: 300 * time.Second, Acquired: at, Renewed: at, Version: "1"}
		if got, _ := tb.leases.Get(statsLease); got != want {
			t.Errorf("row is %+v, want %+v", got, want)
		}
		s.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
		s.remove(statsLease)
		time.Sleep(time.Second)
		if got := tb.leases.All(); len(got) != 1 || got["bare"] != (types.Lease{Name: "bare", Version: "2"}) {
			t.Errorf("rows are %+v", got)
		}
		l.set(func() { l.blind = true })
		time.Sleep(15 * time.Minute) // its watches end, and are refused from then on
		if s := tb.status(); !s.Synced || !s.Answers() {
			t.Errorf("without Leases the status is %+v", s)
		}
		if _, whole, _ := kept[sightings](c.present()).look(statsLease); whole {
			t.Error("it counts as watched")
		}
	})
}

func TestAnswersAboutSomethingElseAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		s.put(statsOf("n2", 25, time.Now()))
		c, l, _ := seat(t, s)
		conn, done, err := c.use()
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
			_, err := leasesOn(conn).Update(t.Context(), statsOf("n1", 25, time.Now()), metav1.UpdateOptions{})
			if err == nil {
				t.Errorf("%s is taken for the answer to a write", name)
			}
			if name != "a success" && name != "nothing" && !errors.Is(err, errOther) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
			if seen, _, _ := kept[sightings](conn).look(statsLease); seen.Holder != "n2" {
				t.Errorf("%s: then the Lease is %s's", name, seen.Holder)
			}
		}
	})
}
