package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// applications is what the cluster holds of applications besides its tables.
type applications struct {
	made        int // objects made by controllers and versions written
	idle        bool
	revived     func(types.AppSet, *types.VMI, *types.Pod)
	attachments []types.Attachment
	running     map[string][]types.PodRef // by node
}

// Change lets a test change the tables while no verb does. Afterwards the
// controllers do their work: a virtual machine that is being deleted and has no
// pod left is gone, and a set that wants one and has none gets another.
func (c *Cluster) Change(change func()) {
	c.world.Lock()
	defer c.world.Unlock()
	change()
	c.control()
}

// StopControllers makes replica sets make nothing anew, or lets them again.
func (c *Cluster) StopControllers(stop bool) {
	c.Change(func() { c.held.apps.idle = stop })
}

// OnRevival lets the test have its say about what a replica set makes anew,
// before the tables show it: both Pending and without a node. The vmi is nil
// for a set of pods.
func (c *Cluster) OnRevival(change func(set types.AppSet, vmi *types.VMI, pod *types.Pod)) {
	c.world.Lock()
	defer c.world.Unlock()
	c.held.apps.revived = change
}

// apply carries out a verb on an application, and what controllers make of it.
func (c *Cluster) apply(ctx context.Context, verb, object string, act func() error) error {
	return c.write(ctx, verb, object, func() error {
		err := act()
		c.control()
		return err
	})
}

// control is called with world held.
func (c *Cluster) control() {
	if c.VMIs == nil || c.Sets == nil {
		return
	}
	owned := map[string]bool{} // UIDs of owners of something
	for _, p := range c.Pods.All() {
		owned[p.Owner.UID] = true
	}
	for name, v := range c.VMIs.All() {
		if !v.Deleted.IsZero() && !owned[v.UID] {
			_ = c.VMIs.Unpublish(name)
			continue
		}
		owned[v.Owner.UID] = true
	}
	sets := c.Sets.All()
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if s := sets[key]; s.Wanted > 0 && !s.Paused && s.Deleted.IsZero() && !owned[s.UID] && !c.held.apps.idle {
			c.revive(s)
		}
	}
}

// ended is called with world held, when a pod has ended on a living node: a
// virtual machine ends with its launcher.
func (c *Cluster) ended(p types.Pod) {
	if c.VMIs == nil || p.Owner.Kind != "VirtualMachineInstance" {
		return
	}
	if v, ok := c.VMIs.Get(p.Owner.Name); ok && v.UID == p.Owner.UID {
		_ = c.VMIs.Unpublish(v.Name)
	}
}

func (c *Cluster) revive(s types.AppSet) {
	n := c.next()
	pod := types.Pod{
		Namespace: types.NamespaceApps, Name: s.Name + "-" + n, UID: "pod-" + n, Phase: types.PodPending, Created: time.Now(),
		App: s.Name, AppDomain: s.AppDomain, Claims: slices.Clone(s.Claims), Owner: types.Owner{Kind: s.Kind, Name: s.Name, UID: s.UID},
	}
	var vmi *types.VMI
	if s.Kind == types.KindVMIReplicaSet {
		vmi = &types.VMI{
			Name: s.Name + n, UID: "vmi-" + n, Phase: types.VMIScheduling,
			Owner: pod.Owner, AppDomain: s.AppDomain, Created: time.Now(), Affinity: s.Affinity,
		}
		pod.Name, pod.App = "virt-launcher-"+vmi.Name+"-"+n, ""
		pod.VMI, pod.Owner = vmi.Name, types.Owner{Kind: "VirtualMachineInstance", Name: vmi.Name, UID: vmi.UID}
	}
	if f := c.held.apps.revived; f != nil {
		f(s, vmi, &pod)
	}
	if vmi != nil {
		_ = c.VMIs.Publish(vmi.Name, *vmi)
	}
	_ = c.Pods.Publish(pod.Key(), pod)
}

