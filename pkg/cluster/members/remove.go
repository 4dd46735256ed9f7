package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/alive"
	"github.com/zedkube/zedkube/types"
)

const (
	// goneWithin is how long a deleted Node has to go: k3s keeps it until its
	// member has left etcd.
	goneWithin  = 10 * time.Second
	lookEvery   = 3 * time.Second
	freeTimeout = 10 * time.Second
)

// errOtherCluster is of a list that nothing may be concluded from.
var errOtherCluster = errors.New("this node is not in the list of nodes: the list is of another cluster, or the Node has just been deleted")

// errLocked is wrapped where this node may still hold the drain lock.
var errLocked = errors.New("the drain lock may still be held for it")

// Remover is what a removal does to the cluster.
type Remover interface {
	// FreshNodes lists the nodes with the renewals of their kubelets.
	FreshNodes(ctx context.Context) ([]types.Node, error)
	// DrainLock returns the lock; SetDrainLock and FreeDrainLock change the one of
	// that Version, or fail with an error that wraps types.ErrConflict.
	DrainLock(ctx context.Context) (types.DrainLock, error)
	SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
	// DeleteNode deletes this very Node, not a namesake, and where the row has a
	// ResourceVersion only as it was then.
	DeleteNode(ctx context.Context, node types.Node) error
	// Event tells people.
	Event(ctx context.Context, e types.Event) error
}

// Removal is the removal of one member's Node, by the agent or by an operator. It
// is made by who has the repair lease (docs/wire.md, "Repair lease").
type Removal struct {
	Remover
	Own, Node types.Node
	// Judge says why the Node is not to be removed after all, "" for nothing. It is
	// asked of Nodes that were just read: before the drain lock is taken, and under it.
	Judge func(ctx context.Context, nodes []types.Node) (why string, err error)
	// Late is whether the lock that the Node itself has held since it went down is
	// waited for no longer.
	Late    bool
	Reason  string // of the Event
	Message string // its message
}

// listed lists the nodes again. In a list with nobody in it nobody disagrees, and
// every Node that was to be deleted is gone: one without the own node is an error.
func listed(ctx context.Context, kube Remover, own types.Node) ([]types.Node, error) {
	nodes, err := kube.FreshNodes(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.Name == own.Name }) {
		return nil, errOtherCluster
	}
	return nodes, nil
}

// Do deletes the Node under the drain lock, so that no other member goes down
// meanwhile. Where the Node was not deleted, or is still there, hinders says why, a
// sentence; deleted is whether it was.
func (r Removal) Do(ctx context.Context) (deleted bool, reason string, err error) {
	former, err := r.DrainLock(ctx)
	if err != nil {
		return false, "", err
	}
	nodes, err := listed(ctx, r, r.Own)
	if err != nil {
		return false, "", err
	}
	if why, err := r.Judge(ctx, nodes); why != "" || err != nil {
		return false, why, err
	}
	if why := r.lockUnavailable(former, nodes); why != "" {
		return false, why, nil
	}
	lock, err := r.SetDrainLock(ctx, types.DrainLock{
		Holder: r.Own.Name, BootID: r.Own.BootID, Since: time.Now().UTC(), Task: types.TaskMembers, Version: former.Version,
	})
	switch {
	case errors.Is(err, types.ErrConflict):
		return false, "", err
	case err != nil:
		return false, "", fmt.Errorf("%w: %w", errLocked, err)
	}
	gone := false
	defer func() { err = errors.Join(err, r.restoreLock(ctx, lock, former, gone)) }()
	fresh := func(ctx context.Context) ([]types.Node, error) { return listed(ctx, r, r.Own) }
	if nodes, err = alive.Nodes(ctx, fresh, nodes); err != nil {
		return false, "", err
	}
	if why, err := r.Judge(ctx, nodes); why != "" || err != nil {
		return false, why, err
	}
	if why, err := r.stillLocked(ctx, lock); why != "" || err != nil {
		return false, why, err
	}
	if gone, err = r.deleteNode(ctx, nodes); err != nil || gone {
		return gone, "", err
	}
	return true, "node " + r.Node.Name + " is being deleted, and remains until its member has left etcd", nil
}

// lockUnavailable says why the drain lock is not available, "" for it is. Only who
// has the repair lease holds it for a member, so such a one is left over. What
// the stale node itself holds while it is down it may hold for ever: it is down in
// a drain that it was told to make, and gets patience to come back.
func (r Removal) lockUnavailable(lock types.DrainLock, nodes []types.Node) string {
	if lock.Task == types.TaskMembers {
		return ""
	}
	for _, n := range nodes {
		switch {
		case n.Name != lock.Holder:
		case n.Name != r.Node.Name || n.Ready == types.ConditionTrue:
			return "node " + lock.Holder + " holds the drain lock"
		case !lock.Ended && !r.Late:
			return "node " + lock.Holder + " holds the drain lock and may be rebooting: waiting for it for " + patience.String() + " at most; " + command(n)
		}
	}
	return ""
}

// stillLocked says who has taken the lock away meanwhile, "" for nobody.
func (r Removal) stillLocked(ctx context.Context, mine types.DrainLock) (why string, err error) {
	lock, err := r.DrainLock(ctx)
	if err != nil || lock.Holder == mine.Holder && lock.Task == mine.Task && lock.BootID == mine.BootID {
		return "", err
	}
	return "this node no longer holds the drain lock", nil
}

// deleteNode deletes the Node as the last look saw it, waits for it to go and tells
// people. A deletion without an answer is settled by looking as well.
func (r Removal) deleteNode(ctx context.Context, seen []types.Node) (gone bool, err error) {
	node := r.Node
	if i := slices.IndexFunc(seen, func(n types.Node) bool { return n.UID == r.Node.UID }); i >= 0 {
		node = seen[i] // with its version: a Node that has changed since is not deleted
	}
	unanswered := r.DeleteNode(ctx, node)
	if unanswered != nil && !errors.Is(unanswered, types.ErrNoAnswer) {
		return false, unanswered
	}
	for ends := time.Now().Add(goneWithin); ; {
		nodes, err := listed(ctx, r, r.Own)
		if err != nil {
			return false, errors.Join(unanswered, err)
		}
		if !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.UID == r.Node.UID }) {
			break
		}
		if time.Now().After(ends) {
			return false, unanswered
		}
		if err := pause(ctx, lookEvery); err != nil {
			return false, err
		}
	}
	// That nobody could be told does not undo it.
	_ = r.Event(ctx, types.Event{Node: r.Node.Name, Warning: true, Reason: r.Reason, Message: r.Message})
	return true, nil
}

// restoreLock gives the drain lock back: to the stale node if that is still there
// and had it, for it is down in the middle of a drain or of a change of its k3s.
func (r Removal) restoreLock(ctx context.Context, lock, former types.DrainLock, gone bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
	defer cancel()
	var err error
	if !gone && former.Holder == r.Node.Name && former.Task != types.TaskMembers {
		former.Version = lock.Version
		_, err = r.SetDrainLock(ctx, former)
	} else {
		err = r.FreeDrainLock(ctx, lock)
	}
	if err == nil || errors.Is(err, types.ErrConflict) { // it is another's by now
		return nil
	}
	return fmt.Errorf("%w: %w", errLocked, err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
