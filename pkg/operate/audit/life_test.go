package audit

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const v1, v2, v3 = "v1.34.4+k3s1", "v1.35.4+k3s1", "v1.34.2+k3s1"

// member makes this device a member that has joined, or not yet.
func (s *stage) member(state types.Membership, joined types.ConditionStatus) {
	id := uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	m := types.ClusterMembership{State: state, Reason: "a reason", Config: &types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: id}}}
	if state == types.MembershipLeft {
		m.Config = nil
	}
	_ = s.membership.Publish(types.Global, m)
	_ = s.object.Publish(types.Global, types.ClusterObject{
		Metadata: types.ClusterMetadata{UID: id.String()},
		Status:   types.ClusterObjectStatus{Conditions: []types.ClusterCondition{{Type: types.ClusterJoined, Status: joined}}},
	})
}

func (s *stage) changes(phase types.KubeLifecyclePhase, from, to, reason string, missing ...string) {
	l := types.KubeLifecycle{Phase: phase, From: from, To: to, Reason: reason, Preconditions: []types.KubeLifecyclePrecondition{{Name: "NotHeld", Holds: true}}}
	if phase != types.LifecycleWaits {
		l.Preconditions = nil
	}
	for _, name := range missing {
		l.Preconditions = append(l.Preconditions, types.KubeLifecyclePrecondition{Name: name, Reason: name + " is why."})
	}
	if phase == types.LifecycleFailed {
		l.Failed = types.K3sFailure{To: to, Why: reason}
	}
	_ = s.lifecycle.Publish(types.Global, l)
}

func (s *stage) version3s(running, wanted string) {
	_ = s.version.Publish(types.Global, types.K3sVersionStatus{Running: running, Wanted: wanted})
}

func (s *stage) updates(status types.KubeCompUpdateStatus) {
	_ = s.parts.Publish(types.Global, types.KubeClusterUpdateStatus{
		Component: types.KubeCompKubevirt, Status: status, DestinationKubeUpdateVersion: 5, ErrorDescription: types.ErrorDescription{Error: "no image"},
	})
}

// TestTheWholeLifeOfAClusterIsOnRecordOnce walks through a life. After each station the
// component steps twice, and once more as a new process.
func TestTheWholeLifeOfAClusterIsOnRecordOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		waits := types.LifecycleWaits
		for _, station := range []func(){
			func() { s.version3s(v3, "") },
			func() { s.member(types.MembershipMember, types.ConditionFalse) },
			func() { s.member(types.MembershipMember, types.ConditionTrue) },
			func() { s.member(types.MembershipMember, types.ConditionFalse) }, // no other join
			func() { s.member(types.MembershipDoubtful, types.ConditionTrue) },
			func() { s.updates(types.KubeCompUpdateDownload) },
			func() { s.updates(types.KubeCompUpdateInProgress) },
			func() { s.updates(types.KubeCompUpdateFailed) },
			func() { s.updates(types.KubeCompUpdateCompleted) },
			func() {
				s.version3s(v3, "latest")
				s.changes(types.LifecycleRefused, v3, "latest", "it is not a version")
			},
			func() { s.version3s(v3, v1); s.changes(waits, v3, v1, "", "Turn", "NodesReady") },
			func() { s.changes(waits, v3, v1, "", "Turn") },
			func() { s.changes(waits, v3, v1, "") },
			func() { s.changes(types.LifecycleChanges, v3, v1, "k3s changes") },
			func() { s.changes(types.LifecycleChanges, v3, v1, "k3s changes: the kubelet is old") },
			func() { s.changes(types.LifecycleReturns, v3, v1, "k3s returns") },
			func() { s.changes(types.LifecycleFailed, v3, v1, "it did not run") },
			func() { s.changes(types.LifecycleChanges, v3, v1, "k3s changes, released by an operator") },
			func() { s.changes(types.LifecycleStuck, v3, v1, "an operator must investigate") },
			func() { s.version3s(v1, v1); s.changes(types.LifecycleIdle, "", "", "") },
			func() { s.version3s(v1, v2); s.changes(types.LifecycleChanges, v1, v2, "k3s changes") },
			func() { s.version3s(v2, v2); s.changes(types.LifecycleIdle, "", "", "") },
			func() { s.version3s(v2, "") },
			func() { _ = s.lifecycle.Unpublish(types.Global) },
			func() { s.member(types.MembershipLeaving, types.ConditionTrue) },
			func() { s.member(types.MembershipLeft, types.ConditionUnknown) },
			func() { _ = s.membership.Unpublish(types.Global); _ = s.parts.Unpublish(types.Global) },
		} {
			time.Sleep(2 * time.Minute)
			station()
			for range 2 {
				_ = s.Step(t.Context())
			}
			s.stands = nil // as after a restart
			_ = s.Step(t.Context())
		}
		cluster := "cluster/5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11"
		if diff := cmp.Diff([]string{
			"begin join " + cluster + " ok",
			"join cluster " + cluster + " ok",
			"begin component update component/kubevirt ok",
			"update component component/kubevirt failed",
			"update component component/kubevirt ok",
			"want k3s version version/latest ok",
			"refuse k3s version version/latest refused",
			"want k3s version version/" + v1 + " ok",
			"check k3s change version/" + v1 + " refused",
			"check k3s change version/" + v1 + " refused",
			"check k3s change version/" + v1 + " ok",
			"begin k3s change version/" + v1 + " ok",
			"return k3s version version/" + v3 + " ok",
			"change k3s version version/" + v1 + " failed",
			"begin k3s change version/" + v1 + " ok",
			"change k3s version version/" + v1 + " unanswered",
			"change k3s version version/" + v1 + " ok",
			"want k3s version version/" + v2 + " ok",
			"begin k3s change version/" + v2 + " ok",
			"change k3s version version/" + v2 + " ok",
			"want k3s version version/ ok",
			"begin leave " + cluster + " ok",
			"leave cluster " + cluster + " ok",
		}, lines(s.reads())); diff != "" {
			t.Error(diff)
		}
		all := s.reads()
		for i, want := range map[int]string{
			3: "to KubeVersion 5 no image", 8: "missing: Turn, NodesReady Turn is why. NodesReady is why.", 9: "missing: Turn Turn is why.", 13: "it did not run it did not run",
		} {
			if got := all[i].Why + " " + all[i].Error; got != want {
				t.Errorf("line %d says %q, want %q", i, got, want)
			}
		}
	})
}

