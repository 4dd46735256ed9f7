package apps

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsDoneForAnApplication(t *testing.T) {
	acts := func(act types.RepairAct) func(*testing.T, verdict) {
		return func(t *testing.T, v verdict) {
			if v.target == nil || v.act != act {
				t.Errorf("want %s now, got %s, %s: %s", act, v.phase, v.act, v.reason)
			}
		}
	}
	says := func(phase types.RepairPhase, words string) func(*testing.T, verdict) {
		return func(t *testing.T, v verdict) {
			if v.target != nil || v.phase != phase || !strings.Contains(v.reason, words) {
				t.Errorf("want %s, %q; got %s %s (acts %v): %s", phase, words, v.phase, v.act, v.target != nil, v.reason)
			}
		}
	}
	rows := map[string]struct {
		change func(*scene)
		want   func(*testing.T, verdict)
	}{
		"what runs is well":                     {func(*scene) {}, says(types.RepairWell, "It runs")},
		"what is not to run is left alone":      {func(s *scene) { s.lose(); s.cfg.Activate = false }, says(types.RepairWell, "not to run")},
		"without a fully known nothing is done": {func(s *scene) { s.lose(); s.unseenSince = now }, says(types.RepairWaits, "fully known")},
		"without the sets nothing is done":      {func(s *scene) { s.lose(); s.wholeSets = false }, says(types.RepairWaits, "fully known")},
		"a set on its way out is left alone":    {func(s *scene) { s.lose(); s.set.Deleted = now }, says(types.RepairWaits, "being deleted")},
		"a lost node that is proved gone":       {(*scene).lose, acts(types.ActFailover)},
		"a lost node, the pod not yet evicted":  {func(s *scene) { s.lose(); s.pods[0].Deleted = time.Time{} }, acts(types.ActFailover)},
		"a node that is only not ready may mend itself": {func(s *scene) {
			s.lose()
			n := s.nodes["n2"]
			n.Ready = types.ConditionFalse
			s.nodes["n2"], s.pods[0].Deleted = n, time.Time{}
		}, says(types.RepairWaits, "not ready")},
		"a device that answers one witness is not gone": {func(s *scene) {
			s.lose()
			s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
		}, says(types.RepairWaits, "answers node n3")},
		"a witness that has not looked says nothing": {func(s *scene) {
			s.lose()
			s.witnessed["n3"] = now.Add(-time.Minute)
		}, says(types.RepairWaits, "stale")},
		"an application tied to its node stays with it": {func(s *scene) {
			s.lose()
			s.cfg.AffinityType = types.AffinityRequired
		}, says(types.RepairRefused, "tied")},
		"a replica set tied to its node stays with it": {func(s *scene) {
			s.lose()
			s.set.Affinity.Required = true
		}, says(types.RepairRefused, "tied")},
		"a kubelet that has just renewed is not dead": {func(s *scene) {
			s.lose()
			s.fresh.renewed["uid-n2"] = renewal{seen: up - 11*time.Second, still: up}
		}, says(types.RepairWaits, "renewed")},
		"an old look proves nothing": {func(s *scene) { s.lose(); s.fresh.at = up - time.Minute }, says(types.RepairWaits, "being checked")},
		"a look that failed proves nothing": {func(s *scene) {
			s.lose()
			s.fresh = s.fresh.then(fresh{tried: up, err: "list volumes: refused"})
			s.fresh.at = up - 11*time.Second
		}, says(types.RepairWaits, "list volumes: refused")},
		"a look that failed does not unsay a refusal": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].FailedAt = now
			s.fresh = s.fresh.then(fresh{tried: up, err: "list volumes: refused"})
			s.fresh.at = up - time.Hour
		}, says(types.RepairRefused, "no healthy replica")},
		"a kubelet whose Lease was never looked at proves nothing": {func(s *scene) {
			s.lose()
			s.fresh.renewed = map[string]renewal{}
		}, says(types.RepairWaits, "renewed")},
		"a former volume of a claim's name proves nothing for the present one": {func(s *scene) {
			s.lose()
			former := volume("data")
			former.Name = "a-former"
			s.storage().Replicas[1].FailedAt = now
			s.fresh.storage.Volumes = append([]types.Volume{former}, s.fresh.storage.Volumes...)
		}, says(types.RepairRefused, "no healthy replica")},
		"an engine on a second lost node proves nothing": {func(s *scene) {
			s.lose()
			s.storage().Engine, s.storage().Running, s.storage().Replicas = "n4", true, nil
			s.nodes["n4"] = types.Node{Name: "n4", UID: "uid-n4", Ready: types.ConditionUnknown}
		}, says(types.RepairRefused, "no healthy replica")},
		"a volume that runs elsewhere already is no hindrance": {func(s *scene) {
			s.lose()
			s.storage().Engine, s.storage().Running, s.storage().Replicas = "n3", true, nil
		}, acts(types.ActFailover)},
		"a volume that migrates":                 {func(s *scene) { s.lose(); s.storage().Also = []string{"n3"} }, says(types.RepairRefused, "migrates")},
		"a volume of which no replica is listed": {func(s *scene) { s.lose(); s.storage().Replicas = nil }, says(types.RepairRefused, "no healthy replica")},
		"a volume whose engine runs and does not use the replica": {func(s *scene) {
			s.lose()
			s.storage().Running = true
			s.storage().Replicas[0].LastMode, s.storage().Replicas[1].LastMode, s.storage().Replicas[0].Mode = "", "", "RW"
		}, says(types.RepairRefused, "no healthy replica")},
		"a whole replica that is being deleted": {func(s *scene) { s.lose(); s.storage().Replicas[1].Deleted = now }, says(types.RepairRefused, "no healthy replica")},
		"a whole replica on a node that is out of service": {func(s *scene) {
			s.lose()
			n := s.nodes["n3"]
			n.OutOfService = true
			s.nodes["n3"] = n
		}, says(types.RepairRefused, "no healthy replica")},
		"another Node of the lost one's name": {func(s *scene) {
			s.lose()
			n := s.nodes["n2"]
			n.UID = "uid-new"
			s.nodes["n2"] = n
		}, says(types.RepairWaits, "does not know")},
		"a Node that the fresh look has under another UID is back": {func(s *scene) {
			s.lose()
			s.fresh.at = up - time.Second
			s.late = func() {
				for i, n := range s.fresh.nodes {
					if n.Name == "n2" {
						s.fresh.nodes[i].UID = "uid-new"
					}
				}
			}
		}, says(types.RepairWaits, "is back")},
		"a witness ahead of the clock is no witness": {func(s *scene) {
			s.lose()
			s.witnessed["n3"] = now.Add(time.Hour)
		}, says(types.RepairWaits, "stale")},
		"a failover from a Node that is deleted goes on after its note": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"}
		}, acts(types.ActFailover)},
		"a note of a Node that is deleted, with nothing left there": {func(s *scene) {
			s.lose()
			delete(s.nodes, "n2")
			s.pods, s.vmis = []types.Pod{launcher(name+"fghij", on("n3"), pending)}, nil
			s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"}
		}, says(types.RepairWaits, "Pending")},
		"force is for the node that is named": {func(s *scene) {
			s.lose()
			s.pods = append(s.pods, launcher(name+"fghij", on("n0")))
			s.nodes["n0"] = types.Node{Name: "n0", UID: "uid-n0", Ready: types.ConditionUnknown}
			s.ask(true)
		}, func(t *testing.T, v verdict) {
			if v.target == nil || v.lost.Name != "n2" {
				t.Errorf("it is taken from %s: %+v", v.lost.Name, v)
			}
		}},
		"a failover by hand goes on when only the attachment is left": {func(s *scene) {
			s.lose()
			s.cfg.AffinityType = types.AffinityRequired
			s.pods, s.vmis = []types.Pod{launcher(name+"fghij", on("n3"), pending)}, nil
			s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2"}
			s.ask(false)
		}, acts(types.ActFailover)},
		"a request that was carried out is over when it runs": {func(s *scene) {
			s.lose()
			s.pods[0] = launcher(name+"abcde", on("n3"))
			s.vmis[0].NodeName = "n3"
			s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2"}
			s.since["settle/set"] = up - time.Minute
			s.ask(true)
		}, acts(actSettle)},
		"a volume nothing is known of": {func(s *scene) { s.lose(); s.storage().Claim = "eve-kube-app/other" }, says(types.RepairRefused, "are unknown")},
		"a volume with its last replica on the lost node": {func(s *scene) {
			s.lose()
			s.storage().Replicas = s.storage().Replicas[:1]
		}, says(types.RepairRefused, "no healthy replica")},
		"a replica that had failed is not whole": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].FailedAt = now
		}, says(types.RepairRefused, "no healthy replica")},
		"a replica that was never whole": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].HealthyAt = time.Time{}
		}, says(types.RepairRefused, "no healthy replica")},
		"a replica that was being rebuilt is not whole": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].LastMode = "WO"
		}, says(types.RepairRefused, "no healthy replica")},
		"a replica the last engine did not use is not whole": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].LastMode = ""
		}, says(types.RepairRefused, "no healthy replica")},
		"without any word of an engine, whole when detached is whole": {func(s *scene) {
			s.lose()
			s.storage().Replicas[0].LastMode, s.storage().Replicas[1].LastMode = "", ""
		}, acts(types.ActFailover)},
		"a whole replica on a node that is not ready is of no use": {func(s *scene) {
			s.lose()
			n := s.nodes["n3"]
			n.Ready = types.ConditionFalse
			s.nodes["n3"] = n
			s.nodes["n4"] = types.Node{Name: "n4", UID: "uid-n4", Ready: types.ConditionTrue, Agent: &types.AgentStamp{}, Witness: s.nodes["n1"].Witness}
			s.witnessed["n4"] = now
		}, says(types.RepairRefused, "no healthy replica")},
		"a volume that is faulted": {func(s *scene) { s.lose(); s.storage().Robustness = "faulted" }, says(types.RepairRefused, "faulted")},
		"one volume of two is not proved": {func(s *scene) {
			s.lose()
			s.set.Claims = append(s.set.Claims, "more")
		}, says(types.RepairRefused, "more")},
		"a hot-plugged volume counts": {func(s *scene) {
			s.lose()
			s.pods[0].Claims = []string{"plugged"}
		}, says(types.RepairRefused, "plugged")},
		"an application without volumes needs no replica": {func(s *scene) {
			s.lose()
			s.set.Claims = nil
			s.fresh.storage = types.Storage{}
		}, acts(types.ActFailover)},
		"where the replacement runs, nothing is reset": {func(s *scene) {
			s.lose()
			s.pods = append(s.pods, launcher(name+"fghij", on("n3")))
			s.vmis = append(s.vmis, types.VMI{Name: name + "fghij", UID: "new", Phase: types.VMIRunning, NodeName: "n3", Owner: types.Owner{Name: name}, AppDomain: appID + ".1.7"})
		}, says(types.RepairWell, "It runs")},
		"a replacement that waits for the volume is helped": {func(s *scene) {
			s.lose()
			s.pods = append(s.pods, launcher(name+"fghij", on("n3"), pending))
		}, acts(types.ActFailover)},
		"a failover that was begun goes on when only the attachment is left": {func(s *scene) {
			s.lose()
			s.pods = []types.Pod{launcher(name+"fghij", on("n3"), pending)}
			s.vmis = nil
			s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2"}
		}, acts(types.ActFailover)},
		"a Node that is deleted says nothing of its device": {func(s *scene) { s.deleteNode(0) }, says(types.RepairWaits, "Kubernetes deletes its pods by itself after 40 to 80 seconds")},
		"nor for five minutes":                              {func(s *scene) { s.deleteNode(5*time.Minute - 1) }, says(types.RepairWaits, "has 5m0s to come back")},
		"then it is gone if nothing answers":                {func(s *scene) { s.deleteNode(5 * time.Minute) }, acts(types.ActFailover)},
		"not while it answers a dial": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.nodes["n3"].Witness.Sightings[0] = types.Sighting{Node: "n2", UID: "uid-n2", Alive: "10.0.0.2:10250"}
		}, says(types.RepairWaits, "answers node n3 at 10.0.0.2:10250")},
		"nor where a witness does not know it": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.nodes["n3"].Witness.Sightings[0].UID = "uid-n9"
		}, says(types.RepairWaits, "Node n3 does not know")},
		"nor where its Lease is still renewed": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.fresh.renewed["uid-n2"] = renewal{by: now, seen: up - 11*time.Second, still: up}
		}, says(types.RepairWaits, "was renewed after its Node was deleted")},
		"a renewal since the deletion is life for five minutes": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.remember(now.Add(-time.Hour), now.Add(-time.Hour))
			s.fresh.renewed["uid-n2"] = renewal{by: now, seen: up - 5*time.Minute + 1, still: up}
		}, says(types.RepairWaits, "was renewed after its Node was deleted")},
		"and none after that": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.remember(now.Add(-time.Hour), now.Add(-time.Hour))
			s.fresh.renewed["uid-n2"] = renewal{by: now, seen: up - 5*time.Minute, still: up}
		}, acts(types.ActFailover)},
		"the renewal from before the deletion is none since": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.remember(now.Add(-time.Hour), now.Add(-time.Hour))
			s.fresh.renewed["uid-n2"] = renewal{by: now.Add(-time.Hour), seen: up - 12*time.Second, still: up}
		}, acts(types.ActFailover)},
		"but has to be seen unchanged all the same": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.remember(now.Add(-time.Hour), now.Add(-time.Hour))
			s.fresh.renewed["uid-n2"] = renewal{by: now.Add(-time.Hour), seen: up - 11*time.Second, still: up}
		}, says(types.RepairWaits, "was renewed less than 12s ago")},
		"what is remembered shortens no grace": {func(s *scene) {
			s.deleteNode(5*time.Minute - 1)
			s.remember(now.Add(-time.Hour), now.Add(-time.Hour))
		}, says(types.RepairWaits, "has 5m0s to come back")},
		"nor before its Lease was looked for": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.fresh.renewed = nil
		}, says(types.RepairWaits, "is being checked")},
		"nor where a list has it again": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.late = func() { s.fresh.nodes = append(s.fresh.nodes, types.Node{Name: "n2", UID: "again"}) }
		}, says(types.RepairWaits, "is back")},
		"one that was never seen here cannot be proved dead": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.known = nil
		}, says(types.RepairRefused, "zedkube vmiDetach --force")},
		"not by hand either": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.known = nil
			s.ask(false)
		}, says(types.RepairRefused, "nothing is known about it")},
		"but by force": {func(s *scene) {
			s.deleteNode(0)
			s.known = nil
			s.ask(true)
		}, acts(types.ActFailover)},
		"another node is before this one": {func(s *scene) {
			s.lose()
			n := s.nodes["n3"]
			n.Name, n.UID = "n0", "uid-n0"
			delete(s.nodes, "n3")
			s.nodes["n0"] = n
			s.witnessed["n0"] = now
			s.storage().Replicas[1].Node = "n0"
			s.since["proved/set/n2"] = up - 4*time.Second
		}, says(types.RepairWaits, "is lost")},
		"by hand, a tied application goes": {func(s *scene) {
			s.lose()
			s.cfg.AffinityType = types.AffinityRequired
			s.ask(false)
		}, acts(types.ActFailover)},
		"by hand, a ready node is refused": {func(s *scene) { s.ask(true) }, says(types.RepairRefused, "is Ready")},
		"by hand, unproved storage is refused": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].FailedAt = now
			s.ask(false)
		}, says(types.RepairRefused, "no healthy replica")},
		"by force, unproved storage is no hindrance": {func(s *scene) {
			s.lose()
			s.storage().Replicas[1].FailedAt = now
			s.ask(true)
		}, acts(types.ActFailover)},
		"not by force from a device that answers": {func(s *scene) {
			s.lose()
			s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
			s.ask(true)
		}, says(types.RepairRefused, "n2 answers node n3 at 10.0.0.2:12346. Nothing is detached by force")},
		"nor where its Node is deleted": {func(s *scene) {
			s.deleteNode(time.Hour)
			s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
			s.ask(true)
		}, says(types.RepairRefused, "Nothing is detached by force")},
		"nor where nobody knows how long ago that was said": {func(s *scene) {
			s.lose()
			s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
			delete(s.witnessed, "n3")
			s.ask(true)
		}, says(types.RepairRefused, "Nothing is detached by force")},
		"but where that was said long ago": {func(s *scene) {
			s.lose()
			s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:12346"
			s.witnessed["n3"] = now.Add(-types.WitnessFresh - time.Second)
			s.ask(true)
		}, acts(types.ActFailover)},
		"a set left at none is revived": {func(s *scene) {
			s.set.Wanted = 0
			s.pods, s.vmis = nil, nil
			s.since["none/set"] = up - time.Minute
		}, acts(types.ActRevive)},
		"a set at none for a moment is somebody's work": {func(s *scene) {
			s.set.Wanted = 0
			s.since["none/set"] = up - 10*time.Second
		}, says(types.RepairWaits, "scaled to 0")},
		"the affinity follows the designated node": {func(s *scene) { s.cfg.IsDesignatedNodeID = true }, acts(types.ActMove)},
		"the affinity becomes required": {func(s *scene) {
			s.cfg.IsDesignatedNodeID, s.cfg.AffinityType = true, types.AffinityRequired
			s.set.Affinity.Node = "n1"
		}, acts(types.ActMove)},
		"the affinity of a container is domainmgr's": {func(s *scene) {
			s.cfg = config(container, designated)
			s.cfg.Activate = true
			s.set.Kind = types.KindReplicaSet
			s.pods = []types.Pod{pod("a", on("n2"))}
		}, says(types.RepairWell, "It runs")},
		"a note is wiped when it runs": {func(s *scene) { s.set.Note.Stuck = 2; s.since["settle/set"] = up - time.Minute }, acts(actSettle)},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			r.change(s)
			s.follow()
			if s.late != nil {
				s.late()
			}
			r.want(t, s.judged())
		})
	}
}
