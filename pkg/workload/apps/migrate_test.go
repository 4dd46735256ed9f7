package apps

import (
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// tie has the machine required on its designated node, n2.
func (w *world) tie() {
	w.kube.Change(func() {
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		set.Affinity.Required = true
		_ = w.sets.Publish(set.Key(), set)
		for _, v := range w.vmis.All() {
			v.Affinity = set.Affinity
			_ = w.vmis.Publish(v.Name, v)
		}
		_ = w.pods.Unpublish("eve-kube-app/other")
	})
	w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
	w.designate("n2")
}

// designate is the controller, which makes a node the designated one and tells
// those that run. All volumes are whole on n1, n2 and n3.
func (w *world) designate(nodes ...string) {
	cfg, _ := w.configs.Get(appID)
	cfg.AffinityType = types.AffinityRequired
	w.mine = map[string]types.AppInstanceConfig{}
	v := volume("data")
	v.Robustness, v.Running, v.Wanted = "healthy", true, 2
	v.Replicas = append(v.Replicas, types.Replica{Name: "r1", Node: "n1", LastMode: "RW"})
	for i := range v.Replicas {
		v.Replicas[i].Mode, v.Replicas[i].HealthyAt = "RW", time.Now()
	}
	w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v}})
	for _, n := range []string{"n1", "n2", "n3"} {
		cfg.IsDesignatedNodeID = slices.Contains(nodes, n)
		w.mine[n] = cfg
		if node, _ := w.nodes.Get(n); node.Ready != types.ConditionUnknown {
			w.agents[n].stop()
			w.start(n)
		}
	}
}

// unplace takes the machine's launcher from its node: it waits for one.
func (w *world) unplace() {
	w.kube.Change(func() {
		for key, p := range w.pods.All() {
			p.NodeName, p.Phase = "", types.PodPending
			_ = w.pods.Publish(key, p)
		}
		for _, v := range w.vmis.All() {
			v.NodeName, v.Phase = "", types.VMIScheduling
			_ = w.vmis.Publish(v.Name, v)
		}
	})
}

func TestAnApplicationTiedToItsNodeIsMovedByConfigurationInEveryStateOfTheOldNode(t *testing.T) {
	rows := map[string]struct {
		state func(*world)
		limit time.Duration
	}{
		"dead":     {func(w *world) { w.lose() }, 3 * time.Minute},
		"deadlong": {func(w *world) { w.lose(); time.Sleep(3 * time.Hour) }, 5 * time.Minute},
		"says that it is not ready": {func(w *world) {
			w.kube.Change(func() { w.setReady("n2", types.ConditionFalse) })
			w.kube.SetAttachments()
		}, 10 * time.Minute},
		"cordoned, and it does not run": {func(w *world) {
			w.kube.Change(func() {
				n, _ := w.nodes.Get("n2")
				n.Unschedulable = true
				_ = w.nodes.Publish("n2", n)
			})
			w.unplace()
			w.kube.SetAttachments()
		}, 3 * time.Minute},
		"out of service, and it does not run": {func(w *world) {
			w.kube.Change(func() {
				n, _ := w.nodes.Get("n2")
				n.OutOfService = true
				_ = w.nodes.Publish("n2", n)
			})
			w.unplace()
			w.kube.SetAttachments()
		}, 3 * time.Minute},
		"alive, and it starts in vain": {func(w *world) {
			w.kube.Change(func() {
				v, _ := w.vmis.Get(name + "abcde")
				v.Phase = types.VMIScheduling
				_ = w.vmis.Publish(v.Name, v)
				set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
				set.Note.Stuck = mostStuck
				_ = w.sets.Publish(set.Key(), set)
			})
			w.kube.SetAttachments()
		}, 3 * time.Minute},
		"alive, and it runs": {func(w *world) { w.kube.SetAttachments() }, 10 * time.Minute},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.tie()
				time.Sleep(10 * time.Minute)
				r.state(w)
				time.Sleep(2 * time.Minute)
				w.designate("n1")
				w.until("it runs on n1", r.limit, func() bool { return slices.Equal(w.runsOn(), []string{"n1"}) })
				set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
				if set.Affinity != (types.SetAffinity{Node: "n1", Required: true}) || w.calls("affinity") != 1 {
					t.Errorf("the affinity is %+v after %v", set.Affinity, w.verbs())
				}
				w.until("it is well", time.Minute, func() bool {
					s, _ := w.agents["n1"].repairs.Get(appID)
					return s.Phase == types.RepairWell
				})
				time.Sleep(2 * time.Hour)
				if !slices.Equal(w.runsOn(), []string{"n1"}) {
					t.Errorf("two hours later it runs on %v", w.runsOn())
				}
			})
		})
	}
}