// restarts says how far a restart for certificates is.
func (s *stage) restarts(phase types.KubeLifecyclePhase, wish types.K3sRestartWish, reason, failed string, missing ...string) {
	l := types.KubeLifecycle{Phase: phase, Reason: "The setting k3s.version is empty.", Restart: types.K3sRestartStatus{Wish: wish, Reason: reason, Failed: failed}}
	if phase != types.LifecycleIdle || wish == "" && reason != "" {
		l.From, l.To, l.Kind, l.Reason = v3, v3, types.K3sRestart, reason
	} else if wish != "" {
		l.Restart.Preconditions = []types.KubeLifecyclePrecondition{{Name: "NotHeld", Holds: true}}
	}
	for _, name := range missing {
		l.Restart.Preconditions = append(l.Restart.Preconditions, types.KubeLifecyclePrecondition{Name: name, Reason: name + " is why."})
	}
	_ = s.lifecycle.Publish(types.Global, l)
}

func TestRestartsForCertificatesAreOnRecordAsSuch(t *testing.T) {
	const kept = "k3s was restarted and did not renew its certificates: certificate a is the one of before."
	idle, runs, stuck := types.LifecycleIdle, types.LifecycleChanges, types.LifecycleStuck
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.version3s(v3, "")
		for _, station := range []func(){
			func() {
				_ = s.info.Unpublish(types.Global)
				s.restarts(idle, types.RestartDue, "it waits", "", "Clock")
			},
			func() { _ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N1"}) },
			func() { s.restarts(idle, types.RestartDue, "The drain lock is taken.", "") },
			func() { s.restarts(runs, types.RestartDue, "k3s is restarted, to renew 9 certificates.", "") },
			func() { s.restarts(runs, types.RestartDue, "k3s restarts: it is not Ready.", "") },
			func() { s.restarts(idle, "", "k3s was restarted for its certificates.", "") },
			func() { s.restarts(idle, "", "", "") },
			func() { s.restarts(runs, types.RestartAsked, "k3s is restarted, to renew 2 certificates.", "") },
			func() { s.restarts(stuck, types.RestartAsked, "An operator must investigate.", "") },
			func() { s.restarts(idle, "", "", kept) }, // the agent did not run when it ended
			func() { s.restarts(idle, types.RestartUrgent, "it waits", kept, "NotAgain") },
		} {
			time.Sleep(2 * time.Minute)
			station()
			for range 2 {
				_ = s.Step(t.Context())
			}
			s.stands = nil // as after a restart
			_ = s.Step(t.Context())
		}
		all := s.reads()
		if diff := cmp.Diff([]string{
			"check restart for certificates node/n1 refused",
			"check restart for certificates node/n1 ok",
			"begin restart for certificates node/n1 ok",
			"restart k3s for certificates node/n1 ok",
			"begin restart for certificates node/n1 ok",
			"restart k3s for certificates node/n1 unanswered",
			"restart k3s for certificates node/n1 failed",
			"check restart for certificates node/n1 refused",
		}, lines(all)); diff != "" {
			t.Fatal(diff)
		}
		for i, want := range []string{
			"k3supdate: missing: Clock Clock is why.",
			"k3supdate: all preconditions hold ",
			"k3supdate: Due: k3s is restarted, to renew 9 certificates. ",
			"k3supdate: k3s was restarted for its certificates. ",
			"OPERATOR: Asked: k3s is restarted, to renew 2 certificates. ",
			"OPERATOR: An operator must investigate. ",
			"OPERATOR:  " + kept,
			"k3supdate: missing: NotAgain NotAgain is why.",
		} {
			if got := all[i].By + ": " + all[i].Why + " " + all[i].Error; got != want {
				t.Errorf("line %d says %q, want %q", i, got, want)
			}
		}
	})
}

