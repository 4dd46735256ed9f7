package apps

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// loseTwo loses n2, from which the machine was taken according to note, and n3,
// where everything of it is by now. n1, n4 and n5 are left.
func (s *scene) loseTwo(note types.RepairNote) {
	s.lose()
	for _, n := range []string{"n4", "n5"} {
		s.nodes[n] = types.Node{Name: n, UID: "uid-" + n, Ready: types.ConditionTrue, Agent: &types.AgentStamp{}}
	}
	s.node("n3", func(n *types.Node) { n.Ready, n.Witness = types.ConditionUnknown, nil })
	for _, name := range []string{"n1", "n4", "n5"} {
		s.node(name, func(n *types.Node) {
			n.Witness = &types.Witness{Round: 9, Sightings: []types.Sighting{{Node: "n2", UID: "uid-n2", Silent: 5}, {Node: "n3", UID: "uid-n3", Silent: 5}}}
		})
		s.witnessed[name] = now.Add(-time.Second)
	}
	s.fresh.renewed["uid-n3"] = s.fresh.renewed["uid-n2"]
	s.storage().Engine = "n3"
	s.storage().Replicas = []types.Replica{{Name: "r4", Node: "n4", LastMode: "RW", HealthyAt: now.Add(-time.Hour)}}
	s.pods = []types.Pod{launcher(name+"fghij", on("n3"))}
	s.vmis[0].Name, s.vmis[0].NodeName = name+"fghij", "n3"
	s.set.Note = note
	s.since["lost/set/n3"], s.since["proved/set/n3"] = up-time.Minute, up-time.Minute
}

func TestAnApplicationIsLostWithTheNodeThatItIsOn(t *testing.T) {
	taken := types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"}
	rows := map[string]struct {
		note   types.RepairNote
		change func(*scene)
		want   string // "" for none
		acts   bool
	}{
		"without a note":              {want: "n3", acts: true},
		"with a note of another node": {note: taken, want: "n3", acts: true},
		"whose device is on by now":   {note: taken, change: func(s *scene) { s.nodes["n4"].Witness.Sightings[0].Alive = "10.0.0.2:12346" }, want: "n3", acts: true},
		"nothing is left, but a note": {note: taken, change: pendingOn("n4"), want: "n2", acts: true},
		"a note without a UID":        {note: types.RepairNote{Act: types.ActFailover, Node: "n2"}, change: pendingOn("n4"), want: "n2", acts: true},
		"a note of a former Node":     {note: types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-former"}, change: pendingOn("n4")},
		"a note of a Node that is gone": {note: taken, change: func(s *scene) {
			pendingOn("n4")(s)
			delete(s.nodes, "n2")
		}},
		"a note of another act": {note: types.RepairNote{Act: types.ActUnstick, Node: "n2", NodeUID: "uid-n2"}, change: pendingOn("n4")},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			s.loseTwo(r.note)
			if r.change != nil {
				r.change(s)
			}
			s.follow()
			if v := s.judged(); v.lost.Name != r.want || (v.target != nil) != r.acts {
				t.Errorf("it is lost with %q, acts %v: %s", v.lost.Name, v.target != nil, v.reason)
			} else if r.acts && (v.target.note.Node != r.want || v.target.note.NodeUID != "uid-"+r.want) {
				t.Errorf("the note is to be %+v", v.target.note)
			}
		})
	}
}

// pendingOn has a replacement that does not run yet on a node, and nothing else.
func pendingOn(node string) func(*scene) {
	return func(s *scene) {
		s.pods, s.vmis = []types.Pod{launcher(name+"klmno", on(node), pending)}, nil
	}
}

// Another application's only replica keeps n2 from being fenced, so that the note stands.
func TestAnApplicationIsTakenFromASecondNodeWhileTheFirstIsStillLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.loseTwo(types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"})
		w.until("nothing of it is left on n3", 2*time.Minute, func() bool {
			for _, p := range w.pods.All() {
				if p.VMI != "" && p.NodeName == "n3" {
					return false
				}
			}
			return true
		})
		w.until("it runs on n4", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n4"}) })
	})
}

// loseTwo is a cluster of five without n2 and n3, where the machine is on n3 with that note.
func (w *world) loseTwo(note types.RepairNote) {
	for _, n := range []string{"n1", "n2", "n3"} {
		w.agents[n].stop()
		w.agents[n].stop = func() {}
	}
	w.kube.Change(func() { w.answers, w.nowhere = true, true }) // witnesses and scheduler are below
	w.kube.OnRevival(func(_ types.AppSet, vmi *types.VMI, pod *types.Pod) {
		vmi.Phase, pod.NodeName = types.VMIScheduling, "n4"
	})
	v, f := volume("data"), volume("foreign")
	v.Replicas[1].Node, v.Engine, f.Replicas = "n4", "n3", f.Replicas[:1]
	w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
	w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n3", Volume: "pv-data"}, types.Attachment{Name: "va-2", UID: "va-2", Node: "n2", Volume: "pv-foreign"})
	live := []string{"n1", "n4", "n5"}
	w.kube.Change(func() {
		for _, n := range live[1:] {
			x, _ := w.nodes.Get("n1")
			x.Name, x.UID, x.UUID = n, "uid-"+n, uuid.NewSHA1(uuid.Nil, []byte(n)).String()
			_ = w.nodes.Publish(n, x)
		}
		for key, p := range w.pods.All() {
			if p.VMI != "" {
				p.NodeName = "n3"
				_ = w.pods.Publish(key, p)
			}
		}
		for _, v := range w.vmis.All() {
			v.NodeName = "n3"
			_ = w.vmis.Publish(v.Name, v)
		}
		w.setReady("n2", types.ConditionUnknown)
		w.setReady("n3", types.ConditionUnknown)
		set := w.set()
		set.Note = note
		_ = w.sets.Publish(set.Key(), set)
	})
	for _, n := range live {
		w.start(n)
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(w.Context())
	go func() { defer close(done); w.seeTwoLost(ctx, live) }()
	w.agents["n2"].stop = func() { cancel(); <-done }
}

// seeTwoLost has the live nodes say every five seconds that n2 and n3 do not answer.
func (w *world) seeTwoLost(ctx context.Context, live []string) {
	sightings := []types.Sighting{{Node: "n2", UID: "uid-n2", Silent: 9}, {Node: "n3", UID: "uid-n3", Silent: 9}}
	for round := int64(100); ctx.Err() == nil; round++ {
		w.kube.Change(func() {
			for _, n := range live {
				x, _ := w.nodes.Get(n)
				x.Witness = &types.Witness{Round: round, Sightings: sightings}
				_ = w.nodes.Publish(n, x)
			}
		})
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}
