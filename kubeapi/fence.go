package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

var errNoAuthor = errors.New("it does not say who fences")

// appsManager is the field manager of what is written for applications.
const appsManager = "zedkube-apps"

// asApps patches a Node for the applications on it.
func asApps() patching { return patching{manager: appsManager, kind: ktypes.MergePatchType} }

// fenceTaint makes Kubernetes delete the pods of a node, and detach its
// volumes, without waiting for its kubelet.
func fenceTaint() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
}

func isFence(t corev1.Taint) bool {
	f := fenceTaint()
	return t.MatchTaint(&f) && t.Value == f.Value
}

// fenceOf says whether the Node is out of service, and by which fence of ours.
func fenceOf(n *corev1.Node) (outOfService bool, ours *types.Fence) {
	outOfService = slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	fence, ok := annotated[types.Fence](n.Annotations, fenceAnnotation)
	if !ok || fence.By == "" || !slices.ContainsFunc(n.Spec.Taints, isFence) {
		return outOfService, nil
	}
	return outOfService, &fence
}

// witnessOf is nil where the node's zedkube has nothing to say.
func witnessOf(n *corev1.Node) *types.Witness {
	w, ok := annotated[types.Witness](n.Annotations, witnessAnnotation)
	if !ok || none(w) {
		return nil
	}
	return &w
}

func none(w types.Witness) bool { return w.Round == 0 && len(w.Sightings) == 0 }

// Fence takes this very node out of service: taint and annotation in one patch,
// for the version that was looked at. It returns an error that wraps
// types.ErrConflict while the node is Ready, when another one has its name, and
// when somebody else has taken it out of service. A fence of ours that stands
// stays as it is.
func (c *Client) Fence(ctx context.Context, node types.Node, fence types.Fence) error {
	act := "fence node " + node.Name
	switch {
	case node.UID == "":
		return fmt.Errorf("%s: %w", act, errNoUID)
	case fence.By == "":
		return fmt.Errorf("%s: %w", act, errNoAuthor)
	}
	text, err := annotation(fence)
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.patchNode(ctx, "fence", node.Name, asApps(), func(n *corev1.Node) (values, error) {
		out, ours := fenceOf(n)
		ready := conditionOf(n, corev1.NodeReady)
		switch {
		case string(n.UID) != node.UID:
			return nil, fmt.Errorf("%w: another node has its name", types.ErrConflict)
		case ready != nil && ready.Status == corev1.ConditionTrue:
			return nil, fmt.Errorf("%w: it is Ready", types.ErrConflict)
		case out && ours == nil:
			return nil, fmt.Errorf("%w: somebody else has taken it out of service", types.ErrConflict)
		case out:
			return nil, nil
		}
		patch := annotationsPatch(values{fenceAnnotation: text})
		patch["spec"] = values{"taints": append(slices.Clone(n.Spec.Taints), fenceTaint())}
		return patch, nil
	})
}

// Unfence takes back a fence of ours on this very node, and leaves alone what
// carries no annotation of ours.
func (c *Client) Unfence(ctx context.Context, node types.Node) error {
	return c.patchNode(ctx, "unfence", node.Name, asApps(), func(n *corev1.Node) (values, error) {
		fence, ok := annotated[types.Fence](n.Annotations, fenceAnnotation)
		switch {
		case string(n.UID) != node.UID:
			return nil, fmt.Errorf("%w: another node has its name", types.ErrConflict)
		case !ok || fence.By == "":
			return nil, nil
		}
		patch := annotationsPatch(values{fenceAnnotation: nil})
		if slices.ContainsFunc(n.Spec.Taints, isFence) {
			patch["spec"] = values{"taints": slices.DeleteFunc(slices.Clone(n.Spec.Taints), isFence)}
		}
		return patch, nil
	})
}

// Witness writes on the node what its zedkube sees of others; a zero one is
// removed.
func (c *Client) Witness(ctx context.Context, node string, w types.Witness) error {
	text, err := annotation(w)
	if err != nil {
		return fmt.Errorf("witness on node %s: %w", node, err)
	}
	return c.patchNode(ctx, "witness on", node, asApps(), func(n *corev1.Node) (values, error) {
		old, there := n.Annotations[witnessAnnotation]
		switch {
		case none(w) && there:
			return annotationsPatch(values{witnessAnnotation: nil}), nil
		case none(w) || there && old == text:
			return nil, nil
		}
		return annotationsPatch(values{witnessAnnotation: text}), nil
	})
}
