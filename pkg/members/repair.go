package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// provenWithin is how long a kubelet has to show itself alive: a Ready
	// condition may be 40 s old, and a kubelet renews its Lease every 10 s.
	provenWithin = 20 * time.Second
	lookEvery    = 3 * time.Second
	freeTimeout  = 10 * time.Second
)

// repair is one repair under the right to it.
type repair struct {
	Kube
	own types.Node
	task
}

// unlock frees the lock if a former process of this node took it to remove a
// member. Nobody else would: the node is up and has not rebooted.
func (r repair) unlock(ctx context.Context) error {
	lock, err := r.DrainLock(ctx)
	if err != nil || lock.Holder != r.own.Name || lock.Task != types.TaskMembers {
		return err
	}
	return r.FreeDrainLock(ctx, lock)
}

// quieten cordons the tie-breaker and asks its pods to go.
func (r repair) quieten(ctx context.Context) (hinders string, err error) {
	if !r.node.Unschedulable {
		cordon := types.Cordon{Reason: "this node is the cluster's tie-breaker", Since: time.Now().UTC().Round(0)}
		if err := r.Cordon(ctx, r.node.Name, cordon); err != nil {
			return "", err
		}
	}
	var errs []error
	for _, p := range r.pods {
		switch err := r.Evict(ctx, p); {
		case errors.Is(err, types.ErrDisruptionBudget):
			hinders = fmt.Sprintf("a PodDisruptionBudget keeps pod %s on the tie-breaker", p.Key())
		case err != nil:
			errs = append(errs, err)
		}
	}
	return hinders, errors.Join(errs...)
}

// remove deletes the stale Node under the drain lock, so that no other member
// goes down meanwhile, if every rule still holds of Nodes read afresh.
func (r repair) remove(ctx context.Context) (hinders string, err error) {
	lock, err := r.DrainLock(ctx)
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
	if why := untakeable(lock, r.node.Name, nodes); why != "" {
		return why, nil
	}
	lock, err = r.SetDrainLock(ctx, types.DrainLock{
		Holder: r.own.Name, BootID: r.own.BootID, Since: time.Now().UTC(), Task: types.TaskMembers, Version: lock.Version,
	})
	if err != nil {
		return "", err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
		defer cancel()
		err = errors.Join(err, r.FreeDrainLock(ctx, lock))
	}()
	if nodes, err = r.alive(ctx, nodes); err != nil {
		return "", err
	}
	if why := r.judge(nodes); why != "" {
		return why, nil
	}
	if err := r.DeleteNode(ctx, r.node); err != nil {
		return "", err
	}
	// The deed is done; that nobody could be told does not undo it.
	_ = r.Event(ctx, types.Event{
		Node: r.node.Name, Warning: true, Reason: "StaleMemberRemoved",
		Message: fmt.Sprintf("node %s (%s) is not among the cluster's masters any more: node %s removed it", r.node.Name, r.node.UUID, r.own.Name),
	})
	return "", nil
}

// judge says why the Node is not to be removed after all.
func (r repair) judge(nodes []types.Node) string {
	for _, n := range stale(nodes, r.told) {
		if n.Name == r.node.Name && n.UID == r.node.UID {
			return unfit(n, nodes, r.told)
		}
	}
	return "node " + r.node.Name + " is not stale any more"
}

// untakeable says why the drain lock is not to be had, "" for it is. Only who
// has the right to repair holds it for a member, so such a one is left over; and
// what the stale node itself holds while it is down it would hold for ever.
func untakeable(lock types.DrainLock, target string, nodes []types.Node) string {
	if lock.Task == types.TaskMembers {
		return ""
	}
	for _, n := range nodes {
		if n.Name == lock.Holder && (n.Name != target || n.Ready == types.ConditionTrue) {
			return "node " + lock.Holder + " holds the drain lock"
		}
	}
	return ""
}

// alive returns the nodes as they are once every Ready one has been seen to renew its
// Lease, or provenWithin is over: what has not renewed it by then is not Ready.
// Nobody's clock is believed.
func (r repair) alive(ctx context.Context, before []types.Node) ([]types.Node, error) {
	first := map[string]time.Time{}
	for _, n := range before {
		first[n.Name] = n.RenewedAt
	}
	ends := time.Now().Add(provenWithin)
	for {
		timer := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
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
