package leases

import (
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
		happens func(*Observations)
		want    string // version and holder
	}{
		"the watch lags behind an answer":   {func(s *Observations) { s.answered(row("12", "b"), s.ask()); s.reported(row("9", "a")) }, "12 b"},
		"the watch goes on":                 {func(s *Observations) { s.answered(row("9", "a"), s.ask()); s.reported(row("12", "b")) }, "12 b"},
		"a long version is newer":           {func(s *Observations) { s.reported(row("99", "a")); s.reported(row("100", "b")) }, "100 b"},
		"an answer is what is true":         {func(s *Observations) { s.reported(row("12", "a")); s.answered(row("9", "b"), s.ask()) }, "9 b"},
		"the watch lags behind a removal":   {func(s *Observations) { s.answered(row("12", "a"), s.ask()); s.gone("l"); s.reported(row("12", "a")) }, " "},
		"a Lease made again":                {func(s *Observations) { s.answered(row("12", "a"), s.ask()); s.gone("l"); s.reported(row("14", "b")) }, "14 b"},
		"a version that cannot be compared": {func(s *Observations) { s.reported(row("12", "a")); s.reported(row("x", "b")) }, "x b"},
		"the watch tells of a removal":      {func(s *Observations) { s.reported(row("12", "a")); s.reportedRemoved("l") }, " "},
		"... late, after a Lease made again": {func(s *Observations) {
			s.reported(row("12", "a"))
			s.gone("l")
			s.answered(row("14", "b"), s.ask())
			s.reportedRemoved("l")
			s.reported(row("14", "b"))
		}, "14 b"},
		"... of one that it has caught up with": {func(s *Observations) {
			s.answered(row("14", "b"), s.ask())
			s.reported(row("12", "a"))
			s.reported(row("14", "b"))
			s.reportedRemoved("l")
		}, " "},
		"etcd was restored": {func(s *Observations) { s.reported(row("12", "a")); s.reported(row("9", "b")) }, "9 b"},
		"... and the watch goes on": {func(s *Observations) {
			s.reported(row("12", "a"))
			s.reported(row("9", "b"))
			s.reported(row("10", "c"))
		}, "10 c"},
		"... and an answer was faster": {func(s *Observations) {
			s.reported(row("12", "a"))
			s.answered(row("9", "b"), s.ask())
			s.reported(row("8", "c"))
		}, "9 b"},
		"... after an answer that the watch had not reported": {func(s *Observations) {
			s.reported(row("12", "a"))
			s.answered(row("14", "b"), s.ask())
			s.reported(row("9", "c"))
		}, "9 c"},
		"removed twice, and never there":        {func(s *Observations) { s.gone("l"); s.reported(row("3", "a")); s.gone("l"); s.gone("l") }, " "},
		"the watch was faster than an answer":   {func(s *Observations) { asked := s.ask(); s.reported(row("12", "b")); s.answered(row("9", "a"), asked) }, "12 b"},
		"... than an answer that there is none": {func(s *Observations) { asked := s.ask(); s.reported(row("12", "b")); s.absent("l", asked) }, "12 b"},
		"an answer that there is none":          {func(s *Observations) { s.reported(row("12", "b")); s.absent("l", s.ask()) }, " "},
		"an answer after a removal": {func(s *Observations) {
			s.answered(row("12", "a"), s.ask())
			s.gone("l")
			s.answered(row("11", "b"), s.ask())
		}, "11 b"},
	} {
		s := &Observations{}
		test.happens(s)
		if seen, _, _ := s.Look("l"); seen.Version+" "+seen.Holder != test.want {
			t.Errorf("%s: seen is %+v, want %q", name, seen, test.want)
		}
	}
}

func TestOnlyARenewalMakesALeaseYounger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Observations{}
		row := types.Lease{Name: "l", Version: "1", Holder: "a", Renewed: time.Now()}
		s.reported(row)
		begin := time.Now()
		_, _, changed := s.Look("l")
		time.Sleep(time.Second)
		row.Version = "2" // somebody annotates it
		s.reported(row)
		if seen, _, _ := s.Look("l"); !seen.since.Equal(begin) || seen.Version != "2" {
			t.Errorf("seen is %+v", seen)
		}
		select {
		case <-changed:
			t.Error("that was no news")
		default:
		}
		row.Version, row.Renewed = "3", row.Renewed.Add(-time.Hour)
		s.reported(row)
		if seen, _, _ := s.Look("l"); !seen.since.Equal(time.Now()) {
			t.Errorf("after a renewal by a clock that was put back: %+v", seen)
		}
		<-changed
	})
}

func TestTheRowOfTheDrainLockSaysWhatItIsHeldFor(t *testing.T) {
	for name, row := range map[string]struct{ lease, note, task, boot string }{
		"a restart of k3s":    {DrainLease, `{"bootID":"b1","task":"k3s"}`, "k3s", "b1"},
		"a drain":             {DrainLease, `{"bootID":"b1"}`, "", "b1"},
		"nothing it says":     {DrainLease, "", "", ""},
		"half is no note":     {DrainLease, `{"bootID":"b1","task":"k3s","volumes":{"":1}}`, "", ""},
		"it is another one":   {StatsLease, `{"bootID":"b1","task":"k3s"}`, "", ""},
		"the note is no JSON": {DrainLease, `{"bootID":`, "", ""},
	} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: row.lease, Annotations: map[string]string{LockAnnotation: row.note}}}
		if got := LeaseOf(l); got.Task != row.task || got.BootID != row.boot || got.Name != row.lease {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
