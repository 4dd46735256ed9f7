package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/types"
)

const cordonedBy = "zedkube"

// verbWithin bounds a whole verb, its retries included.
const verbWithin = 20 * time.Second

// Cordon keeps new pods off the node and writes on it who did and why, both in
// one patch. A node that is cordoned already is left as it is, whoever did it.
func (c *Client) Cordon(ctx context.Context, node string, cordon types.Cordon) error {
	cordon.By = cordonedBy
	text, err := json.Marshal(cordon)
	if err != nil {
		return fmt.Errorf("cordon node %s: %w", node, err)
	}
	return c.patchNode(ctx, "cordon", node, func(n *corev1.Node) map[string]any {
		if n.Spec.Unschedulable {
			return nil
		}
		return cordonPatch(n, true, string(text))
	})
}

// Uncordon undoes a Cordon. A cordon made by somebody else is left as it is.
func (c *Client) Uncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon", node, func(n *corev1.Node) map[string]any {
		if ourCordon(n) == nil {
			return nil
		}
		return cordonPatch(n, nil, nil)
	})
}

// cordonPatch names the version it was made for, so that a change in between
// is a conflict and not overwritten.
func cordonPatch(n *corev1.Node, unschedulable, annotation any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"resourceVersion": n.ResourceVersion,
			"annotations":     map[string]any{cordonAnnotation: annotation},
		},
		"spec": map[string]any{"unschedulable": unschedulable},
	}
}

// patchNode sends what change makes of the fresh Node, nothing if that is nil.
// It is a patch and never an update: an update drops every field that this
// build's types do not know.
func (c *Client) patchNode(ctx context.Context, act, node string, change func(*corev1.Node) map[string]any) error {
	conn, done, err := c.use()
	if err != nil {
		return fmt.Errorf("%s node %s: %w", act, node, err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	api := conn.kube.CoreV1().Nodes()
	// Everybody writes on Nodes: as often as it takes, until ctx ends it.
	again := wait.Backoff{Duration: 50 * time.Millisecond, Jitter: 1, Steps: 200}
	err = retry.RetryOnConflict(again, func() error {
		n, err := api.Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n.Name != node { // an answer of another kind is decoded to an empty Node
			return errors.New("the answer is not this node")
		}
		patch := change(n)
		if patch == nil {
			return nil
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = api.Patch(ctx, node, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: drainManager})
		return err
	})
	switch {
	case err == nil:
		return nil
	case saysNo(err):
		return fmt.Errorf("%s node %s: %w: %w", act, node, types.ErrRefused, err)
	}
	return fmt.Errorf("%s node %s: %w", act, node, err)
}

// saysNo tells a server that understood and refused from one that asks for
// patience or does not know us, and from a Node that is not there.
func saysNo(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
