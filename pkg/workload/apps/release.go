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
func (w *worker) release(ctx context.Context, t target) error {
	if err := w.refusalReason(t); err != nil {
		return err
	}
	if old := t.set.Note; old.Act != t.note.Act || old.Node != t.note.Node || old.NodeUID != t.note.NodeUID {
		if err := w.NoteRepair(ctx, t.set, t.note); err != nil {
			return fmt.Errorf("annotate %s: %w", t.set.Name, err)
		}
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
	if w.deleted && !t.asked {
		return nil // Kubernetes does so itself, six minutes after the pods: not before it
	}
	return w.detach(ctx, t)
}

// detach deletes the attachments of the application's volumes to the lost node.
func (w *worker) detach(ctx context.Context, t target) error {
	for _, a := range w.snapshot.attachments {
		mine := slices.ContainsFunc(w.snapshot.storage.Volumes, func(v types.Volume) bool {
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
