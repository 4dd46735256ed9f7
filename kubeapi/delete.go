package kubeapi

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

var errNoUID = errors.New("its UID is not known")

// object is how one object is deleted and looked at.
type object struct {
	remove func(ctx context.Context, o metav1.DeleteOptions) error
	get    func(ctx context.Context) (metav1.Object, error)
}

// deleteVery deletes the object of that UID, with a grace period in seconds if
// it is not nil. It returns nil when the object is gone, be it that it has a
// namesake by now, or goes as soon as its finalizers and its grace allow.
func (s *Session) deleteVery(ctx context.Context, d deed, act, uid string, grace *int64, of func(*connection) object) error {
	if uid == "" {
		return fmt.Errorf("%s: %w", act, errNoUID)
	}
	return s.write(ctx, d, act, func(ctx context.Context, conn *connection) error {
		return of(conn).delete(ctx, ktypes.UID(uid), grace)
	})
}

func (o object) delete(ctx context.Context, uid ktypes.UID, grace *int64) error {
	err := o.remove(ctx, metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &uid}})
	if absent(err) {
		return nil
	}
	if apierrors.IsConflict(err) {
		now, getErr := o.get(ctx)
		if absent(getErr) || getErr == nil && now.GetName() != "" && now.GetUID() != uid {
			return nil
		}
	}
	return err
}

// ForceDeletePod deletes this very pod, not a namesake, with grace 0: its object
// goes without waiting for the kubelet, which may still run it. It returns nil
// when the pod is gone.
func (c *Client) ForceDeletePod(ctx context.Context, pod types.Pod) error {
	return c.deleteVery(ctx, deed{"force-delete pod", "pod/" + pod.Key()}, "delete pod "+pod.Key()+" by force", pod.UID, new(int64), func(conn *connection) object {
		api := conn.kube.CoreV1().Pods(pod.Namespace)
		return object{
			remove: func(ctx context.Context, o metav1.DeleteOptions) error { return api.Delete(ctx, pod.Name, o) },
			get:    func(ctx context.Context) (metav1.Object, error) { return api.Get(ctx, pod.Name, metav1.GetOptions{}) },
		}
	})
}
