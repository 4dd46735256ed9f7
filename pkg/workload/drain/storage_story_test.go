package drain

import (
	"errors"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func longhorn(volumes ...types.Volume) types.Storage {
	return types.Storage{Longhorn: true, Volumes: volumes}
}

// vol is an attached volume with its engine on a node, and replicas by node.
func vol(engine string, modes map[string]string) types.Volume {
	v := types.Volume{Name: "pvc-1", Claim: "apps/data", State: "attached", Wanted: 2, Engine: engine, Running: true}
	for node, mode := range modes {
		v.Replicas = append(v.Replicas, types.Replica{Name: node, Node: node, Running: true, Mode: mode, Percent: 30})
	}
	return v
}

func TestVolumesHoldCompleteBackUntilTheyCanDoWithoutTheNode(t *testing.T) {
	safe := vol("n2", map[string]string{"n1": "RW", "n2": "RW"})
	let := types.Storage{Longhorn: true, Volumes: []types.Volume{safe}}
	claimed := let
	claimed.Attachments = []types.Attachment{{Name: "csi-1", Volume: "pvc-1"}}
	foreign := types.Storage{Attachments: []types.Attachment{{Name: "csi-2", Volume: "nfs-1"}}}
	for name, row := range map[string]struct {
		before, after types.Storage
		why           string
	}{
		"an attachment that lingers":      {claimed, let, "pvc-1"},
		"one of another driver":           {foreign, types.Storage{}, "nfs-1"},
		"an engine that runs here":        {longhorn(vol("n1", map[string]string{"n1": "RW", "n2": "RW"})), let, "pvc-1"},
		"the last replica, rebuilt later": {longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})), let, "pvc-1"},
		"the last replica, and a setting": {longhorn(vol("n2", map[string]string{"n1": "RW"})), types.Storage{
			Longhorn: true, Policy: types.DrainPolicyAlwaysAllow, Volumes: []types.Volume{vol("n2", map[string]string{"n1": "RW"})},
		}, "pvc-1"},
		"a replica elsewhere on a node that is not Ready": {longhorn(vol("n9", map[string]string{"n1": "RW", "n9": "RW"})), let, "pvc-1"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				s.kube.SetStorage(row.before)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(15 * time.Minute)
				s.is(types.DrainRetrying, deviceOp)
				p := s.phase(types.PhaseEmptying, row.why)
				if len(p.Volumes) != 1 || p.Volumes[0].Name != row.why || p.Volumes[0].Why == "" || p.Pods.Evicted != 2 {
					t.Errorf("%+v, %+v", p.Volumes, p.Pods)
				}
				if d := time.Since(p.Volumes[0].Since); d < 14*time.Minute {
					t.Errorf("in the way since %s", d)
				}
				s.kube.SetStorage(row.after)
				time.Sleep(15 * time.Second)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestVolumesThatNobodyCanListHoldCompleteBackAndSayWhy(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(500 * time.Millisecond) // past the gates, which need them too
		s.kube.FailVerb("storage", errors.New("longhorn webhook: no endpoints"))
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.phase(types.PhaseEmptying, "longhorn webhook: no endpoints")
		if n := s.failures(); n != 1 {
			t.Errorf("%d failures logged", n)
		}
		s.kube.FailVerb("storage", nil)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestVolumesThatNobodyCanListCloseTheGatesAndSayWhy(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("storage", errors.New("longhorn webhook: no endpoints"))
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainStarting, deviceOp)
		s.phase(types.PhaseGates, "longhorn webhook: no endpoints")
		s.kube.FailVerb("storage", nil)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestARebuildShowsItsPaceInTheProgress(t *testing.T) {
	story(t, 0, func(s *stage) {
		at := func(percent int) {
			v := vol("n2", map[string]string{"n1": "RW", "n2": "WO"})
			for i := range v.Replicas {
				v.Replicas[i].Percent = percent
			}
			s.kube.SetStorage(longhorn(v))
		}
		at(10)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		for percent := 10; percent < 60; percent++ {
			at(percent)
			time.Sleep(time.Minute)
		}
		p := s.phase(types.PhaseEmptying, "pvc-1")
		if len(p.Volumes) != 1 {
			t.Fatalf("%+v", p.Volumes)
		}
		v := p.Volumes[0]
		if v.Rebuilding != "n2" || !v.LastHere || v.Outlook != types.OutlookSlow || v.ETA < 30*60 || v.ETA > 55*60 {
			t.Errorf("%+v", v)
		}
	})
}

// No other node takes pods, but one that is Ready and cordoned may have a replica:
// what is rebuilt there is waited for, and nothing else.
func TestADrainThatEvictsNothingWaitsForARebuildOnACordonedNode(t *testing.T) {
	rebuilt := vol("n1", map[string]string{"n1": "RW", "n2": "WO"})
	stale := vol("n1", map[string]string{"n1": "RW", "n2": "ERR"})
	for name, row := range map[string]struct {
		storage types.Storage
		change  func(*stage)
		waits   bool
	}{
		"it is rebuilt":      {longhorn(rebuilt), func(*stage) {}, true},
		"nothing is rebuilt": {longhorn(stale), func(*stage) {}, false},
		"on a node that is not Ready": {longhorn(vol("n1", map[string]string{"n1": "RW", "n4": "WO"})), func(s *stage) {
			_ = s.nodes.Publish("n4", types.Node{Name: "n4", UID: "n4", Ready: types.ConditionFalse, Agent: &types.AgentStamp{}})
		}, false},
		"a policy lets it go": {types.Storage{Longhorn: true, Policy: types.DrainPolicyAlwaysAllow, Volumes: []types.Volume{rebuilt}}, func(*stage) {}, false},
		"the volumes cannot be listed": {longhorn(rebuilt), func(s *stage) {
			time.AfterFunc(30*time.Second, func() { s.kube.FailVerb("storage", types.ErrRefused) })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				for _, n := range []string{"n2", "n3"} {
					s.kube.ChangeNode(n, func(n *types.Node) { n.Unschedulable = true })
				}
				s.kube.SetStorage(row.storage)
				row.change(s)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Hour)
				if !row.waits {
					s.is(types.DrainComplete, deviceOp)
					return
				}
				s.is(types.DrainRetrying, deviceOp)
				s.phase(types.PhaseEmptying, "pvc-1")
				s.kube.SetStorage(longhorn(vol("n1", map[string]string{"n1": "RW", "n2": "RW"})))
				time.Sleep(time.Minute)
				s.is(types.DrainComplete, deviceOp)
				if n := len(s.kube.Calls("evict")); n > 0 {
					t.Errorf("%d evictions", n)
				}
			})
		})
	}
}
