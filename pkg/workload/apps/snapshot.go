package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

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
// nothing, and which node its device has just answered.
func (w *worker) alive(ctx context.Context, fresh []types.Node) (why, answers string, err error) {
	nodes := map[string]types.Node{}
	for _, n := range fresh {
		nodes[n.Name] = n
	}
	gone, renewed := types.Gone, nodes[w.lost.Name].RenewedAt
	if w.deleted {
		gone = types.Silent
		if renewed, err = w.NodeLease(ctx, w.lost.Name); err != nil {
			return "", "", fmt.Errorf("read the Lease of %s: %w", w.lost.Name, err)
		}
	}
	w.words = collectWitnesses(w.words, nodes, w.uptime())
	now := w.now()
	seen := witnessed(w.words, now, w.uptime())
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
