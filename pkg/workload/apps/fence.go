package apps

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// The acts that concern a whole node.
const (
	actFence   types.RepairAct = "fence"
	actUnfence types.RepairAct = "unfence"
)

// fence begins to take a node that is gone out of service, so that nothing
// starts there before what ran there has stopped, and Kubernetes forgets what
// ran there. It evicts everything, so it is left undone while the node has
// anything that may start elsewhere and whose data is incomplete there.
func (f facts) fence(a *action) {
	if !f.unseenSince.IsZero() || !f.wholeSets || f.self.Name == "" {
		return
	}
	those := f.nodesThat(func(n types.Node) bool {
		return n.Ready == types.ConditionUnknown && !n.OutOfService && (f.inUse(n.Name) || f.takenFrom(n))
	})
	if len(those) == 0 {
		return
	}
	observed := types.ObservedBy(f.nodes, f.witnessed, f.now)
	for _, n := range those {
		name := n.Name
		if gone, _ := observed.Gone(n); !gone {
			a.soon(turn)
			continue
		}
		v := verdict{keys: []string{"gone/" + n.UID}, again: turn}
		f.wantLook(&v, false)
		podClaims := f.podClaims(name)
		proved := f.stale() == "" && f.fresh.unrenewed(n, true) == "" && unsafeClaim(podClaims, name, f.fresh.storage, f.fresh.nodes) == ""
		a.follow(f, v)
		wait := max(f.early(app{}, v.keys[0]), f.pausing(n.UID), f.pausing(""))
		if !proved || f.acting != nil || wait > 0 || a.act != nil {
			a.soon(wait)
			continue
		}
		a.act = f.task(actFence, n)
	}
}

func (f facts) nodesThat(is func(types.Node) bool) []types.Node {
	var those []types.Node
	for _, n := range f.nodes {
		if is(n) {
			those = append(those, n)
		}
	}
	slices.SortFunc(those, func(a, b types.Node) int { return cmp.Compare(a.Name, b.Name) })
	return those
}

func (f facts) inUse(node string) bool {
	return slices.ContainsFunc(f.pods, func(p types.Pod) bool { return p.NodeName == node && !finished(p) })
}

// takenFrom reports whether a note says that an application was taken from this
// very Node. What ran there is on no list any more, and may still run.
func (f facts) takenFrom(n types.Node) bool {
	for _, s := range f.sets {
		if s.Note.NodeUID == n.UID && n.UID != "" {
			return true
		}
	}
	return false
}

// unfenced reports whether the node that an application was taken from has
// neither been fenced nor come back.
func (f facts) unfenced(note types.RepairNote) bool {
	n, ok := f.nodes[note.Node]
	return ok && note.NodeUID != "" && n.UID == note.NodeUID && n.Ready != types.ConditionTrue && !n.OutOfService
}

// podClaims is a pod with volumes on a node that is gone.
type podClaims struct {
	name   string
	claims []string
	tied   bool // it cannot start anywhere else
}

func (f facts) podClaims(node string) []podClaims {
	tied := map[string]bool{} // domains, and sets by kind and name
	for key, s := range f.sets {
		if s.Affinity.Required && s.Affinity.Node == node {
			tied[s.AppDomain], tied[key] = true, true
		}
	}
	var all []podClaims
	for _, p := range f.pods {
		if p.NodeName != node || len(p.Claims) == 0 || finished(p) {
			continue
		}
		h := podClaims{name: p.Name, tied: p.AppDomain != "" && tied[p.AppDomain] || tied[types.AppSet{Kind: p.Owner.Kind, Name: p.Owner.Name}.Key()]}
		for _, c := range p.Claims {
			h.claims = append(h.claims, types.NamespaceApps+"/"+c)
		}
		all = append(all, h)
	}
	return all
}

// unsafeClaim says which of them might start elsewhere from data that is not
// whole, "" for none.
func unsafeClaim(all []podClaims, lost string, s types.Storage, nodes []types.Node) string {
	for _, h := range all {
		if why := redundant(h.claims, lost, s, nodes); why != "" && !h.tied {
			return fmt.Sprintf("pod %s: %s", h.name, why)
		}
	}
	return ""
}

// unsafeAttachment says the same of all that is attached there, no matter who mounts
// it: pods elsewhere may wait for it, and pods of others are evicted as well.
func (w *worker) unsafeAttachment() string {
	tied := map[string]bool{}
	for _, h := range w.others {
		for _, c := range h.claims {
			tied[c] = tied[c] || h.tied
		}
	}
	for _, a := range w.snapshot.attachments {
		i := slices.IndexFunc(w.snapshot.storage.Volumes, func(v types.Volume) bool { return v.Name == a.Volume })
		if i < 0 {
			return fmt.Sprintf("the replicas of volume %s are unknown", a.Volume)
		}
		v := w.snapshot.storage.Volumes[i]
		if why := unsafe(v, w.lost.Name, w.snapshot.nodes); why != "" && !tied[v.Claim] {
			return fmt.Sprintf("volume %s %s", v.Name, why)
		}
	}
	return ""
}

