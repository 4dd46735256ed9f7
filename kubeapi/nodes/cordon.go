package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const cordonedBy = "zedkube"

// ErrNotOurs is returned for a node that zedkube has not cordoned.
var ErrNotOurs = errors.New("it carries no cordon of zedkube's")

// Cordon keeps new pods off the node and writes on it who did and why, both in
// one patch. A cordon of ours that stands is dated again and no longer kept
// (KeepCordon); one made by somebody else, or for disabled workloads, is left as it is,
// and so is any by one for disabled workloads: it is not theirs to undo.
func (c *Client) Cordon(ctx context.Context, node string, cordon types.Cordon) error {
	cordon.By = cordonedBy
	text, err := json.Marshal(cordon)
	if err != nil {
		return fmt.Errorf("cordon node %s: %w", node, err)
	}
	return c.patchNode(ctx, "cordon", node, asCordon, func(n *corev1.Node) (access.Values, error) {
		_, keeps := n.Annotations[KeepAnnotation]
		switch {
		case n.Spec.Unschedulable && (ourCordon(n) == nil || ourCordon(n).Kind != "" || cordon.Kind != ""):
			return nil, nil
		case n.Spec.Unschedulable && n.Annotations[CordonAnnotation] == string(text) && !keeps:
			return nil, nil
		}
		return appliedCordon(n, string(text), keeps, cordon.Kind), nil
	})
}

// Uncordon undoes a Cordon, unless it is kept (KeepCordon). A cordon made by
// somebody else is left as it is, with whatever note stands beside it: the note
// goes with the cordon, or where there is none.
func (c *Client) Uncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon", node, asDrain, func(n *corev1.Node) (access.Values, error) {
		keep, keeps := n.Annotations[KeepAnnotation]
		_, noted := n.Annotations[CordonAnnotation]
		switch {
		case ourCordon(n) != nil && (keep == "true" || ourCordon(n).Kind != ""):
			return nil, nil
		case ourCordon(n) != nil:
			return noCordon(), nil
		case !n.Spec.Unschedulable && (keeps || noted):
			return access.AnnotationsPatch(access.Values{CordonAnnotation: nil, KeepAnnotation: nil}), nil
		}
		return nil, nil
	})
}

// OperatorUncordon undoes what an operator may undo: a cordon that is kept, and one of somebody
// else. One of a drain or of disabled workloads ends with what made it: ErrOwnCordon.
func (c *Client) OperatorUncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon", node, asDrain, func(n *corev1.Node) (access.Values, error) {
		cordon := ourCordon(n)
		switch {
		case !n.Spec.Unschedulable:
			return nil, nil
		case cordon != nil && (cordon.Kind != "" || n.Annotations[KeepAnnotation] != "true"):
			return nil, types.ErrOwnCordon
		}
		return noCordon(), nil
	})
}

// UncordonWorkloads undoes a Cordon for disabled workloads, and no other.
func (c *Client) UncordonWorkloads(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon", node, asDrain, func(n *corev1.Node) (access.Values, error) {
		if cordon := ourCordon(n); cordon == nil || cordon.Kind != types.CordonWorkloads {
			return nil, nil
		}
		return noCordon(), nil
	})
}

// noCordon takes off a cordon of ours and all that stands beside it.
func noCordon() access.Values {
	patch := access.AnnotationsPatch(access.Values{CordonAnnotation: nil, KeepAnnotation: nil})
	patch["spec"] = access.Values{"unschedulable": nil}
	return patch
}

// UncordonLegacy undoes a cordon that is not ours and that Kubernetes
// noticed before the given time: one that EVE's own zedkube left behind, which
// wrote it, or may have on a node without a fresh stamp and without a note of ours. EVE's
// leaves such a note where it is, from a cordon of ours that it has undone: it goes too. Where any of that cannot
// be told, nothing is done. On a node without a stamp it has to come before the
// first Stamp.
func (c *Client) UncordonLegacy(ctx context.Context, node string, before time.Time) error {
	return c.patchNode(ctx, "uncordon", node, asDrain, func(n *corev1.Node) (access.Values, error) {
		_, noted := n.Annotations[CordonAnnotation]
		row, since := c.Stamps.Listed(NodeOf(n)), taintedAt(n)
		switch {
		case !n.Spec.Unschedulable || row.CordonedBy != nil || since.IsZero() || !since.Before(before):
		case row.CordonedByEVE() && noted:
			return noCordon(), nil
		case row.CordonedByEVE() || row.Foreign() && !noted:
			return access.Values{"spec": access.Values{"unschedulable": nil}}, nil
		}
		return nil, nil
	})
}

// KeepCordon marks a cordon of ours as the operator's: Uncordon leaves it
// alone, the next Cordon takes the mark off. It is an error where none stands.
func (c *Client) KeepCordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "keep cordon of", node, asDrain, func(n *corev1.Node) (access.Values, error) {
		switch {
		case ourCordon(n) == nil:
			return nil, ErrNotOurs
		case n.Annotations[KeepAnnotation] == "true":
			return nil, nil
		}
		return access.AnnotationsPatch(access.Values{KeepAnnotation: "true"}), nil
	})
}

