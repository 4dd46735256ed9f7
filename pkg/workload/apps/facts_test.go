package apps

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// scene is a cluster of three in which a virtual machine runs on n2, seen from
// n1; up is the uptime.
type scene struct {
	facts
	cfg types.AppInstanceConfig
	set types.AppSet

	late func() // what the fresh look has otherwise than the tables
}

const up = 5 * time.Hour

func newScene() *scene {
	s := &scene{cfg: config(vm)}
	s.cfg.Activate = true
	s.set = types.AppSet{
		Kind: types.KindVMIReplicaSet, Name: name, UID: "set", Version: "7", AppDomain: appID + ".1.7", Wanted: 1, Claims: []string{"data"},
		Affinity: types.SetAffinity{Node: "n2"},
	}
	s.facts = facts{
		witnessed: map[string]time.Time{},
		now:       now, uptime: up, configsKnown: true, settled: true, wholeSets: true, reached: true,
		pods: []types.Pod{launcher(name+"abcde", on("n2"))},
		vmis: []types.VMI{{Name: name + "abcde", UID: "vmi", Phase: types.VMIRunning, NodeName: "n2", Owner: types.Owner{Name: name}, AppDomain: appID + ".1.7"}},
		memory: memory{
			since: map[string]time.Duration{}, rest: map[string]pause{},
		},
	}
	s.nodes = map[string]types.Node{}
	for _, n := range []string{"n1", "n2", "n3"} {
		s.nodes[n] = types.Node{Name: n, UID: "uid-" + n, Ready: types.ConditionTrue, Agent: &types.AgentStamp{}, BootID: "boot", ReadySince: now.Add(-time.Hour)}
	}
	s.node("n1", func(n *types.Node) {
		n.Designated = &types.Designations{Apps: map[string]types.Designation{appID: {Count: 1}}}
	})
	s.fresh = fresh{at: up - time.Second, tried: up - time.Second, storage: types.Storage{Longhorn: true, Volumes: []types.Volume{volume("data")}}}
	return s.follow()
}

// volume has a healthy replica on each of n2 and n3, and its engine on n2, where
// it cannot be asked.
func volume(claim string) types.Volume {
	return types.Volume{
		Name: "pv-" + claim, Claim: "eve-kube-app/" + claim, State: "attached", Robustness: "unknown", Wanted: 2, Engine: "n2",
		Replicas: []types.Replica{
			{Name: "r2", Node: "n2", LastMode: "RW", HealthyAt: now.Add(-time.Hour)},
			{Name: "r3", Node: "n3", LastMode: "RW", HealthyAt: now.Add(-time.Hour)},
		},
	}
}

// follow makes the fresh look agree with the tables.
func (s *scene) follow() *scene {
	s.configs = map[string]types.AppInstanceConfig{appID: s.cfg}
	s.sets = map[string]types.AppSet{s.set.Key(): s.set}
	s.self = s.nodes["n1"]
	s.fresh.nodes = slices.Collect(maps.Values(s.nodes))
	if s.fresh.renewed == nil {
		s.fresh.renewed = map[string]renewal{}
	}
	return s
}

// lose makes n2 vanish a minute ago; nothing of it answers n1 and n3.
func (s *scene) lose() {
	n := s.nodes["n2"]
	n.Ready = types.ConditionUnknown
	s.nodes["n2"] = n
	for _, name := range []string{"n1", "n3"} {
		w := s.nodes[name]
		w.Witness = &types.Witness{Round: 9, Sightings: []types.Sighting{{Node: "n2", UID: "uid-n2", Silent: 5}}}
		s.nodes[name] = w
		s.witnessed[name] = now.Add(-time.Second)
	}
	s.fresh.renewed = map[string]renewal{"uid-n2": {seen: up - time.Minute, still: up - time.Second}}
	s.since["lost/set/n2"], s.since["proved/set/n2"] = up-time.Minute, up-time.Minute
	s.pods[0].Deleted = now.Add(-30 * time.Second)
}

// deleteNode is lose where the Node of n2 has been deleted for so long, and its
// Lease with it.
func (s *scene) deleteNode(ago time.Duration) {
	s.lose()
	delete(s.nodes, "n2")
	s.known = map[string]types.KnownNode{"n2": {Name: "n2", UID: "uid-n2", InternalIP: "10.0.0.2"}}
	s.since["deleted/uid-n2"] = up - ago
	s.fresh.renewed = map[string]renewal{"uid-n2": {seen: up - ago, still: up}}
}

// remember is the last renewal of n2's Lease from before, by its kubelet's clock
// and when it was seen.
func (s *scene) remember(renewed, seen time.Time) {
	k := s.known["n2"]
	k.LeaseRenewed, k.LeaseSeen = renewed, seen
	s.known["n2"] = k
}

func (s *scene) judged() verdict { return s.judge(s.apps()[0]) }

func (s *scene) storage() *types.Volume { return &s.fresh.storage.Volumes[0] }

// ask is a request by hand.
func (s *scene) ask(force bool) {
	s.requests = map[string]types.AppDetachRequest{appID: {Node: "n2", AppDomain: appID + ".1.7", Force: force, ID: uuid.New(), Asked: now}}
}
