package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// designatedAnnotation is in docs/wire.md, "Nodes".
const designatedAnnotation = "zedkube.github.io/designated"

// designatedOf is nil where the node's zedkube has nothing to say.
func designatedOf(n *corev1.Node) *types.Designations {
	d, ok := annotated[types.Designations](n.Annotations, designatedAnnotation)
	if !ok || d.Equal(types.Designations{}) {
		return nil
	}
	return &d
}

// Designate writes on the node of which applications it is the designated one; a
// zero d is removed.
func (c *Client) Designate(ctx context.Context, node string, d types.Designations) error {
	text, err := annotation(d)
	if err != nil {
		return fmt.Errorf("designations on node %s: %w", node, err)
	}
	none := d.Equal(types.Designations{})
	return c.patchNode(ctx, "set designations of", node, asApps(), func(n *corev1.Node) (values, error) {
		old, there := n.Annotations[designatedAnnotation]
		switch {
		case none && there:
			return annotationsPatch(values{designatedAnnotation: nil}), nil
		case none || there && old == text:
			return nil, nil
		}
		return annotationsPatch(values{designatedAnnotation: text}), nil
	})
}
