package nodes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// SetDrainConditions shows the drain in the conditions of the node, and writes
// only what differs. The conditions of others are not touched.
func (c *Client) SetDrainConditions(ctx context.Context, node string, conditions types.DrainConditions) error {
	// By type, as the strategic patch merges them.
	how := patching{manager: access.DrainManager, kind: ktypes.StrategicMergePatchType, subresource: []string{"status"}}
	return c.patchNode(ctx, "set drain conditions of", node, how, func(n *corev1.Node) (access.Values, error) {
		now := metav1.NewTime(time.Now())
		var changed []access.Values
		for kind, holds := range map[corev1.NodeConditionType]bool{
			ConditionDrainInProgress: conditions.InProgress,
			ConditionDrained:         conditions.Drained,
		} {
			status, since := corev1.ConditionFalse, now
			if holds {
				status = corev1.ConditionTrue
			}
			if old := access.ConditionOf(n, kind); old != nil && old.Status == status {
				if old.Reason == conditions.Reason && old.Message == conditions.Message {
					continue
				}
				since = old.LastTransitionTime
			}
			changed = append(changed, access.Values{ // also what is empty, or the old text would stay
				"type": kind, "status": status, "reason": conditions.Reason, "message": conditions.Message,
				"lastTransitionTime": since, "lastHeartbeatTime": now,
			})
		}
		if changed == nil {
			return nil, nil
		}
		return access.Values{"status": access.Values{"conditions": changed}}, nil
	})
}

// DesignatedAnnotation is in docs/wire.md, "Nodes".
const DesignatedAnnotation = "zedkube.github.io/designated"

// designatedOf is nil where the node's zedkube has nothing to say.
func designatedOf(n *corev1.Node) *types.Designations {
	d, ok := access.Annotated[types.Designations](n.Annotations, DesignatedAnnotation)
	if !ok || d.Equal(types.Designations{}) {
		return nil
	}
	return &d
}

// Designate writes on the node of which applications it is the designated one; a
// zero d is removed.
func (c *Client) Designate(ctx context.Context, node string, d types.Designations) error {
	text, err := access.Annotation(d)
	if err != nil {
		return fmt.Errorf("designations on node %s: %w", node, err)
	}
	if d.Equal(types.Designations{}) {
		text = ""
	}
	return c.annotate(ctx, "set designations of", node, asApps, DesignatedAnnotation, text)
}

// K3sAnnotation is in docs/wire.md, "Nodes".
const K3sAnnotation = "zedkube.github.io/k3s"

// StampK3s writes on the node what its zedkube says of k3s.
func (c *Client) StampK3s(ctx context.Context, node string, stamp types.K3sStamp) error {
	text, err := access.Annotation(stamp)
	if err != nil {
		return fmt.Errorf("stamp k3s on node %s: %w", node, err)
	}
	return c.annotate(ctx, "stamp k3s on", node, asAgent, K3sAnnotation, text)
}

const (
	eventSource = "zedkube"
	// eventText bounds the message: more is not accepted.
	eventText = 1000
)

// Event writes an Event about the node, the pod or the replica set, as kubectl describe
// and kubectl get events show them. One that says the same about the same
// object as an earlier one is counted there, as long as Kubernetes keeps that
// (an hour).
func (c *Client) Event(ctx context.Context, e types.Event) error {
	event := EventOf(e, time.Now())
	about := event.InvolvedObject.Kind + " " + event.InvolvedObject.Name
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		api := conn.Kube.CoreV1().Events(event.Namespace)
		_, err := api.Create(ctx, event, metav1.CreateOptions{FieldManager: access.DrainManager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := api.Get(ctx, event.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if old.Name != event.Name {
			return access.ErrOther
		}
		again := access.Values{"count": old.Count + 1, "lastTimestamp": event.LastTimestamp}
		_, err = access.Merge(ctx, api, event.Name, access.DrainManager, again)
		return err
	})
	if err != nil {
		return fmt.Errorf("write event %s about %s: %w", e.Reason, strings.ToLower(about), err)
	}
	return nil
}

// EventOf is the Event object for an event.
func EventOf(e types.Event, now time.Time) *corev1.Event {
	event := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: ktypes.UID(e.Pod.UID)},
		Type:           corev1.EventTypeNormal,
		Reason:         e.Reason,
		Message:        access.Cut(e.Message, eventText),
		Source:         corev1.EventSource{Component: eventSource, Host: e.Node},
		FirstTimestamp: metav1.NewTime(now),
		LastTimestamp:  metav1.NewTime(now),
		Count:          1,
	}
	if e.Warning {
		event.Type = corev1.EventTypeWarning
	}
	switch {
	case e.Pod.Name != "":
	case e.Set.Name != "":
		version := appsv1.SchemeGroupVersion
		if e.Set.Kind == types.KindVMIReplicaSet {
			version = kubevirtv1.SchemeGroupVersion
		}
		event.InvolvedObject = corev1.ObjectReference{
			APIVersion: version.String(), Kind: e.Set.Kind, Namespace: access.Namespace, Name: e.Set.Name, UID: ktypes.UID(e.Set.UID),
		}
	default: // as a kubelet does it: a Node has no namespace, an Event has
		event.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: e.Node, UID: ktypes.UID(e.Node)}
	}
	event.Namespace = event.InvolvedObject.Namespace
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
	}
	o := event.InvolvedObject
	same := sha256.Sum256([]byte(strings.Join([]string{o.Kind, o.Name, string(o.UID), event.Type, event.Reason, event.Message}, "\x00")))
	event.Name = fmt.Sprintf("%s.%x", eventSource, same[:16])
	return event
}

