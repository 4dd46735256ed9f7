package apps

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// replace has everything of the machine on n3, Ready, after a failover from n2,
// which is lost and fenced.
func (s *scene) replace(change ...func(*types.Pod)) {
	s.lose()
	s.node("n2", func(n *types.Node) { n.OutOfService, n.Fence = true, &types.Fence{By: "n1"} })
	s.pods = []types.Pod{launcher(name+"fghij", append(change, on("n3"))...)}
	s.vmis[0].Name, s.vmis[0].NodeName, s.vmis[0].Phase = name+"fghij", "n3", types.VMIScheduling
	s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"}
}

func TestAReplacementThatIsStuckIsMadeAnewWhileTheNodeStaysLost(t *testing.T) {
	rows := map[string]struct {
		change func(*scene)
		after  time.Duration
		act    types.RepairAct
		acts   bool
		phase  types.RepairPhase
	}{
		"it fails":                  {func(s *scene) { s.replace(broken("CrashLoopBackOff")) }, time.Hour, types.ActUnstick, true, types.RepairWaits},
		"it has only begun to fail": {func(s *scene) { s.replace(broken("CrashLoopBackOff")) }, 0, types.ActFailover, true, types.RepairWaits},
		"it fails, and it is not proved that the node is gone": {func(s *scene) {
			s.replace(broken("CrashLoopBackOff"))
			s.nodes["n1"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
		}, time.Hour, types.ActUnstick, true, types.RepairWaits},
		"it only starts slowly": {func(s *scene) { s.replace(pending) }, stuckFor, types.ActFailover, true, types.RepairWaits},
		"it was tried often enough": {func(s *scene) {
			s.replace(broken("CrashLoopBackOff"))
			s.set.Note.Stuck = mostStuck
		}, time.Hour, types.ActFailover, true, types.RepairGaveUp}, // an attachment may be left
		"it was tried often enough, and it is not proved that the node is gone": {func(s *scene) {
			s.replace(broken("CrashLoopBackOff"))
			s.set.Note.Stuck = mostStuck
			s.nodes["n1"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
		}, time.Hour, types.ActFailover, false, types.RepairGaveUp},
		"its volumes are not mounted here": {func(s *scene) {
			s.replace(pending)
			s.pods[0].NodeName, s.pods[0].Claims = "n1", []string{"data"}
			s.mounts = types.MountRecovery{Pods: []string{s.pods[0].Key()}, Phase: types.RepairRefused, Reason: "k3s is not restarted."}
		}, stuckFor, types.ActFailover, true, types.RepairRefused},
		"somebody takes it from that node by hand": {func(s *scene) {
			s.replace(broken("CrashLoopBackOff"))
			s.ask(false)
		}, time.Hour, types.ActFailover, true, types.RepairWaits},
		"something of it is left there": {func(s *scene) {
			s.replace(broken("CrashLoopBackOff"))
			s.pods = append(s.pods, launcher(name+"abcde", on("n2"), dying))
		}, time.Hour, types.ActFailover, true, types.RepairWaits},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			r.change(s)
			for range 2 { // the time of the first act may hide that of the second
				s.after(r.after)
			}
			s.since["lost/set/n2"], s.since["proved/set/n2"] = up-time.Hour, up-time.Hour
			if v := s.judged(); v.act != r.act || v.phase != r.phase || (v.target != nil) != r.acts {
				t.Errorf("%s %s, acts %v: %s", v.phase, v.act, v.target != nil, v.reason)
			}
		})
	}
}

// The note of the failover stands: what ran there may still run.
func TestAReplacementThatNeverStartsIsGivenUpAfterThreeTimes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
		w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
		endAtOnce(w)
		w.lose()
		w.until("it is given up", time.Hour, func() bool {
			s, _ := w.agents["n1"].repairs.Get(appID)
			return s.Phase == types.RepairGaveUp
		})
		before, _ := w.agents["n1"].repairs.Get(appID)
		time.Sleep(6 * time.Hour)
		if got := w.verbs(); got["deletevmi"] != mostStuck || got["deleteattachment"] != 1 || got["fence"] != 1 {
			t.Errorf("six hours later: %v", got)
		}
		if s, _ := w.agents["n1"].repairs.Get(appID); s.Act != types.ActUnstick || s.Phase != types.RepairGaveUp || !s.Since.Equal(before.Since) {
			t.Errorf("it says %+v, and before %+v", s, before)
		}
		if s, note := w.agents["n1"], w.set().Note; note.NodeUID != "uid-n2" || len(s.logged.AllEntries()) > 60 {
			t.Errorf("%d lines were logged, the note is %+v", len(s.logged.AllEntries()), note)
		}
	})
}

