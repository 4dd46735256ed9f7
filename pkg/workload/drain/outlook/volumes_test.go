package outlook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// In these tests "own" drains, "b" and "c" are Ready and "off" is not.
var storageNodes = map[string]bool{"own": true, "b": true, "c": true, "off": false}

func replica(node, mode string) types.Replica {
	return types.Replica{Name: "r-" + node, Node: node, Running: true, Mode: mode, HealthyAt: time.Unix(1, 0)}
}

// onDisk is the replica of a detached volume, in the order in which it changed.
func onDisk(node string, healthy, failed bool) types.Replica {
	r := types.Replica{Name: "r-" + node, Node: node}
	if healthy {
		r.HealthyAt = time.Unix(1, 0)
	}
	if failed {
		r.FailedAt = time.Unix(2, 0)
	}
	return r
}

// deleting is a replica that Longhorn is about to delete with its data.
func deleting(r types.Replica) types.Replica {
	r.Deleted = time.Unix(3, 0)
	return r
}

func attachedTo(node string, replicas ...types.Replica) types.Volume {
	return types.Volume{Name: "v", Claim: "n/c", State: "attached", Robustness: "healthy", Wanted: 2, Engine: node, Running: true, Replicas: replicas}
}

func detachedWith(replicas ...types.Replica) types.Volume {
	return types.Volume{Name: "v", Claim: "n/c", State: "detached", Wanted: 2, Replicas: replicas}
}

func TestWhichVolumesKeepADrainFromBeingComplete(t *testing.T) {
	stopping := attachedTo("own", replica("b", "RW"))
	stopping.Running, stopping.State = false, "detaching"
	left := attachedTo("own", replica("b", "RW"))
	left.Running, left.State = false, "detached"
	lost := attachedTo("b", replica("own", ""), replica("c", ""))
	lost.Running = false
	migrates := attachedTo("b", replica("b", "RW"))
	migrates.Also = []string{"own"}
	stopped := attachedTo("b", replica("own", ""))
	stopped.Replicas[0].Running = false
	for _, row := range []struct {
		sentence string
		volume   types.Volume
		policy   string
		want     bool
	}{
		{"an engine that runs here", attachedTo("own", replica("b", "RW"), replica("c", "RW")), "", true},
		{"an engine here that is being stopped", stopping, "", true},
		{"the name of this node on a detached volume is no engine", left, "", false},
		{"a second engine here, while the volume migrates", migrates, "", true},
		{"an engine elsewhere is not in the way", attachedTo("b", replica("b", "RW")), "", false},
		{"a replica here with a healthy one on another Ready node is not in the way", attachedTo("b", replica("own", "RW"), replica("c", "RW")), "", false},
		{"the last healthy replica", attachedTo("b", replica("own", "RW")), "", true},
		{"a healthy one on a node that is not Ready", attachedTo("b", replica("own", "RW"), replica("off", "RW")), "", true},
		{"a healthy one on a node that is not known", attachedTo("b", replica("own", "RW"), replica("z", "RW")), "", true},
		{"a healthy one on no node", attachedTo("b", replica("own", "RW"), replica("", "RW")), "", true},
		{"another one that is being rebuilt", attachedTo("b", replica("own", "RW"), replica("c", "WO")), "", true},
		{"another one that has failed", attachedTo("b", replica("own", "RW"), replica("c", "ERR")), "", true},
		{"another one that is being deleted", attachedTo("b", replica("own", "RW"), deleting(replica("c", "RW"))), "", true},
		{"one that is being deleted beside a healthy one is not in the way", attachedTo("b", replica("own", "RW"), replica("c", "RW"), deleting(replica("b", "RW"))), "", false},
		{"the one here that is being deleted, with a healthy one elsewhere, is not in the way", attachedTo("b", deleting(replica("own", "RW")), replica("c", "RW")), "", false},
		{"another one that the engine does not know, healthy as it was", attachedTo("b", replica("own", "RW"), replica("c", "")), "", true},
		{"a failed replica here, with no healthy one anywhere", attachedTo("b", replica("own", "ERR")), "", true},
		{"no replica here", attachedTo("b", replica("c", "WO")), "", false},
		{"detached, healthy elsewhere, is not in the way", detachedWith(onDisk("own", true, false), onDisk("b", true, false)), "", false},
		{"detached, failed elsewhere", detachedWith(onDisk("own", true, false), onDisk("b", true, true)), "", true},
		{"detached, and the one elsewhere is being deleted", detachedWith(onDisk("own", true, false), deleting(onDisk("b", true, false))), "", true},
		{"detached, never healthy elsewhere", detachedWith(onDisk("own", true, false), onDisk("b", false, false)), "", true},
		{"detached, healthy on a node that is not Ready", detachedWith(onDisk("own", true, false), onDisk("off", true, false)), "", true},
		{"detached, and no replica ever held data", detachedWith(onDisk("own", false, false), onDisk("b", false, false)), "", false},
		{"detached, and the only replica that held data failed", detachedWith(onDisk("own", false, false), onDisk("b", false, true)), "", true},
		{"attached, and the state of its replicas is lost with its engine", lost, "", true},
		{"always-allow lets the last replica go down", attachedTo("b", replica("own", "RW")), types.DrainPolicyAlwaysAllow, false},
		{"always-allow does not let an engine go down", attachedTo("own", replica("own", "RW")), types.DrainPolicyAlwaysAllow, true},
		{"allow-if-replica-is-stopped lets a stopped one go down", detachedWith(onDisk("own", true, false)), types.DrainPolicyAllowStopped, false},
		{"allow-if-replica-is-stopped lets the stopped one of an attached volume go down", stopped, types.DrainPolicyAllowStopped, false},
		{"allow-if-replica-is-stopped does not let a running one go down", attachedTo("b", replica("own", "RW")), types.DrainPolicyAllowStopped, true},
		{"a policy that nobody knows allows nothing", detachedWith(onDisk("own", true, false)), "allow-everything", true},
	} {
		s := types.Storage{Longhorn: true, Policy: row.policy, Volumes: []types.Volume{row.volume}}
		got := BlockingVolumes(s, "own", storageNodes)
		if (len(got) == 1) != row.want {
			t.Errorf("%s: in the way: %v, %+v", row.sentence, !row.want, got)
		}
		if s.Longhorn = false; len(BlockingVolumes(s, "own", storageNodes)) > 0 {
			t.Errorf("%s: in the way without Longhorn", row.sentence)
		}
	}
}

