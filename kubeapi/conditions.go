package kubeapi

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

// SetDrainConditions shows the drain in the conditions of the node, and writes
// only what differs. The conditions of others are not touched.
func (c *Client) SetDrainConditions(ctx context.Context, node string, conditions types.DrainConditions) error {
	// By type, as the strategic patch merges them.
	how := patching{manager: drainManager, kind: ktypes.StrategicMergePatchType, subresource: []string{"status"}}
	return c.patchNode(ctx, "set drain conditions of", node, how, func(n *corev1.Node) (values, error) {
		now := metav1.NewTime(time.Now())
		var changed []values
		for kind, holds := range map[corev1.NodeConditionType]bool{
			conditionDrainInProgress: conditions.InProgress,
			conditionDrained:         conditions.Drained,
		} {
			status, since := corev1.ConditionFalse, now
			if holds {
				status = corev1.ConditionTrue
			}
			if old := conditionOf(n, kind); old != nil && old.Status == status {
				if old.Reason == conditions.Reason && old.Message == conditions.Message {
					continue
				}
				since = old.LastTransitionTime
			}
			changed = append(changed, values{ // also what is empty, or the old text would stay
				"type": kind, "status": status, "reason": conditions.Reason, "message": conditions.Message,
				"lastTransitionTime": since, "lastHeartbeatTime": now,
			})
		}
		if changed == nil {
			return nil, nil
		}
		return values{"status": values{"conditions": changed}}, nil
	})
}

// conditionOf is nil where the Node has no such condition.
func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i, c := range n.Status.Conditions {
		if c.Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}
