package kubeapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

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
	event := eventOf(e, time.Now())
	about := event.InvolvedObject.Kind + " " + event.InvolvedObject.Name
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		api := conn.kube.CoreV1().Events(event.Namespace)
		_, err := api.Create(ctx, event, metav1.CreateOptions{FieldManager: drainManager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := api.Get(ctx, event.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if old.Name != event.Name {
			return errOther
		}
		patch, err := json.Marshal(values{"count": old.Count + 1, "lastTimestamp": event.LastTimestamp})
		if err != nil {
			return err
		}
		_, err = api.Patch(ctx, event.Name, ktypes.MergePatchType, patch, metav1.PatchOptions{FieldManager: drainManager})
		return err
	})
	if err != nil {
		return fmt.Errorf("write event %s about %s: %w", e.Reason, strings.ToLower(about), err)
	}
	return nil
}

func eventOf(e types.Event, now time.Time) *corev1.Event {
	event := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: ktypes.UID(e.Pod.UID)},
		Type:           corev1.EventTypeNormal,
		Reason:         e.Reason,
		Message:        cut(e.Message, eventText),
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
			APIVersion: version.String(), Kind: e.Set.Kind, Namespace: Namespace, Name: e.Set.Name, UID: ktypes.UID(e.Set.UID),
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

// cut shortens text to at most max bytes, whole characters.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max-len("…")], "") + "…"
}
