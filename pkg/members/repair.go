package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// repair is one repair under the right to it.
type repair struct {
	Kube
	own types.Node
	task
}

// why says what the task is for.
func (t task) why() string {
	switch t.kind {
	case tie:
		return "node " + t.node.Name + " is the cluster's tie-breaker"
	case remove:
		return "node " + t.node.Name + " is not among the cluster's masters any more"
	}
	return "the drain lock was left from the removal of a member"
}

// unlock frees the lock if this node took it to remove a member and did not give
// it back. Nobody else would: the node is up and has not rebooted.
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
