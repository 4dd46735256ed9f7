package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// provenWithin is how long a kubelet has to show itself alive: a Ready
	// condition may be 40 s old, and a kubelet renews its Lease every 10 s.
	provenWithin = 20 * time.Second
	// goneWithin is how long a deleted Node has to go: k3s keeps it until its
	// member has left etcd.
	goneWithin  = 10 * time.Second
	lookEvery   = 3 * time.Second
	freeTimeout = 10 * time.Second
)

// errLocked is wrapped where this node may still hold the drain lock.
var errLocked = errors.New("the drain lock may still be held for it")

// remove deletes the stale Node under the drain lock, so that no other member
// goes down meanwhile, if every rule still holds of Nodes read afresh.
func (r repair) remove(ctx context.Context) (hinders string, err error) {
	former, err := r.DrainLock(ctx)
	if err != nil {
		return "", err
	}
	nodes, err := r.FreshNodes(ctx)
	if err != nil {
		return "", err
	}
	if why := r.judge(nodes); why != "" {
		return why, nil
	}
	if why := r.untakeable(former, nodes); why != "" {
		return why, nil
	}
	lock, err := r.SetDrainLock(ctx, types.DrainLock{
		Holder: r.own.Name, BootID: r.own.BootID, Since: time.Now().UTC(), Task: types.TaskMembers, Version: former.Version,
	})
	switch {
	case errors.Is(err, types.ErrConflict):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: %w", errLocked, err)
	}
	gone := false
	defer func() { err = errors.Join(err, r.handBack(ctx, lock, former, gone)) }()
	if nodes, err = r.alive(ctx, nodes); err != nil {
		return "", err
	}
	if why := r.judge(nodes); why != "" {
		return why, nil
	}
	if why, err := r.stillLocked(ctx, lock); why != "" || err != nil {
		return why, err
	}
	if gone, err = r.deleteIt(ctx, nodes); err != nil || gone {
		return "", err
	}
	return "node " + r.node.Name + " is deleted, but stays until its member has left etcd", nil
}

// stillLocked says who has taken the lock away meanwhile, "" for nobody.
func (r repair) stillLocked(ctx context.Context, mine types.DrainLock) (why string, err error) {
	lock, err := r.DrainLock(ctx)
	if err != nil || lock.Holder == mine.Holder && lock.Task == mine.Task && lock.BootID == mine.BootID {
		return "", err
	}
	return "the drain lock was taken away from this node", nil
}

// deleteIt deletes the Node as the last look saw it, waits for it to go and tells
// people. A deletion without an answer is settled by looking as well.
func (r repair) deleteIt(ctx context.Context, seen []types.Node) (gone bool, err error) {
	node := r.node
	if i := slices.IndexFunc(seen, func(n types.Node) bool { return n.UID == r.node.UID }); i >= 0 {
		node = seen[i] // with its version: a Node that has changed since is not deleted
	}
	unanswered := r.DeleteNode(ctx, node)
	if unanswered != nil && !errors.Is(unanswered, types.ErrNoAnswer) {
		return false, unanswered
	}
	for ends := time.Now().Add(goneWithin); ; {
		nodes, err := r.FreshNodes(ctx)
		if err != nil {
			return false, errors.Join(unanswered, err)
		}
		if !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.UID == r.node.UID }) {
			break
		}
		if time.Now().After(ends) {
			return false, unanswered
		}
		if err := pause(ctx, lookEvery); err != nil {
			return false, err
		}
	}
	// The deed is done; that nobody could be told does not undo it.
	_ = r.Event(ctx, types.Event{
		Node: r.node.Name, Warning: true, Reason: "StaleMemberRemoved",
		Message: fmt.Sprintf("node %s (%s) is no longer among the cluster's masters: node %s removed it", r.node.Name, r.node.UUID, r.own.Name),
	})
	return true, nil
}

// handBack gives the drain lock back: to the stale node if that is still there
// and had it, for it is down in the middle of a drain.
func (r repair) handBack(ctx context.Context, lock, former types.DrainLock, gone bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
	defer cancel()
	var err error
	if !gone && former.Holder == r.node.Name && former.Task == "" {
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

// alive returns the nodes as they are once every Ready one has been seen to renew its
// Lease, or provenWithin is over: what has not renewed it by then is not Ready.
// Nobody's clock is believed.
func (r repair) alive(ctx context.Context, before []types.Node) ([]types.Node, error) {
	first := map[string]time.Time{}
	for _, n := range before {
		first[n.Name] = n.RenewedAt
	}
	for ends := time.Now().Add(provenWithin); ; {
		if err := pause(ctx, lookEvery); err != nil {
			return nil, err
		}
		nodes, err := r.FreshNodes(ctx)
		if err != nil {
			return nil, err
		}
		all := true
		for i, n := range nodes {
			if n.Ready == types.ConditionTrue && n.RenewedAt.Equal(first[n.Name]) {
				nodes[i].Ready, all = types.ConditionUnknown, false
			}
		}
		if all || time.Now().After(ends) {
			return nodes, nil
		}
	}
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