func (w *worker) fence(ctx context.Context) error {
	if err := w.lookAgain(ctx); err != nil {
		return err
	}
	if why := w.noFence(); why != "" {
		return fmt.Errorf("fence node %s: %s", w.lost.Name, why)
	}
	return w.putFence(ctx)
}

// fenceFirst fences the node before anything is taken from it, where that is
// allowed: afterwards the cluster has nothing there that shows what may still run.
func (w *worker) fenceFirst(ctx context.Context) error {
	i := slices.IndexFunc(w.snapshot.nodes, func(n types.Node) bool { return n.Name == w.lost.Name })
	if i < 0 || w.snapshot.nodes[i].OutOfService || w.noFence() != "" {
		return nil
	}
	return w.putFence(ctx)
}

// noFence says why the node must not be fenced, "" where it may.
func (w *worker) noFence() string {
	return cmp.Or(w.snapshot.alive, unsafeClaim(w.others, w.lost.Name, w.snapshot.storage, w.snapshot.nodes), w.unsafeAttachment())
}

func (w *worker) putFence(ctx context.Context) error {
	reason := fmt.Sprintf("Node %s is lost: nothing starts there before what ran there has stopped.", w.lost.Name)
	if err := w.Fence(ctx, w.lost, types.Fence{By: w.self.Name, Reason: reason, Since: w.now().Round(0)}); err != nil {
		return fmt.Errorf("fence node %s: %w", w.lost.Name, err)
	}
	return w.Event(ctx, types.Event{Node: w.lost.Name, Warning: true, Reason: "Fenced", Message: reason})
}

// unfence begins to give a fenced node that is ready again back to service. What is left of
// a fence whose taint somebody has removed goes as well: it would make the next taint of a
// person look like one of ours.
func (f facts) unfence(a *action) {
	if !f.unseenSince.IsZero() || f.self.Name == "" {
		return
	}
	back := func(n types.Node) bool {
		return (n.Fence != nil || n.FenceLeft != nil) && n.Ready == types.ConditionTrue
	}
	for _, n := range f.nodesThat(back) {
		v := verdict{keys: []string{"back/" + n.UID}}
		a.follow(f, v)
		wait := max(f.early(app{}, v.keys[0]), f.pausing(n.UID), f.pausing(""))
		if wait > 0 || f.acting != nil || a.act != nil {
			a.soon(wait)
			continue
		}
		a.act = &task{act: actUnfence, self: f.self, lost: n, known: f.pods}
	}
}

// stale finds a pod that a node runs and that the cluster does not have there to stay:
// beside one that terminates another may start as soon as the taint goes.
func stale(running []types.PodRef, node string, known []types.Pod) (name string, found bool) {
	for _, r := range running {
		if !slices.ContainsFunc(known, func(p types.Pod) bool { return p.UID == r.UID && p.NodeName == node && !p.Terminating() }) {
			return r.Name, true
		}
	}
	return "", false
}

// unfence removes the taint once nothing runs on the node that the cluster does
// not have there: a copy that was started elsewhere meanwhile. The table may still have
// that one, so a list has to agree, which is asked for after the runtime.
func (w *worker) unfence(ctx context.Context) error {
	if w.lost.FenceLeft != nil {
		if err := w.Unfence(ctx, w.lost); err != nil {
			return fmt.Errorf("remove what is left of the fence of node %s: %w", w.lost.Name, err)
		}
		return nil
	}
	running, err := w.RunningPods(ctx, w.lost)
	if err != nil {
		return fmt.Errorf("list the pods on %s: %w", w.lost.Name, err)
	}
	running = slices.DeleteFunc(running, func(p types.PodRef) bool { return p.Namespace != types.NamespaceApps })
	name, found := stale(running, w.lost.Name, w.known)
	if !found && len(running) > 0 {
		now, err := w.AppPodsNow(ctx)
		if err != nil {
			return fmt.Errorf("check the pods on %s: %w", w.lost.Name, err)
		}
		name, found = stale(running, w.lost.Name, now)
	}
	if found {
		return fmt.Errorf("node %s still runs pod %s, which was restarted elsewhere: %w", w.lost.Name, name, types.ErrConflict)
	}
	if err := w.Unfence(ctx, w.lost); err != nil {
		return fmt.Errorf("remove the fence of node %s: %w", w.lost.Name, err)
	}
	return w.Event(ctx, types.Event{Node: w.lost.Name, Reason: "Unfenced", Message: "The node is back and runs no stale pods."})
}
