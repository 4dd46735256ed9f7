package apps

import (
	"context"
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// release takes what an application has on the lost node: its pods, its virtual
// machine, the attachments of its volumes, in this order. Each step may be
// repeated; nobody else's objects are touched, and no replica is deleted.
func (w *worker) release(ctx context.Context, t target, storage types.Storage) error {
	note := t.note
	if err := w.NoteRepair(ctx, t.set, note); err != nil {
		return fmt.Errorf("note on %s: %w", t.set.Name, err)
	}
	for _, p := range t.pods {
		if p.NodeName != w.lost.Name {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Pod %s on %s is deleted.", p.Name, p.NodeName), func() error { return w.ForceDeletePod(ctx, p) }); err != nil {
			return err
		}
	}
	for _, v := range t.vmis {
		if v.NodeName != w.lost.Name {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Virtual machine %s on %s is deleted.", v.Name, v.NodeName), func() error { return w.ForgetVMI(ctx, v) }); err != nil {
			return err
		}
	}
	return w.detach(ctx, t, storage)
}

// detach deletes the attachments of the application's volumes to the lost node.
func (w *worker) detach(ctx context.Context, t target, storage types.Storage) error {
	if len(t.claims) == 0 {
		return nil
	}
	attachments, err := w.NodeAttachments(ctx, w.lost.Name)
	if err != nil {
		return fmt.Errorf("attachments of %s: %w", w.lost.Name, err)
	}
	for _, a := range attachments {
		mine := slices.ContainsFunc(storage.Volumes, func(v types.Volume) bool {
			return v.Name == a.Volume && slices.Contains(t.claims, v.Claim)
		})
		if !mine {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Volume %s is detached from %s.", a.Volume, a.Node), func() error { return w.DeleteAttachment(ctx, a) }); err != nil {
			return err
		}
	}
	return nil
}

// actUnfence is no act of an application.
const actUnfence types.RepairAct = "unfence"

// unfence begins to give a fenced node that is ready again back to service.
func (f facts) unfence(a *action) {
	if !f.blindSince.IsZero() || f.self.Name == "" {
		return
	}
	for _, n := range f.nodes {
		key := "back/" + n.UID
		if n.Fence == nil || n.Ready != types.ConditionTrue {
			continue
		}
		if began, ok := f.since[key]; ok {
			a.since[key] = began
		} else {
			a.since[key] = f.uptime
		}
		wait := max(f.early(app{pods: []types.Pod{{NodeName: n.Name}}}, key), f.resting(n.UID), f.resting(""))
		if wait > 0 {
			a.soon(wait)
			continue
		}
		a.act = &task{act: actUnfence, self: f.self, lost: n, known: f.bound(n.Name)}
		return
	}
}

// bound are the UIDs of the pods that the cluster has on a node.
func (f facts) bound(node string) map[string]bool {
	known := map[string]bool{}
	for _, p := range f.pods {
		if p.NodeName == node {
			known[p.UID] = true
		}
	}
	return known
}

// unfence removes the taint once nothing runs on the node that the cluster does
// not have there: a copy that was started elsewhere meanwhile.
func (w *worker) unfence(ctx context.Context) error {
	running, err := w.RunningPods(ctx, w.lost.Name)
	if err != nil {
		return fmt.Errorf("look at what runs on %s: %w", w.lost.Name, err)
	}
	for _, p := range running {
		if p.Namespace == namespace && !w.known[p.UID] {
			return fmt.Errorf("node %s still runs pod %s, which was started elsewhere: %w", w.lost.Name, p.Name, types.ErrConflict)
		}
	}
	if err := w.Unfence(ctx, w.lost); err != nil {
		return fmt.Errorf("give node %s back to service: %w", w.lost.Name, err)
	}
	return w.Event(ctx, types.Event{Node: w.lost.Name, Reason: "Unfenced", Message: "The node is back and runs nothing stale."})
}