func TestAPreconditionThatComesAndGoesDoesNotFillTheTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		from := time.Now()
		for i := 0; time.Since(from) < 48*time.Hour; i++ {
			s.changes(types.LifecycleWaits, v3, v1, "", []string{"NodesReady", "Volumes"}[i%2])
			_ = s.Step(t.Context())
			if i%600 == 599 {
				s.stands = nil // as after a restart
			}
			time.Sleep(7 * time.Second)
		}
		if n := len(s.reads()); n < 48 || n > 350 {
			t.Errorf("%d lines of a precondition that comes and goes for two days", n)
		}
		s.changes(types.LifecycleWaits, v3, v2, "", "NodesReady")
		_ = s.Step(t.Context())
		all := s.reads()
		if last := all[len(all)-1]; last.Target != "version/"+v2 {
			t.Errorf("another change waits for its line: the last one is %+v", last)
		}
	})
}

// The last state is on record, however short the time since the line before.
func TestAPreconditionThatChangedIsOnRecordWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.changes(types.LifecycleWaits, v3, v1, "", "NodesReady")
		ctx, end := context.WithCancel(t.Context())
		go s.Component.Run(ctx)
		time.Sleep(10 * time.Second)
		s.changes(types.LifecycleWaits, v3, v1, "")
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string{"check k3s change version/" + v1 + " refused", "check k3s change version/" + v1 + " ok"}, lines(s.reads())); diff != "" {
			t.Error(diff)
		}
		end()
		synctest.Wait()
	})
}

// While the lines of a restart come rarely, those of a change do not.
func TestPreconditionsOfAChangeDoNotWaitForThoseOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		both := func(change, restart string) {
			s.restarts(types.LifecycleIdle, types.RestartDue, "it waits", "", restart)
			if l, _ := s.lifecycle.Get(types.Global); change != "" {
				l.To, l.Preconditions = v1, []types.KubeLifecyclePrecondition{{Name: change}}
				_ = s.lifecycle.Publish(types.Global, l)
			}
		}
		ctx, end := context.WithCancel(t.Context())
		go s.Component.Run(ctx)
		for i := range 200 {
			both("", []string{"Clock", "Turn"}[i%2])
			time.Sleep(time.Minute)
		}
		both("NodesReady", "Turn")
		time.Sleep(10 * time.Second)
		both("Lock", "Lock")
		time.Sleep(2 * time.Minute)
		all := s.reads()
		if !slices.ContainsFunc(all, func(o types.Operation) bool { return o.Op == checkChange && o.Why == "missing: Lock" }) {
			t.Errorf("%q", lines(all))
		}
		end()
		synctest.Wait()
	})
}

func TestALongWantedVersionIsOnRecordOnce(t *testing.T) {
	s := newStage(t)
	for range 3 {
		s.version3s(v3, string(make([]byte, 5000)))
		_ = s.Step(t.Context())
		s.stands = nil
	}
	if all := s.reads(); len(all) != 1 {
		t.Errorf("%d lines", len(all))
	}
}
