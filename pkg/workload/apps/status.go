package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// trust is how long the last word on an application is believed when nothing
// new is seen, because the API server is silent, its lists are incomplete or
// EdgeNodeInfo is missing: long enough for a restart of k3s, short enough that the
// node does not go on claiming what was moved away meanwhile. One that sees the whole
// cluster without its own Node has nothing in it to claim.
const trust = 2 * time.Minute

// restarts is how long a virtual machine that is on no node stays claimed by the
// node that had it: between the end of its launcher and the node of the next one.
const restarts = time.Minute

const firstVNCPort = 5900

func (f facts) status(a app) types.ENClusterAppStatus {
	s := types.ENClusterAppStatus{AppUUID: a.cfg.UUIDandVersion.UUID, IsDNidNode: a.cfg.IsDesignatedNodeID, AppIsVMI: a.cfg.IsVMI()}
	switch {
	case f.unseenSince.IsZero():
		a.seen(&s, f.self.Name)
	case f.unseen(a.key) < trust: // an application that was never looked for is "unknown"
		last := f.statuses[a.key]
		s.ScheduledOnThisNode = last.ScheduledOnThisNode
		s.AppKubeStatus = last.AppKubeStatus
		s.StatusRunning = last.AppKubeStatus == types.AppKubeRunning
		s.VMIName, s.VNCPort = last.VMIName, last.VNCPort
	default:
		// This claims nothing: another node may run the application by now. It must not
		// say "not in the cluster" either, or the designated node would claim the
		// application (docs/wire.md, "ENClusterAppStatus").
		s.AppKubeStatus = types.AppKubeAPIUnreachable
	}
	return s
}

// unseen is for how long the cluster has not been fully known, 0 while it is. What is on
// record of this boot counts: an agent that starts again knows no more than before.
func (f facts) unseen(app string) time.Duration {
	if f.unseenSince.IsZero() {
		return 0
	}
	d := f.now.Sub(f.unseenSince)
	if old := f.repairs[app]; old.Unseen > 0 && old.BootID == f.boot {
		d = max(d, f.uptime-old.Unseen)
	}
	return d
}

// restarting keeps the claim on a virtual machine that was here and is on no node
// now: its set makes another launcher, which has no node yet. Off its designated
// node the application would be made inactive for that moment (docs/wire.md,
// "zedmanager").
func (f facts) restarting(a app, s types.ENClusterAppStatus) (types.ENClusterAppStatus, verdict) {
	last := f.statuses[a.key]
	was := last.ScheduledOnThisNode && (last.VMIName == "" || strings.HasPrefix(last.VMIName, a.cfg.KubeName()))
	pod, ok := a.representativePod(f.self.Name)
	elsewhere, gone := ok && pod.NodeName != "", a.set.Name == "" || !a.set.Deleted.IsZero()
	key := "restarts/" + a.key
	wait := restarts - f.lasted(key)
	if !f.unseenSince.IsZero() || !s.AppIsVMI || !was || elsewhere || gone || wait <= 0 {
		return s, verdict{}
	}
	s.ScheduledOnThisNode, s.AppKubeStatus = true, types.AppKubeNotRunning
	return s, verdict{keys: []string{key}, again: wait}
}

// seen tells what the pods of a complete table say.
func (a app) seen(s *types.ENClusterAppStatus, self string) {
	pod, ok := a.representativePod(self)
	if !ok {
		s.AppKubeStatus = types.AppKubeNotInCluster
		return
	}
	s.AppKubeStatus = types.AppKubeNotRunning
	if pod.Phase == types.PodRunning {
		s.AppKubeStatus, s.StatusRunning = types.AppKubeRunning, true
	}
	s.ScheduledOnThisNode = self != "" && pod.NodeName == self
	if s.AppIsVMI {
		s.VMIName = pod.VMIName()
		s.VNCPort = firstVNCPort + a.cfg.FixedResources.VncDisplay
	}
}

// snapshot is a look under the repair lease.
type snapshot struct {
	at          time.Duration // uptime
	nodes       []types.Node
	storage     types.Storage
	attachments []types.Attachment // of the lost node
	alive       string             // why the lost node may not be gone, "" where it is
	answers     string             // which node its device has just answered, "" for none
}