func TestWhatIsAttachedHereIsInTheWayWhoeverStoresIt(t *testing.T) {
	held := []types.Attachment{{Name: "csi-2", Volume: "v"}, {Name: "csi-1", Volume: "nfs"}, {Name: "csi-3"}}
	healthy := attachedTo("b", replica("b", "RW"))
	got := BlockingVolumes(types.Storage{Longhorn: true, Volumes: []types.Volume{healthy}, Attachments: held}, "own", storageNodes)
	want := []types.DrainVolume{
		{Name: "csi-3", Why: claimHere, Outlook: types.OutlookSlow},
		{Name: "nfs", Why: claimHere, Outlook: types.OutlookSlow},
		{Name: "v", Claim: "n/c", Why: claimHere, Replicas: 2, Healthy: 1, Outlook: types.OutlookSlow},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := BlockingVolumes(types.Storage{Attachments: held}, "own", storageNodes); len(got) != 3 {
		t.Errorf("without Longhorn: %+v", got)
	}
	held = []types.Attachment{{Name: "csi-2", Volume: "v", Daemons: true}}
	if got := BlockingVolumes(types.Storage{Longhorn: true, Volumes: []types.Volume{healthy}, Attachments: held}, "own", storageNodes); len(got) > 0 {
		t.Errorf("served elsewhere, for pods that stay: %+v", got)
	}
	last := attachedTo("b", replica("own", "RW"))
	if got := BlockingVolumes(types.Storage{Longhorn: true, Volumes: []types.Volume{last}, Attachments: held}, "own", storageNodes); len(got) != 1 {
		t.Errorf("its last replica is here: %+v", got)
	}
}

func TestAVolumeInTheWayIsExplained(t *testing.T) {
	rebuilt := replica("c", "WO")
	rebuilt.Percent = 40
	ownRebuilt := replica("own", "WO")
	ownRebuilt.Percent = 90
	single := attachedTo("b", replica("own", "RW"))
	single.Wanted = 1
	unknown := attachedTo("b", replica("own", "RW"))
	unknown.Running = false
	starting := unknown
	starting.State = "attaching"
	joining := replica("c", "")
	failed := replica("c", "")
	failed.FailedAt = time.Unix(2, 0)
	alone := map[string]bool{"own": true, "b": false}
	for _, row := range []struct {
		sentence string
		volume   types.Volume
		policy   string
		ready    map[string]bool
		lastHere bool
		percent  int
		outlook  types.DrainOutlook
		says     string // Why and Remedy
	}{
		{"a rebuild elsewhere is slow", attachedTo("b", replica("own", "RW"), rebuilt), "", storageNodes, true, 40, "slow", "rebuilt on node c, 40 %"},
		{"of two rebuilds the one elsewhere counts", attachedTo("b", ownRebuilt, replica("off", "RW"), rebuilt), "", storageNodes, false, 40, "slow", "node c"},
		{"a rebuild on this node helps nobody", attachedTo("b", ownRebuilt, replica("off", "RW")), "", storageNodes, false, 90, "never", "off which is not Ready"},
		{"a rebuild on a node that is not Ready helps nobody", attachedTo("b", replica("own", "RW"), replica("off", "WO")), "", storageNodes, true, 0, "never", "nothing is being rebuilt"},
		{"a replica that has just been added is slow", attachedTo("b", replica("own", "RW"), joining), "", storageNodes, true, 0, "slow", "about to be rebuilt"},
		{"a rebuild of one that is being deleted helps nobody", attachedTo("b", replica("own", "RW"), deleting(rebuilt)), "", storageNodes, true, 0, "never", "nothing is being rebuilt"},
		{"one that is being deleted is not about to be rebuilt", attachedTo("b", replica("own", "RW"), deleting(joining)), "", storageNodes, true, 0, "never", "nothing is being rebuilt"},
		{"the last healthy one is here where the other is being deleted", attachedTo("b", replica("own", "RW"), deleting(replica("c", "RW"))), "", storageNodes, true, 0, "never", "its last healthy replica is on this node"},
		{"a failed one is never", attachedTo("b", replica("own", "RW"), failed), "", storageNodes, true, 0, "never", "always-allow"},
		{"to allow it is for no leave, and for a while", attachedTo("b", replica("own", "RW"), failed), "", storageNodes, true, 0, "never", "never for a leave (the data would be lost): set storage.longhorn.node-drain-policy to always-allow if the volume may be unavailable meanwhile, and set it back"},
		{"one that is in error is never", attachedTo("b", replica("own", "RW"), replica("c", "ERR")), "", storageNodes, true, 0, "never", "nothing is being rebuilt"},
		{"only one replica is never", single, "", storageNodes, true, 0, "never", "give it two"},
		{"only one replica is slow where Longhorn moves it", single, "block-for-eviction-if-contains-last-replica", storageNodes, true, 0, "slow", "move it"},
		{"but nowhere can it be moved to", single, "block-for-eviction", alone, true, 0, "never", "bring another node back"},
		{"no healthy replica is never", attachedTo("b", replica("own", "ERR"), rebuilt), "block-for-eviction", storageNodes, false, 40, "never", "salvage"},
		{"detached is never", detachedWith(onDisk("own", true, false), onDisk("b", true, true)), "", storageNodes, true, 0, "never", "start what uses it"},
		{"unknown is never", unknown, "", storageNodes, false, 0, "never", "its engine is not running"},
		{"on its way to attached is slow", starting, "", storageNodes, false, 0, "slow", "attaching"},
		{"attached here and rebuilt nowhere is never", attachedTo("own", replica("own", "RW")), "", storageNodes, true, 0, "never", "its engine is on this node until"},
		{"attached here and healthy elsewhere is slow", attachedTo("own", replica("own", "RW"), replica("c", "RW")), "", storageNodes, false, 0, "slow", "its engine is on this node until"},
	} {
		got := BlockingVolumes(types.Storage{Longhorn: true, Policy: row.policy, Volumes: []types.Volume{row.volume}}, "own", row.ready)
		if len(got) != 1 {
			t.Errorf("%s: %+v", row.sentence, got)
			continue
		}
		d := got[0]
		if d.LastHere != row.lastHere || d.Percent != row.percent || d.Outlook != row.outlook || !strings.Contains(d.Why+" "+d.Remedy, row.says) {
			t.Errorf("%s: %+v", row.sentence, d)
		}
		if d.Outlook == types.OutlookNever && d.Remedy == "" {
			t.Errorf("%s: nobody is told what to do", row.sentence)
		}
	}
}

func TestTwoThousandVolumesAreInTheWayByName(t *testing.T) {
	s := types.Storage{Longhorn: true}
	for i := range 2000 {
		v := attachedTo("b", replica("own", "RW"))
		v.Name = fmt.Sprintf("v%04d", 1999-i)
		s.Volumes = append(s.Volumes, v)
	}
	got := BlockingVolumes(s, "own", storageNodes)
	if len(got) != 2000 || got[0].Name != "v0000" || got[1999].Name != "v1999" {
		t.Errorf("%d volumes, the first %s", len(got), got[0].Name)
	}
}

func TestTheLockRecordsWhatWasHealthy(t *testing.T) {
	here, between, away := attachedTo("b", replica("own", "RW"), replica("c", "RW"), replica("b", "WO")), detachedWith(onDisk("own", true, false)), attachedTo("b", replica("c", "RW"))
	here.Name, between.Name, away.Name = "here", "between", "away"
	between.State = "attaching"
	here.Replicas = append(here.Replicas, deleting(replica("off", "RW")))
	s := types.Storage{Longhorn: true, Volumes: []types.Volume{here, between, away}}
	if diff := cmp.Diff(map[string]int{"here": 2, "between": 1}, HealthyReplicas(s, "own")); diff != "" {
		t.Error(diff)
	}
	if s.Longhorn = false; len(HealthyReplicas(s, "own")) > 0 {
		t.Error("volumes without Longhorn")
	}
}

func TestWhichVolumesAreWorseOffThanWhenTheLockWasTaken(t *testing.T) {
	two := attachedTo("b", replica("own", "RW"), replica("c", "RW"))
	unknown := two
	unknown.Running = false
	lost := func(on, mode string, own types.Replica) types.Volume {
		own.Mode, own.LastMode = "", mode
		v := attachedTo(on, own, replica("c", ""))
		v.Running = false
		return v
	}
	few := two
	few.Wanted = 1
	for _, row := range []struct {
		sentence string
		was      map[string]int
		volume   types.Volume
		want     bool
	}{
		{"as many as before are not worse", map[string]int{"v": 2}, two, false},
		{"more than before are not worse", map[string]int{"v": 1}, two, false},
		{"one that is being deleted is one fewer", map[string]int{"v": 2}, attachedTo("b", deleting(replica("own", "RW")), replica("c", "RW")), true},
		{"one that is being deleted is not worse where enough are left", map[string]int{"v": 3}, attachedTo("b", deleting(replica("own", "RW")), replica("b", "RW"), replica("c", "RW")), false},
		{"fewer are worse", map[string]int{"v": 2}, attachedTo("b", replica("own", "WO"), replica("c", "RW")), true},
		{"detached is not worse", map[string]int{"v": 2}, detachedWith(onDisk("c", true, true)), false},
		{"unknown is worse", map[string]int{"v": 2}, unknown, true},
		{"one that had none is not worse", map[string]int{"v": 0}, unknown, false},
		{"one made since does not count", map[string]int{"other": 2}, attachedTo("b", replica("own", "ERR")), false},
		{"one deleted since does not count", map[string]int{"v": 2, "gone": 3}, two, false},
		{"as many as it should have are not worse", map[string]int{"v": 3}, two, false},
		{"as it should have fewer by now, one is enough", map[string]int{"v": 2}, few, false},
		{"its replica was healthy when the engine was lost with another node", map[string]int{"v": 2}, lost("b", "RW", replica("own", "")), false},
		{"it was still being rebuilt", map[string]int{"v": 2}, lost("b", "WO", replica("own", "")), true},
		{"it failed", map[string]int{"v": 2}, lost("b", "RW", onDisk("own", true, true)), true},
		{"it is being deleted", map[string]int{"v": 2}, lost("b", "RW", deleting(replica("own", ""))), true},
		{"the engine was lost with its own node", map[string]int{"v": 2}, lost("own", "RW", replica("own", "")), true},
		{"what another node lacks is not waited for", map[string]int{"v": 3}, attachedTo("b", replica("own", "RW"), replica("b", "RW"), replica("c", "ERR")), false},
	} {
		got := types.DrainLock{Holder: "own", Volumes: row.was}.Degraded(types.Storage{Longhorn: true, Volumes: []types.Volume{row.volume}})
		if (len(got) == 1) != row.want {
			t.Errorf("%s: %v", row.sentence, got)
		}
	}
	bad := attachedTo("b", replica("own", "ERR"))
	other := bad
	other.Name = "a"
	if diff := cmp.Diff([]string{"a", "v"}, types.DrainLock{Holder: "own", Volumes: map[string]int{"a": 1, "v": 1}}.Degraded(types.Storage{Longhorn: true, Volumes: []types.Volume{bad, other}})); diff != "" {
		t.Error(diff)
	}
}
