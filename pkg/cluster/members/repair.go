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
		return "node " + t.node.Name + " is no longer among the cluster's masters"
	}
	return "the drain lock was left over from the removal of a member"
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

// cordonTieBreaker cordons the tie-breaker and asks its pods to go, if all members still
// agree that it is one.
func (r repair) cordonTieBreaker(ctx context.Context) (reason string, err error) {
	nodes, err := listed(ctx, r, r.own)
	if err != nil {
		return "", err
	}
	if why := r.differentlyConfigured(nodes, onTie); why != "" {
		return why, nil
	}
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
			reason = fmt.Sprintf("a PodDisruptionBudget prevents the eviction of pod %s from the tie-breaker", p.Key())
		case err != nil:
			errs = append(errs, err)
		}
	}
	return reason, errors.Join(errs...)
}

// removal is the removal of the stale Node, if every rule still holds.
func (r repair) removal() Removal {
	return Removal{
		Remover: r.Kube, Own: r.own, Node: r.node, Late: r.past.long(r.node),
		Judge:   func(_ context.Context, nodes []types.Node) (string, error) { return r.judge(nodes), nil },
		Reason:  "StaleMemberRemoved",
		Message: fmt.Sprintf("node %s (%s) is no longer among the cluster's masters: node %s removed it", r.node.Name, r.node.UUID, r.own.Name),
	}
}

// judge says why the Node is not to be removed after all.
func (r repair) judge(nodes []types.Node) string {
	for _, n := range stale(nodes, r.configured) {
		if n.Name == r.node.Name && n.UID == r.node.UID {
			return r.notRemovable(n, nodes)
		}
	}
	return "node " + r.node.Name + " is no longer stale"
}
