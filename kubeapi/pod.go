package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"

	"github.com/zedkube/zedkube/types"
)

// PodsToEvict returns, from a fresh list, the pods that a drain of node has to
// evict: what kubectl drain would choose with --force, --ignore-daemonsets and
// --delete-emptydir-data, less the pods that keep volumes usable meanwhile.
func (c *Client) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	conn, done, err := c.use()
	if err != nil {
		return nil, fmt.Errorf("list pods to evict from node %s: %w", node, err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	helper := drain.Helper{
		Ctx:                 ctx,
		Client:              &checked{Interface: conn.kube, node: node},
		Force:               true,
		GracePeriodSeconds:  -1,
		IgnoreAllDaemonSets: true,
		DeleteEmptyDirData:  true,
		AdditionalFilters:   []drain.PodFilter{leaveStorage},
		Out:                 io.Discard,
		ErrOut:              io.Discard,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, fmt.Errorf("list pods to evict from node %s: %w", node, errors.Join(errs...))
	}
	var pods []types.Pod
	for _, p := range list.Pods() {
		pods = append(pods, podOf(&p))
	}
	return pods, nil
}

// leaveStorage leaves alone the pods without which volumes can neither be
// detached from this node nor attached to another.
func leaveStorage(p corev1.Pod) drain.PodDeleteStatus {
	switch p.Labels[labelApp] {
	case "csi-attacher", "csi-provisioner",
		"longhorn-admission-webhook", "longhorn-conversion-webhook", "longhorn-driver-deployer":
		return drain.MakePodDeleteStatusSkip()
	}
	return drain.MakePodDeleteStatusOkay()
}

// Evict asks once for the eviction of this very pod, not of a namesake. It
// returns nil when the eviction is accepted or the pod is gone, and an error
// that wraps types.ErrDisruptionBudget when it is refused for now (429).
func (c *Client) Evict(ctx context.Context, pod types.Pod) error {
	return c.record(ctx, deed{"evict", "pod/" + pod.Key()}, func(ctx context.Context) error { return c.evict(ctx, "evict", pod) })
}

func (c *Client) evict(ctx context.Context, act string, pod types.Pod, dryRun ...string) error {
	conn, done, err := c.use()
	if err != nil {
		return fmt.Errorf("%s pod %s: %w", act, pod.Key(), err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
	}
	if pod.UID != "" {
		uid := ktypes.UID(pod.UID)
		eviction.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err = conn.kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
	switch {
	case err == nil, absent(err):
		return nil
	case apierrors.IsConflict(err):
		// Either the pod has a namesake by now or somebody else changed it.
		if gone, getErr := conn.replaced(ctx, pod); getErr == nil && gone {
			return nil
		}
	case refused(err):
		return fmt.Errorf("%s pod %s: %w: %w", act, pod.Key(), types.ErrDisruptionBudget, err)
	}
	return fmt.Errorf("%s pod %s: %w", act, pod.Key(), err)
}

// refused tells the 429 of a budget, or of a webhook that stands in for one,
// from the bare 429 of an overloaded API server.
func refused(err error) bool {
	return apierrors.IsTooManyRequests(err) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// replaced reports that the pod does not exist any more under its UID.
func (conn *connection) replaced(ctx context.Context, pod types.Pod) (bool, error) {
	now, err := conn.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if absent(err) {
		return true, nil
	}
	return err == nil && now.Name == pod.Name && string(now.UID) != pod.UID, err
}