// lookAgain looks at what was true at the decision, now that no other node acts.
func (w *worker) lookAgain(ctx context.Context) error {
	if h, ok := w.hears.Get(types.Global); ok && h.at > w.heard {
		w.others, w.dropped = h.others, h.dropped // the decision may be as old as actTimeout
		if w.snapshot.at == 0 {
			w.words, w.heard = h.words, h.at // the wait for the repair lease makes no word older: the steps have gone on
		}
	}
	s := snapshot{at: w.uptime()}
	var err error
	if s.nodes, err = w.FreshNodes(ctx); err != nil {
		return fmt.Errorf("check node %s: %w", w.lost.Name, err)
	}
	named := func(name string) int {
		return slices.IndexFunc(s.nodes, func(n types.Node) bool { return n.Name == name })
	}
	i := named(w.lost.Name)
	switch {
	case named(w.self.Name) < 0: // it is of another cluster, or has nobody in it: a Node that is back would be missing as well
		return fmt.Errorf("check node %s: node %s is not in the list of nodes", w.lost.Name, w.self.Name)
	case i >= 0 && (w.deleted || s.nodes[i].UID != w.lost.UID || s.nodes[i].Ready == types.ConditionTrue):
		return fmt.Errorf("node %s is back: %w", w.lost.Name, types.ErrConflict)
	case i < 0 && !w.deleted:
		return fmt.Errorf("node %s has just been deleted: %w", w.lost.Name, types.ErrConflict)
	}
	if s.alive, s.answers, err = w.alive(ctx, s.nodes); err != nil {
		return err
	}
	if s.storage, err = w.Storage(ctx, ""); err != nil {
		return fmt.Errorf("read volumes: %w", err)
	}
	if s.attachments, err = w.NodeAttachments(ctx, w.lost.Name); err != nil {
		return fmt.Errorf("attachments of %s: %w", w.lost.Name, err)
	}
	w.snapshot = s
	return nil
}

// alive says why the lost node may not be gone, as far as fresh rows tell, "" for
// nothing, and which node its device has just answered. Of a word that has changed since the
// last look nobody knows when it did: repairs of one node wait for one another.
func (w *worker) alive(ctx context.Context, fresh []types.Node) (why, answers string, err error) {
	nodes := map[string]types.Node{}
	for _, n := range fresh {
		nodes[n.Name] = n
	}
	now, uptime := w.now(), w.uptime()
	if uptime-w.heard > types.WitnessFresh {
		return "", "", fmt.Errorf("check node %s: %w", w.lost.Name, errLate)
	}
	w.words, w.heard = w.words.Hear(nodes, true, uptime), uptime
	seen := w.words.Seen(now, uptime)
	gone, renewed := types.Gone, nodes[w.lost.Name].RenewedAt
	if w.deleted { // its Lease is asked for after the list of nodes, as volumes are, and makes that no older
		gone = types.Silent
		if renewed, err = w.NodeLease(ctx, w.lost.Name); err != nil {
			return "", "", fmt.Errorf("read the Lease of %s: %w", w.lost.Name, err)
		}
	}
	answers = types.Answers(w.lost, nodes, seen, now)
	if absent := w.deleted && renewed.IsZero(); !absent && !renewed.Equal(w.renewed) {
		return fmt.Sprintf("the Lease of %s was renewed", w.lost.Name), answers, nil
	}
	if gone, why := gone(w.lost, nodes, seen, now); !gone {
		return why, answers, nil
	}
	return "", answers, nil
}

// refusalReason says why an application must not be taken away after all.
func (w *worker) refusalReason(t target) error {
	switch why := redundant(t.claims, w.lost.Name, w.snapshot.storage, w.snapshot.nodes); {
	case t.force && w.snapshot.answers != "":
		return errors.New(w.snapshot.answers)
	case t.force:
		return nil
	case w.snapshot.alive != "":
		return errors.New(w.snapshot.alive)
	case why != "":
		return errors.New(why)
	}
	return nil
}

// redundant says for which volume there is no proof that its data is whole on a
// node that is ready, other than the lost one; "" for none. Where several
// volumes have been of one claim, each has to be.
func redundant(claims []string, lost string, s types.Storage, nodes []types.Node) string {
	for _, claim := range claims {
		known := false
		for _, v := range s.Volumes {
			if v.Claim != claim {
				continue
			}
			known = true
			if why := unsafe(v, lost, nodes); why != "" {
				return fmt.Sprintf("Its volume %s %s.", claim, why)
			}
		}
		if !known {
			return fmt.Sprintf("The replicas of its volume %s are unknown.", claim)
		}
	}
	return ""
}

// unsafe says why a volume must not be taken from the lost node, "" for nothing.
func unsafe(v types.Volume, lost string, nodes []types.Node) string {
	ready := func(name string) bool {
		return name != lost && slices.ContainsFunc(nodes, func(n types.Node) bool {
			return n.Name == name && n.Ready == types.ConditionTrue && !n.OutOfService
		})
	}
	switch {
	case len(v.Also) > 0:
		return "migrates"
	case v.Running && ready(v.Engine):
		return "" // it is attached elsewhere already
	case v.Robustness == "faulted":
		return "is faulted"
	case !slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return ready(r.Node) && healthyReplica(v, r) }):
		return "has no healthy replica on another Ready node"
	}
	return ""
}

// healthyReplica reports whether a replica has all data, and keeps it: whole when it was last
// seen, in use by the engine that wrote last, where one is known, and not being deleted.
func healthyReplica(v types.Volume, r types.Replica) bool {
	mode := func(r types.Replica) string { return cmp.Or(r.Mode, r.LastMode) }
	known := v.Running || slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return mode(r) != "" })
	return !r.HealthyAt.IsZero() && r.FailedAt.IsZero() && r.Deleted.IsZero() && (!known || mode(r) == "RW")
}
