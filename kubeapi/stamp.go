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
