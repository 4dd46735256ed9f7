package k3supdate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// stuck has n1 change to a staged patch with which one pod does not run again.
func (s *site) stuck() *agent {
	a := s.agents[0]
	s.runsPod(true)
	s.stages()
	s.pass(time.Minute)
	s.wants(patch, false)
	for range 60 {
		if s.pass(5 * time.Second); len(s.order) > 0 {
			break
		}
	}
	s.runsPod(false)
	s.pass(40 * time.Minute)
	if is := a.is(); is.Phase != types.LifecycleStuck || len(s.order) != 1 {
		s.Fatalf("%v changed: %s: %s", s.order, is.Phase, is.Reason)
	}
	return a
}

func (s *site) runsPod(runs bool) {
	p := types.Pod{Namespace: "eve-kube-app", Name: "a", App: "a", NodeName: "n1", Phase: types.PodPending}
	if runs {
		p.Phase = types.PodRunning
	}
	_ = s.pods.Publish(p.Key(), p)
}

func TestAChangeThatIsStuckForAPodReturnsOnlyOnceK3sItselfHasLackedSomethingForMinutes(t *testing.T) {
	unready := func(s *site, is bool) {
		s.cluster.ChangeNode("n1", func(n *types.Node) {
			if n.Ready = types.ConditionTrue; is {
				n.Ready = types.ConditionUnknown
			}
		})
	}
	refuses := func(s *site, does bool) {
		if s.cluster.SetFault(kubetest.None); does {
			s.cluster.SetFault(kubetest.Refused)
		}
	}
	for name, row := range map[string]struct {
		lacks func(s *site, does bool)
		blip  time.Duration
	}{
		"the API server does not answer":  {refuses, 5 * time.Second},
		"no look sees it renew its Lease": {unready, 40 * time.Second},
		"its API server is not ready": {func(s *site, is bool) {
			if s.cluster.FailVerb("ready", nil); is {
				s.cluster.FailVerb("ready", errors.New("poststarthook failed"))
			}
		}, 2 * time.Minute},
		"k3s has just started": {func(s *site, has bool) {
			if has {
				s.agents[0].disk.with(func() { s.agents[0].since = time.Since(s.booted) })
			}
		}, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, "n1 n2 n3", func(s *site) {
				a := s.stuck()
				for range 3 { // each a moment, and well in between
					row.lacks(s, true)
					s.pass(row.blip)
					row.lacks(s, false)
					s.pass(4 * time.Minute)
				}
				if is := a.is(); is.Phase != types.LifecycleStuck || is.Failed.To != "" || len(s.order) != 1 {
					s.Fatalf("%v changed: %s: %s", s.order, is.Phase, is.Reason)
				}
				s.runsPod(true)
				s.pass(2 * time.Minute)
				if n, _ := s.nodes.Get("n1"); n.KubeletVersion != patch || a.is().Phase != types.LifecycleIdle {
					s.Errorf("the pod runs again, and n1 %s: %s: %s", n.KubeletVersion, a.is().Phase, a.is().Reason)
				}
			})
			if name == "k3s has just started" {
				return
			}
			play(t, "n1 n2 n3", func(s *site) {
				a := s.stuck()
				row.lacks(s, true)
				s.pass(4 * time.Minute)
				if is := a.is(); is.Phase != types.LifecycleStuck || len(s.order) != 1 {
					s.Fatalf("after 4 min %v changed: %s: %s", s.order, is.Phase, is.Reason)
				}
				s.pass(4 * time.Minute)
				if is := a.is(); is.Failed.To != patch {
					s.Errorf("after 8 min %v changed: %s: %s", s.order, is.Phase, is.Reason)
				}
				row.lacks(s, false)
				s.pass(10 * time.Minute)
				if n, _ := s.nodes.Get("n1"); n.KubeletVersion != old || len(s.order) != 2 {
					s.Errorf("n1 runs %s: %s: %s", n.KubeletVersion, a.is().Phase, a.is().Reason)
				}
			})
		})
	}
}

