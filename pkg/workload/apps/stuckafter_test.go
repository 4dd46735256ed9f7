package apps

import (
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
		}, time.Hour, types.ActUnstick, false, types.RepairGaveUp},
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
		time.Sleep(6 * time.Hour)
		if got := w.verbs(); got["deletevmi"] != mostStuck || got["deleteattachment"] != 1 || got["fence"] != 1 {
			t.Errorf("six hours later: %v", got)
		}
		if s, note := w.agents["n1"], w.set().Note; note.NodeUID != "uid-n2" || len(s.logged.AllEntries()) > 60 {
			t.Errorf("%d lines were logged, the note is %+v", len(s.logged.AllEntries()), note)
		}
	})
}