var errNoAuthor = errors.New("it does not say which node fences")

// FenceTaint makes Kubernetes delete the pods of a node, and detach its
// volumes, without waiting for its kubelet.
func FenceTaint() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
}

func isFence(t corev1.Taint) bool {
	f := FenceTaint()
	return t.MatchTaint(&f) && t.Value == f.Value
}

// fenceOf says whether the Node is out of service, by which fence of ours, and which
// one of ours has lost its taint.
func fenceOf(n *corev1.Node) (outOfService bool, ours, left *types.Fence) {
	outOfService = slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	fence, ok := access.Annotated[types.Fence](n.Annotations, FenceAnnotation)
	switch {
	case !ok || fence.By == "":
		return outOfService, nil, nil
	case !slices.ContainsFunc(n.Spec.Taints, isFence):
		return outOfService, nil, &fence
	}
	return outOfService, &fence, nil
}

// witnessOf is nil where the node's zedkube has nothing to say.
func witnessOf(n *corev1.Node) *types.Witness {
	w, ok := access.Annotated[types.Witness](n.Annotations, WitnessAnnotation)
	if !ok || None(w) {
		return nil
	}
	return &w
}

// None says whether the witness has reported nothing.
func None(w types.Witness) bool { return w.Round == 0 && len(w.Sightings) == 0 }

// Fence takes this very node out of service: taint and annotation in one patch,
// for the version that was looked at. It returns an error that wraps
// types.ErrConflict while the node is Ready, when another one has its name, and
// when somebody else has taken it out of service. A fence of ours that stands
// stays as it is.
func (c *Client) Fence(ctx context.Context, node types.Node, fence types.Fence) error {
	act := "fence node " + node.Name
	switch {
	case node.UID == "":
		return fmt.Errorf("%s: %w", act, access.ErrNoUID)
	case fence.By == "":
		return fmt.Errorf("%s: %w", act, errNoAuthor)
	}
	text, err := access.Annotation(fence)
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.patchNode(ctx, "fence", node.Name, asApps, func(n *corev1.Node) (access.Values, error) {
		out, ours, _ := fenceOf(n)
		switch {
		case string(n.UID) != node.UID:
			return nil, fmt.Errorf("%w: another node has its name", types.ErrConflict)
		case isReady(n):
			return nil, fmt.Errorf("%w: it is Ready", types.ErrConflict)
		case out && ours == nil:
			return nil, fmt.Errorf("%w: somebody else has taken it out of service", types.ErrConflict)
		case out:
			return nil, nil
		}
		patch := access.AnnotationsPatch(access.Values{FenceAnnotation: text})
		patch["spec"] = access.Values{"taints": append(slices.Clone(n.Spec.Taints), FenceTaint())}
		return patch, nil
	})
}

func isReady(n *corev1.Node) bool {
	ready := access.ConditionOf(n, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// Unfence takes back a fence of ours on this very node, and leaves alone what
// carries no annotation of ours. Of one that was seen without its taint only the
// annotation goes: a taint that is there by now is somebody else's, as no node that is
// Ready is fenced. Another annotation shows that it was lost and fenced again meanwhile.
func (c *Client) Unfence(ctx context.Context, node types.Node) error {
	return c.patchNode(ctx, "unfence", node.Name, asApps, func(n *corev1.Node) (access.Values, error) {
		fence, ok := access.Annotated[types.Fence](n.Annotations, FenceAnnotation)
		switch {
		case string(n.UID) != node.UID:
			return nil, fmt.Errorf("%w: another node has its name", types.ErrConflict)
		case !ok || fence.By == "":
			return nil, nil
		case node.FenceLeft != nil && !isReady(n):
			return nil, fmt.Errorf("%w: it is not Ready", types.ErrConflict)
		case node.FenceLeft != nil && !fence.Same(*node.FenceLeft):
			return nil, fmt.Errorf("%w: it was fenced again", types.ErrConflict)
		}
		patch := access.AnnotationsPatch(access.Values{FenceAnnotation: nil})
		if node.FenceLeft == nil && slices.ContainsFunc(n.Spec.Taints, isFence) {
			patch["spec"] = access.Values{"taints": slices.DeleteFunc(slices.Clone(n.Spec.Taints), isFence)}
		}
		return patch, nil
	})
}

// Witness writes on the node what its zedkube sees of others; a zero one is
// removed.
func (c *Client) Witness(ctx context.Context, node string, w types.Witness) error {
	text, err := access.Annotation(w)
	if err != nil {
		return fmt.Errorf("witness on node %s: %w", node, err)
	}
	if None(w) {
		text = ""
	}
	return c.annotate(ctx, "witness on", node, asApps, WitnessAnnotation, text)
}