func TestAListThatFailsForMinutesIsToldAndThatOfVolumesTakesNothingBack(t *testing.T) {
	for verb, returns := range map[string]bool{"nodes": true, "storage": false} {
		ends, stops := types.LifecycleIdle, 1
		if returns {
			ends, stops = types.LifecycleFailed, 2
		}
		play(t, "n1 n2 n3", func(s *site) {
			a := s.stuck()
			s.cluster.FailVerb(verb, errors.New("etcd failed"))
			s.pass(4 * time.Minute)
			if is := a.is(); strings.Contains(is.Reason, "could not be listed") || len(s.order) != 1 {
				s.Fatalf("%s, after 4 min: %v changed: %s: %s", verb, s.order, is.Phase, is.Reason)
			}
			s.pass(3 * time.Minute)
			is, said := a.is(), ""
			if said = is.Reason; returns {
				said = is.Failed.Why
			}
			if !strings.Contains(said, "the cluster could not be listed for 5m0s: ") || !strings.Contains(said, "etcd failed") || (is.Phase == types.LifecycleStuck) == returns {
				s.Fatalf("%s, after 7 min: %v changed: %+v", verb, s.order, is)
			}
			s.pass(30 * time.Minute)
			if !returns { // nor does one list of the nodes that fails beside them
				s.cluster.FailVerb("nodes", errors.New("etcd failed"))
				s.pass(2 * time.Minute)
				s.cluster.FailVerb("nodes", nil)
			}
			s.cluster.FailVerb(verb, nil)
			s.runsPod(true)
			s.pass(5 * time.Minute)
			if is := a.is(); is.Phase != ends || s.cluster.Lock().Holder == "n1" || strings.Count(strings.Join(s.order, " "), "n1") != stops {
				s.Errorf("%s, at the end: %v changed: %s: %s", verb, s.order, is.Phase, is.Reason)
			}
		})
	}
}

// The other servers were away, so that nobody could be asked.
func TestAListThatFailedBeforeTheAPIServerWasSilentTakesNothingBack(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.stuck()
		s.cluster.FailVerb("nodes", errors.New("etcd failed"))
		s.pass(2 * time.Minute)
		a.disk.with(func() { a.disk.found.Etcd.HasLeader, a.disk.found.Etcd.Members = false, 3 })
		s.pass(time.Minute)
		s.cluster.SetFault(kubetest.Refused)
		s.pass(10 * time.Minute)
		s.cluster.FailVerb("nodes", nil)
		s.cluster.SetFault(kubetest.None)
		s.pass(time.Minute)
		a.disk.with(func() { a.disk.found.Etcd.HasLeader = true })
		s.pass(5 * time.Minute)
		if is := a.is(); is.Phase != types.LifecycleStuck || is.Failed.To != "" || len(s.order) != 1 {
			s.Errorf("%v changed: %s: %s", s.order, is.Phase, is.Reason)
		}
	})
}

func TestTheReasonOfAStuckChangeStaysWhileTheNodesAreLookedAtOnceMore(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.stuck()
		s.pass(2 * time.Minute)
		first := a.is()
		for range 60 {
			if s.pass(5 * time.Second); a.is().Reason != first.Reason || !a.is().Since.Equal(first.Since) {
				s.Fatalf("since %s: %s; and then %s: %s", first.Since, first.Reason, a.is().Since, a.is().Reason)
			}
		}
	})
}

func TestSinceWhenK3sItselfLacksSomething(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		since  func(facts) time.Duration
	}{
		"it is well":                     {func(*facts) {}, never},
		"a pod does not run":             {func(f *facts) { f.pods["eve-kube-app/a"] = false }, never},
		"it was ill before":              {func(f *facts) { f.known = false }, before},
		"it is ill now":                  {func(f *facts) { f.known, f.ill = false, 0 }, now},
		"it was ill, and is looked at":   {func(f *facts) { f.checked = nil }, before},
		"it was well, and is looked at":  {func(f *facts) { f.checked, f.ill = nil, 0 }, never},
		"only its volumes are not known": {func(f *facts) { f.checked, f.unlisted = nil, volumesError{errors.New("list volumes: refused")} }, never},
		"nor were they for minutes": {func(f *facts) {
			f.checked, f.listed, f.unlisted = nil, 2*time.Hour, volumesError{errors.New("list volumes: refused")}
		}, never},
		"nor they, and its kubelet is not well": {func(f *facts) {
			f.checked, f.ill, f.listed, f.unlisted = nil, 0, 2*time.Hour, volumesError{errors.New("list volumes: refused")}
			f.own.Ready = types.ConditionFalse
		}, now},
		"its nodes could be, until a moment ago": {func(f *facts) {
			f.checked, f.ill, f.listed, f.heardAt, f.unlisted = nil, 0, 2*time.Hour, f.uptime-time.Minute, errors.New("no")
		}, never},
		"the nodes cannot be listed": {func(f *facts) { f.checked, f.ill, f.unlisted = nil, 0, errors.New("no") }, func(f facts) time.Duration { return f.journal.Began }},
		"the other servers are away": {func(f *facts) {
			f.known, f.evidence.at, f.found.HasEtcd, f.found.Etcd.Members = false, f.uptime, true, 3
		}, never},
	} {
		f := changing()
		f.journal.Began -= time.Hour
		row.change(&f)
		if a := decide(f); a.ill != row.since(f) {
			t.Errorf("%s: since %s: %s", name, a.ill, a.status.Reason)
		}
	}
}

func never(facts) time.Duration    { return 0 }
func before(f facts) time.Duration { return f.ill }
func now(f facts) time.Duration    { return f.uptime }