// next is a new suffix, as long as Kubernetes makes them.
func (c *Cluster) next() string {
	c.held.apps.made++
	return fmt.Sprintf("%05d", c.held.apps.made)
}

// ForceDeletePod removes this very pod at once; the instance that it launched
// stays. Verb forcedelete.
func (c *Cluster) ForceDeletePod(ctx context.Context, pod types.Pod) error {
	return c.apply(ctx, "forcedelete", pod.Key(), func() error {
		if now, ok := c.Pods.Get(pod.Key()); ok && now.UID == pod.UID {
			return c.Pods.Unpublish(pod.Key())
		}
		return nil
	})
}

// DeleteVMI marks this very instance as being deleted, and its pods on nodes
// whose kubelets report or on none, which are gone after Grace. Where none is
// left, it is gone. Verb deletevmi.
func (c *Cluster) DeleteVMI(ctx context.Context, vmi types.VMI) error {
	return c.apply(ctx, "deletevmi", vmi.Name, func() error {
		now, ok := c.VMIs.Get(vmi.Name)
		if !ok || now.UID != vmi.UID || !now.Deleted.IsZero() {
			return nil
		}
		now.Deleted = time.Now()
		for _, p := range c.Pods.All() {
			n, _ := c.Nodes.Get(p.NodeName)
			if reports := n.Ready == types.ConditionTrue || n.Ready == types.ConditionFalse; p.Owner.UID != vmi.UID || p.NodeName != "" && !reports {
				continue
			}
			p.Deleted = now.Deleted
			_ = c.Pods.Publish(p.Key(), p)
			time.AfterFunc(c.Grace, func() { c.gone(p) })
		}
		return c.VMIs.Publish(vmi.Name, now)
	})
}

// ForgetVMI removes this very instance at once and leaves its pods. Verb forgetvmi.
func (c *Cluster) ForgetVMI(ctx context.Context, vmi types.VMI) error {
	return c.apply(ctx, "forgetvmi", vmi.Name, func() error {
		if now, ok := c.VMIs.Get(vmi.Name); ok && now.UID == vmi.UID {
			return c.VMIs.Unpublish(vmi.Name)
		}
		return nil
	})
}

// editSet carries out a verb on the set of that UID and Version.
func (c *Cluster) editSet(ctx context.Context, verb string, set types.AppSet, change func(*types.AppSet)) error {
	return c.apply(ctx, verb, set.Key(), func() error {
		now, ok := c.Sets.Get(set.Key())
		switch {
		case !ok:
			return fmt.Errorf("%s %s: not found", verb, set.Key())
		case now.UID != set.UID, now.Version != set.Version:
			return fmt.Errorf("%s %s: %w", verb, set.Key(), types.ErrConflict)
		}
		change(&now)
		now.Version = c.next()
		return c.Sets.Publish(set.Key(), now)
	})
}

// SetWanted sets how many replicas the set wants, never 0. Verb wanted.
func (c *Cluster) SetWanted(ctx context.Context, set types.AppSet, replicas int32) error {
	if replicas < 1 {
		return errors.New("nothing is scaled to 0")
	}
	return c.editSet(ctx, "wanted", set, func(s *types.AppSet) { s.Wanted = replicas })
}

// SetAffinity sets the host name that the set asks for, with a note. Verb affinity.
func (c *Cluster) SetAffinity(ctx context.Context, set types.AppSet, node string, required bool, note types.RepairNote) error {
	if node == "" {
		return errors.New("an affinity to no node")
	}
	return c.editSet(ctx, "affinity", set, func(s *types.AppSet) { s.Affinity.Node, s.Affinity.Required, s.Note = node, required, note })
}

// NoteRepair writes the note on the set; a zero one removes it. Verb noterepair.
func (c *Cluster) NoteRepair(ctx context.Context, set types.AppSet, note types.RepairNote) error {
	return c.editSet(ctx, "noterepair", set, func(s *types.AppSet) { s.Note = note })
}
