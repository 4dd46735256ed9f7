package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

// Stamp writes the stamp on the node. The API server dates what this field
// manager changes, to the second (types.Node.StampedAt); a stamp that says
// nothing new is not written, nor dated.
func (c *Client) Stamp(ctx context.Context, node string, stamp types.AgentStamp) error {
	text, err := json.Marshal(stamp)
	if err != nil {
		return fmt.Errorf("stamp node %s: %w", node, err)
	}
	how := patching{manager: agentManager, kind: ktypes.MergePatchType}
	return c.patchNode(ctx, "stamp", node, how, func(n *corev1.Node) (values, error) {
		if n.Annotations[agentAnnotation] == string(text) {
			return nil, nil
		}
		return annotationsPatch(values{agentAnnotation: string(text)}), nil
	})
}

// ForgetStamp takes the stamp off the node, and what its agent said of other nodes
// and of applications, where the stamp is still the one of the row; else its error wraps
// types.ErrConflict.
func (c *Client) ForgetStamp(ctx context.Context, node types.Node) error {
	how := patching{manager: agentManager, kind: ktypes.MergePatchType}
	return c.patchNode(ctx, "forget stamp of", node.Name, how, func(n *corev1.Node) (values, error) {
		row := nodeOf(n)
		switch {
		case row.Agent == nil:
			return nil, nil
		case node.Agent == nil || !seenOf(row).same(seenOf(node)):
			return nil, fmt.Errorf("its agent has written it again: %w", types.ErrConflict)
		}
		return annotationsPatch(values{agentAnnotation: nil, witnessAnnotation: nil, designatedAnnotation: nil}), nil
	})
}
