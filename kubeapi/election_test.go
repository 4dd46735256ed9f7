package kubeapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
)

// pair is a leader and a follower that has seen it for a while.
func pair(t *testing.T) (s *leaseServer, leads, follows *contender) {
	t.Helper()
	s, leads = leader(t)
	follows = stands(t, s, "n2")
	time.Sleep(17 * time.Second)
	follows.word.is(t, "while it follows", "n1", false)
	return s, leads, follows
}

func TestALeaderThatStopsIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n1, n2 := pair(t)
		begin := time.Now()
		if err := n1.stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		n2.word.is(t, "after a clean stop", "n2", true)
		n1.word.is(t, "who has stopped", "", false)
		lease, _ := s.get(leases.StatsLease)
		t.Logf("after %v, the Lease is %s's", n2.word.on.Sub(begin), leases.Holder(lease))
	})
}

func TestALeaderThatDiesIsFollowedWhenItsLeaseHasRunOut(t *testing.T) {
	for name, blind := range map[string]bool{"watched": false, "without a watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n1 := leader(t)
				n2 := &contender{name: "n2", word: &word{}}
				n2.c, n2.link, _ = seat(t, s, func(l *link) { l.blind = blind })
				n2.run(t, n2.word.set)
				time.Sleep(17 * time.Second)
				n2.word.is(t, "while it follows", "n1", false)
				_, written := s.get(leases.StatsLease)
				n1.link.set(func() { n1.link.cut = true })
				time.Sleep(time.Minute)
				n2.word.is(t, "a minute after its death", "n2", true)
				took := n2.word.on.Sub(written)
				t.Logf("%v after the last renewal", took)
				if took < leases.LeaseDuration || took > leases.LeaseDuration+12*time.Second || !blind && took > leases.LeaseDuration+time.Second {
					t.Errorf("%v after the last renewal", took)
				}
			})
		})
	}
}

func TestALeaderThatIsStartedAnewLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer()
		s.put(statsOf("n1", 25, time.Now()))
		n := stands(t, s, "n1")
		time.Sleep(time.Second)
		n.word.is(t, "after a second", "n1", true)
	})
}

func TestAnIdleElectionIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n1, n2 := pair(t)
		time.Sleep(time.Minute)
		was1, was2, ofLease := n1.link.count(), n2.link.count(), n2.link.asked("GET "+leases.StatsLease)
		time.Sleep(30 * time.Minute)
		leads, follows := float64(n1.link.count()-was1)/30, float64(n2.link.count()-was2)/30
		t.Logf("the leader sends %.1f requests a minute, the follower %.1f", leads, follows)
		if leads > 20 || follows > 15 {
			t.Errorf("the leader sends %.1f requests a minute, the follower %.1f", leads, follows)
		}
		if n := n2.link.asked("GET "+leases.StatsLease) - ofLease; n > 0 {
			t.Errorf("the follower looked %d times at what it watches", n)
		}
	})
}

func TestAHolderIsRespectedForWhatItRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		seconds     *int32
		every       time.Duration // between its renewals
		least, most time.Duration // after the last
	}{
		"EVE's":             {seconds: new(int32(300)), every: 15 * time.Second, least: 300 * time.Second, most: 301 * time.Second},
		"EVE's in trouble":  {seconds: new(int32(300)), every: 290 * time.Second, least: 300 * time.Second, most: 301 * time.Second},
		"ours":              {seconds: new(int32(25)), every: 24 * time.Second, least: 25 * time.Second, most: 26 * time.Second},
		"none":              {every: 20 * time.Second, least: 25 * time.Second, most: 26 * time.Second},
		"nothing":           {seconds: new(int32(0)), every: 20 * time.Second, least: 25 * time.Second, most: 26 * time.Second},
		"less than nothing": {seconds: new(int32(-300)), every: 20 * time.Second, least: 25 * time.Second, most: 26 * time.Second},
		"a moment":          {seconds: new(int32(1)), every: 20 * time.Second, least: 25 * time.Second, most: 26 * time.Second},
		"68 years":          {seconds: new(int32(1<<31 - 1)), every: 9 * time.Minute, least: 10 * time.Minute, most: 601 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				// Its clock jumps by hours, back and forth.
				renew := func(i int) time.Time {
					lease := statsOf("eve", 0, time.Now().Add([]time.Duration{0, 3, -7, 500}[i%4]*time.Hour))
					lease.Spec.LeaseDurationSeconds = test.seconds
					s.put(lease)
					return time.Now()
				}
				last := renew(0)
				n := stands(t, s, "n1")
				for i := range 8 {
					time.Sleep(test.every)
					n.word.is(t, "while it renews", "eve", false)
					last = renew(i)
				}
				time.Sleep(test.most)
				n.word.is(t, "when it has run out", "n1", true)
				if took := n.word.on.Sub(last); took < test.least || took > test.most {
					t.Errorf("taken %v after the last renewal", took)
				}
			})
		})
	}
}

func TestACandidateTriesAtOnceWhenItHearsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := leader(t)
		for range 10 {
			n.link.set(func() { n.link.cut = true })
			time.Sleep(time.Minute)
			n.word.is(t, "in an outage", "", false)
			n.link.set(n.link.heal)
			time.Sleep(5 * time.Second)
			n.word.is(t, "five seconds after it", "n1", true)
		}
	})
}

func TestAFollowerNamesNoLeaderOfWhomItHasHeardNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n1, n2 := pair(t)
		n2.link.set(func() { n2.link.cut = true })
		time.Sleep(20 * time.Second)
		n2.word.is(t, "within its Lease", "n1", false)
		time.Sleep(10 * time.Second)
		n2.word.is(t, "later", "", false)
		n1.word.is(t, "the leader meanwhile", "n1", true)
		n2.link.set(func() { n2.link.cut = false })
		time.Sleep(6 * time.Second)
		n2.word.is(t, "when it hears again", "n1", false)
	})
}

// TestEVEsElectorFollowsOursAndIsFollowed runs client-go's elector by itself, with
// EVE's figures, on the same Lease.
func TestEVEsElectorFollowsOursAndIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n1 := leader(t)
		c, _, _ := seat(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		leads := make(chan time.Time, 1)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: access.Namespace, Name: leases.StatsLease},
				Client:     c.session.Present().Kube.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "eve"},
			},
			LeaseDuration: 300 * time.Second, RenewDeadline: 180 * time.Second, RetryPeriod: 15 * time.Second,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- time.Now() },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() { defer close(over); elector.Run(ctx) }()
		time.Sleep(10 * time.Minute)
		n1.word.is(t, "with EVE as a candidate", "n1", true)
		begin := time.Now()
		if err := n1.stop(); err != nil {
			t.Error(err)
		}
		t.Logf("EVE leads %v after ours has stopped", (<-leads).Sub(begin))
		n2 := stands(t, s, "n2")
		time.Sleep(10 * time.Minute)
		n2.word.is(t, "with EVE as the leader", "eve", false)
		begin = time.Now()
		cancel()
		<-over
		time.Sleep(2 * time.Second)
		n2.word.is(t, "after EVE has stopped", "n2", true)
		t.Logf("ours leads %v after EVE has stopped", n2.word.on.Sub(begin))
	})
}

func TestALeaseThatIsRemovedIsItsHoldersUntilItHasRunOut(t *testing.T) {
	for name, cut := range map[string]bool{"whose holder hears of it": false, "whose holder is cut off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n1, n2 := pair(t)
				if cut {
					n1.link.set(func() { n1.link.cut = true })
				}
				_, written := s.get(leases.StatsLease)
				s.remove(leases.StatsLease)
				for range 50 {
					time.Sleep(100 * time.Millisecond)
					_, one, _ := n1.word.last()
					if _, other, _ := n2.word.last(); one && other {
						t.Fatal("both lead")
					}
				}
				time.Sleep(time.Minute)
				want := map[bool]string{false: "n1", true: "n2"}[cut]
				n2.word.is(t, "a minute later", want, cut)
				if took := n2.word.on.Sub(written); cut && (took < leases.LeaseDuration-5*time.Second || took > leases.LeaseDuration+12*time.Second) {
					t.Errorf("it is followed %v after its last renewal", took)
				}
			})
		})
	}
}

