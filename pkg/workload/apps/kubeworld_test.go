package apps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// place is the scheduler: the node that is required, if it takes pods, else n3.
func (w *world) place(vmi *types.VMI, pod *types.Pod) {
	if !w.nowhere {
		pod.NodeName = "n3"
	}
	if vmi != nil && vmi.Affinity.Required {
		pod.NodeName = ""
		if n, ok := w.nodes.Get(vmi.Affinity.Node); ok && n.Ready == types.ConditionTrue && !n.Unschedulable && !n.OutOfService {
			pod.NodeName = n.Name
		}
	}
	if vmi != nil {
		vmi.Phase = types.VMIScheduling
	}
}

// turn is everybody else in the cluster, once a second.
func (w *world) turn(ctx context.Context) {
	for round := int64(1); ctx.Err() == nil; round++ {
		attached, _ := w.kube.NodeAttachments(ctx, "n2")
		for _, n := range w.nodes.All() {
			if n.Ready == types.ConditionTrue {
				w.kube.SetRenewed(n.Name, time.Now())
			}
		}
		w.kube.Change(func() { w.kubelets(attached); w.kubevirt(); w.witnesses(round) })
		if s, ok := w.sets.Get(types.KindVMIReplicaSet + "/" + name); ok && s.Wanted == 0 {
			w.zero = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// kubelets start what is scheduled to a node that is ready once its volumes may
// be attached there.
func (w *world) kubelets(attached []types.Attachment) {
	busy := slices.ContainsFunc(attached, func(a types.Attachment) bool { return a.Volume == "pv-data" })
	for _, p := range w.pods.All() {
		n, _ := w.nodes.Get(p.NodeName)
		if n.Ready != types.ConditionTrue || p.Phase != types.PodPending || busy && p.NodeName != "n2" {
			continue
		}
		p.Phase = types.PodRunning
		_ = w.pods.Publish(p.Key(), p)
		if v, ok := w.vmis.Get(p.VMI); ok {
			v.Phase, v.NodeName = types.VMIRunning, p.NodeName
			_ = w.vmis.Publish(v.Name, v)
		}
	}
}

// kubevirt makes another instance as soon as a launcher terminates.
func (w *world) kubevirt() {
	vmis := w.vmis.All()
	pods := w.pods.All()
	for _, p := range pods {
		v, ok := vmis[p.VMI]
		if !ok || !p.Terminating() || !v.Deleted.IsZero() {
			continue
		}
		v.Deleted = time.Now()
		_ = w.vmis.Publish(v.Name, v)
		w.made++
		n := fmt.Sprintf("new%02d", w.made)
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		vmi := types.VMI{Name: name + n, UID: "vmi-" + n, Phase: types.VMIScheduling, Owner: v.Owner, AppDomain: v.AppDomain, Affinity: set.Affinity}
		pod := launcher(vmi.Name, pending, func(p *types.Pod) { p.UID, p.Claims, p.Owner.UID = "pod-"+n, []string{"data"}, vmi.UID })
		w.place(&vmi, &pod)
		_ = w.vmis.Publish(vmi.Name, vmi)
		_ = w.pods.Publish(pod.Key(), pod)
	}
}

// witnesses look every five seconds while a node is lost.
func (w *world) witnesses(round int64) {
	if w.answers {
		return
	}
	n2, ok := w.nodes.Get("n2")
	for _, name := range []string{"n1", "n3", "n4"} {
		n, there := w.nodes.Get(name)
		switch {
		case !there:
			continue
		case (!ok || n2.Ready == types.ConditionUnknown) && round%5 == 0:
			s := types.Sighting{Node: "n2", UID: "uid-n2", Alive: w.alive}
			if n.Witness != nil && s.Alive == "" {
				s.Silent = n.Witness.Sightings[0].Silent
			}
			if s.Alive == "" {
				s.Silent++
			}
			n.Witness = &types.Witness{Round: round, Sightings: []types.Sighting{s}}
		case ok && n2.Ready == types.ConditionTrue:
			n.Witness = nil
		}
		_ = w.nodes.Publish(name, n)
	}
}