// Unkeep takes the mark of KeepCordon off the node, whatever cordon stands.
func (c *Client) Unkeep(ctx context.Context, node string) error {
	return c.annotate(ctx, "unkeep cordon of", node, asDrain, KeepAnnotation, "")
}

// annotate gives a Node the annotation, or takes it off where the text is "".
func (c *Client) annotate(ctx context.Context, act, node string, how patching, key, text string) error {
	return c.patchNode(ctx, act, node, how, func(n *corev1.Node) (access.Values, error) {
		old, there := n.Annotations[key]
		switch {
		case text == "" && there:
			return access.AnnotationsPatch(access.Values{key: nil}), nil
		case text == "" || there && old == text:
			return nil, nil
		}
		return access.AnnotationsPatch(access.Values{key: text}), nil
	})
}

// DeleteNode deletes this very Node, not a namesake, and where the row has a
// ResourceVersion only as it was then. It returns nil when it is gone, or goes as
// soon as its finalizers allow, and an error that wraps types.ErrConflict when
// another Node has its name by now, or it has changed.
func (c *Client) DeleteNode(ctx context.Context, node types.Node) error {
	act := "delete node " + node.Name
	if node.UID == "" {
		return fmt.Errorf("%s: its UID is not known", act)
	}
	only := access.Exactly(node.UID)
	if node.ResourceVersion != "" {
		only = access.Exactly(node.UID, node.ResourceVersion)
	}
	op := access.Operation{Op: "delete node", Target: "node/" + node.Name}
	return c.Write(ctx, op, act, func(ctx context.Context, conn *access.Connection) error {
		return access.UnlessGone(conn.Kube.CoreV1().Nodes().Delete(ctx, node.Name, only))
	})
}

// appliedCordon is a cordon of ours, which nobody keeps, as server-side apply
// takes it. With the uid of a Node that is gone it is a conflict: without one
// the API server would make a Node of it.
func appliedCordon(n *corev1.Node, note string, keeps bool, kind string) access.Values {
	notes := access.Values{CordonAnnotation: note}
	switch {
	case kind != "":
		notes[KeepAnnotation] = "true" // releases that know no kind leave it alone after a drain
	case keeps:
		notes[KeepAnnotation] = "false" // what others own cannot be taken off in the same patch
	}
	return access.Values{
		"apiVersion": "v1", "kind": "Node",
		"metadata": access.Values{"name": n.Name, "uid": string(n.UID), "annotations": notes},
		"spec":     access.Values{"unschedulable": true},
	}
}

// patching is how a Node is patched.
type patching struct {
	manager     string
	kind        ktypes.PatchType
	subresource []string
}

var (
	asDrain = patching{manager: access.DrainManager, kind: ktypes.MergePatchType}
	asApps  = patching{manager: access.AppsManager, kind: ktypes.MergePatchType}
	asAgent = patching{manager: AgentManager, kind: ktypes.MergePatchType}
	// A cordon is applied: of those who update a Node the API server remembers
	// ten, of those who apply all. So it is known for ours however many write
	// on the Node while it stands.
	asCordon = patching{manager: access.DrainManager, kind: ktypes.ApplyPatchType}
)

// options of the patch. To apply asks for force where an earlier release of ours,
// which did not apply, owns the same fields; who else cordons is asked before.
func (p patching) options() metav1.PatchOptions {
	o := metav1.PatchOptions{FieldManager: p.manager}
	if p.kind == ktypes.ApplyPatchType {
		o.Force = new(true)
	}
	return o
}

// patchNode sends what change makes of the fresh Node, nothing if that is nil.
// It is a patch and never an update: an update drops every field that this
// build's types do not know. It is for the version that change saw, so that
// what happened in between is a conflict and not overwritten, nor a write that
// comes late taken.
func (c *Client) patchNode(ctx context.Context, act, node string, how patching, change func(*corev1.Node) (access.Values, error)) error {
	op := strings.TrimSuffix(strings.TrimSuffix(act, " of"), " on")
	return c.Write(ctx, access.Operation{Op: op, Target: "node/" + node}, act+" node "+node, func(ctx context.Context, conn *access.Connection) error {
		api := conn.Kube.CoreV1().Nodes()
		return access.RetryOnConflict(func() error { // everybody writes on Nodes
			n, err := api.Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if n.Name != node || n.ResourceVersion == "" { // a patch without a version is never a conflict
				return access.ErrOther
			}
			patch, err := change(n)
			if patch == nil || err != nil {
				return err
			}
			data, err := json.Marshal(access.ForVersion(n.ResourceVersion, patch))
			if err != nil {
				return err
			}
			n, err = api.Patch(ctx, node, how.kind, data, how.options(), how.subresource...)
			if err == nil && n.Name != node {
				return access.ErrOther
			}
			return err
		})
	})
}