// TestARenewalAfterOneWithoutAnswerIsSeenAsOne: client-go writes twice at one try, if
// the first write has no answer, and dates both by the beginning of the try.
func TestARenewalAfterOneWithoutAnswerIsSeenAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n1, n2 := pair(t)
		n1.link.set(func() { n1.link.deaf = true })
		time.Sleep(6 * time.Second) // a write is on its way
		n1.link.set(n1.link.heal)
		_, before := s.get(leases.StatsLease)
		written := before
		for end := time.Now().Add(time.Minute); !written.After(before); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is not renewed")
			}
			_, written = s.get(leases.StatsLease)
		}
		n1.link.set(func() { n1.link.cut = true })
		time.Sleep(time.Minute)
		n2.word.is(t, "when the Lease has run out", "n2", true)
		if took := n2.word.on.Sub(written); took < leases.LeaseDuration {
			t.Errorf("it is followed %v after its last renewal", took)
		}
		if _, leads, _ := n1.word.last(); leads || !n1.word.off.Before(n2.word.on) {
			t.Errorf("both lead: %v, %s", leads, n1.word.off.Sub(n2.word.on))
		}
	})
}

// TestALeaseThatIsSetBackIsAnothersUntilItHasRunOut: etcd is restored to what it held
// before n1 led, who cannot hear of it.
func TestALeaseThatIsSetBackIsAnothersUntilItHasRunOut(t *testing.T) {
	for name, test := range map[string]struct {
		restarts bool   // n2 is started again while n1 leads
		holder   string // of the Lease of before
	}{
		"to a time of ours":              {holder: "n2"},
		"to a time of an earlier run":    {holder: "n2", restarts: true},
		"to a time when nobody held it":  {},
		"to a time when another held it": {holder: "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				n2 := stands(t, s, "n2")
				time.Sleep(17 * time.Second)
				n2.word.is(t, "at first", "n2", true)
				before, _ := s.get(leases.StatsLease)
				before.Spec.HolderIdentity = &test.holder
				n1 := stands(t, s, "n1")
				n2.link.set(func() { n2.link.cut = true })
				time.Sleep(time.Minute)
				n1.word.is(t, "when it takes over", "n1", true)
				if n2.link.set(n2.link.heal); test.restarts {
					_ = n2.stop()
					n2.run(t, n2.word.set)
				}
				time.Sleep(17 * time.Second)
				n2.word.is(t, "before etcd is set back", "n1", false)
				n1.link.set(func() { n1.link.cut = true })
				n2.link.set(func() { n2.link.blind = true })
				s.restore(before)
				time.Sleep(2 * time.Minute)
				n2.word.is(t, "when the Lease has run out", "n2", true)
				if _, leads, _ := n1.word.last(); leads || !n1.word.off.Before(n2.word.on) {
					t.Errorf("both lead: %v, %s", leads, n1.word.off.Sub(n2.word.on))
				}
			})
		})
	}
}

// TestAHolderThatRenewsInARestoredEtcdIsSeenTo: what it writes there has versions
// that were there before.
func TestAHolderThatRenewsInARestoredEtcdIsSeenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n1, n2 := pair(t)
		before, _ := s.get(leases.StatsLease)
		time.Sleep(2 * time.Minute)
		n2.link.set(func() { n2.link.cut = true }) // while servers restart; all that it hears is by its watch
		s.restore(before)
		time.Sleep(5 * time.Second)
		n2.link.set(n2.link.heal)
		time.Sleep(14 * time.Second) // it does not ask before a Lease has run out that is not renewed
		n2.word.is(t, "when etcd was set back once", "n1", false)
		n1.link.set(func() { n1.link.cut = true })
		nobody := ""
		before.Spec.HolderIdentity = &nobody
		s.restore(before)
		time.Sleep(2 * time.Minute)
		n2.word.is(t, "when the Lease has run out", "n2", true)
		if _, leads, _ := n1.word.last(); leads || !n1.word.off.Before(n2.word.on) {
			t.Errorf("both lead: %v, %s", leads, n1.word.off.Sub(n2.word.on))
		}
	})
}