// Of three nodes n1 is the second in turn: n3, where the replacement is, does nothing.
func TestALostNodeIsLookedAtWhateverItsReplacementWaitsFor(t *testing.T) {
	for row, change := range map[string]func(*scene){
		"it was given up": func(s *scene) { s.replace(broken("CrashLoopBackOff")); s.set.Note.Stuck = mostStuck },
		"its volumes are not mounted here": func(s *scene) {
			s.replace(pending)
			s.pods = append(s.pods, launcher(name+"klmno", on("n1"), pending, func(p *types.Pod) { p.Claims = []string{"data"} }))
			s.mounts = types.MountRecovery{Pods: []string{s.pods[1].Key()}, Phase: types.RepairRefused, Reason: "k3s is not restarted."}
		},
	} {
		s := newScene()
		change(s)
		s.since = map[string]time.Duration{}
		s.follow().fresh.tried = up - time.Minute
		s.fresh.at = s.fresh.tried
		if a := decide(s.facts); !a.look {
			t.Errorf("%s: no look is asked for: %+v", row, a.repairs[appID])
		}
		acts := false
		for range 12 { // a look each second
			s.fresh.at, s.fresh.tried, s.fresh.renewed["uid-n2"] = s.uptime, s.uptime, renewal{seen: up - time.Minute, still: s.uptime}
			a := decide(s.facts)
			acts = acts || a.act != nil && a.act.act == types.ActFailover
			s.since, s.uptime = a.since, s.uptime+time.Second
		}
		if !acts {
			t.Errorf("%s: it does not act in its turn", row)
		}
	}
}

func TestAnAttachmentThatIsLeftGoesAlsoAfterTheReplacementWasGivenUp(t *testing.T) {
	for row, of := range map[string]struct{ answers, danger bool }{
		"it could not be deleted before":        {},
		"its device answered before":            {answers: true},
		"the same of a node that is not fenced": {answers: true, danger: true},
	} {
		t.Run(row, func(t *testing.T) {
			inWorld(t, func(w *world) {
				f := volume("foreign")
				if of.danger {
					f.Replicas = f.Replicas[:1]
				} else {
					w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
				}
				w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{volume("data"), f}})
				w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
				w.kube.FailVerb("deleteattachment", errors.New("refused"))
				endAtOnce(w)
				w.lose()
				w.until("its pod is taken", time.Minute, func() bool { return w.calls("deleteattachment") > 0 })
				if of.answers {
					w.kube.Change(func() { w.alive = "10.0.0.2:12346" })
					time.Sleep(time.Minute)
					w.kube.FailVerb("deleteattachment", nil)
				}
				w.until("it is given up", 2*time.Hour, func() bool {
					s, _ := w.agents["n1"].repairs.Get(appID)
					return s.Phase == types.RepairGaveUp
				})
				time.Sleep(time.Hour)
				if len(w.attachments()) != 1 {
					t.Error("it goes before that is allowed")
				}
				w.kube.Change(func() { w.alive = "" })
				w.kube.FailVerb("deleteattachment", nil)
				w.until("it is deleted", 5*time.Minute, func() bool { return len(w.attachments()) == 0 })
			})
		})
	}
}

// The deletion of a stuck replacement fails for long; the attachment that is left on the lost node could be deleted
// by now. Whether the looks at the lost node, which are seldom by then, meet a turn of the failover depends on the second.
func TestAnAttachmentThatIsLeftGoesAlsoWhileTheReplacementCannotBeDeleted(t *testing.T) {
	for _, second := range []time.Duration{0, 13, 21} {
		t.Run(fmt.Sprint(second), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
				w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{volume("data"), volume("foreign")}})
				w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
				w.kube.FailVerb("deleteattachment", errors.New("refused"))
				endAtOnce(w)
				w.lose()
				w.until("its pod is taken", time.Minute, func() bool { return w.calls("deleteattachment") > 0 })
				time.Sleep(second * time.Second)
				w.kube.FailVerb("deletevmi", errors.New("no endpoints for a webhook"))
				w.until("the deletion of its replacement is tried", 2*time.Hour, func() bool { return w.calls("deletevmi") > 0 })
				time.Sleep(time.Hour)
				w.kube.FailVerb("deleteattachment", nil)
				time.Sleep(time.Hour)
				if len(w.attachments()) != 0 {
					t.Errorf("%+v", w.attachments())
				}
			})
		})
	}
}

// The failover has nothing left to do, and goes on: the two take turns.
func TestAFailedDeletionOfAReplacementIsTriedAgainBesideTheFailover(t *testing.T) {
	for name, fails := range map[string]time.Duration{"it failed once": 0, "it failed for an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
				w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{volume("data"), volume("foreign")}})
				w.kube.SetAttachments()
				w.kube.FailVerb("deletevmi", errors.New("no endpoints for a webhook"))
				endAtOnce(w)
				w.lose()
				w.until("the deletion of its replacement is tried", 2*time.Hour, func() bool { return w.calls("deletevmi") > 0 })
				time.Sleep(fails)
				tried := w.calls("deletevmi")
				w.kube.FailVerb("deletevmi", nil)
				w.until("it is tried again", 5*time.Minute, func() bool { return w.calls("deletevmi") > tried })
			})
		})
	}
}
