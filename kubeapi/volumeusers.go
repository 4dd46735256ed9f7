package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// VolumeUsers returns, from a fresh list, the pods on node that have not ended
// and use claims, by the PersistentVolumes that those are bound to. A claim that
// is gone, or bound to nothing, is left out.
func (c *Client) VolumeUsers(ctx context.Context, node string) (map[string][]types.Pod, error) {
	users := map[string][]types.Pod{}
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		of := map[string][]types.Pod{} // by claim, as namespace/name
		err := podsOn(ctx, conn, node, func(p *corev1.Pod) {
			for _, claim := range claimsOf(p) {
				of[claim] = append(of[claim], podOf(p))
			}
		})
		if err != nil {
			return err
		}
		for claim, pods := range of {
			volume, err := volumeOf(ctx, conn, pods[0].Namespace, claim[len(pods[0].Namespace)+1:])
			if err != nil {
				return err
			}
			if volume != "" {
				users[volume] = pods
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the pods that use volumes on node %s: %w", node, err)
	}
	return users, nil
}

// volumeOf is the PersistentVolume that a claim is bound to, "" for none.
func volumeOf(ctx context.Context, conn *connection, namespace, name string) (string, error) {
	claim, err := conn.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case absent(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get claim %s/%s: %w", namespace, name, err)
	case claim.Name != name || claim.Namespace != namespace:
		return "", fmt.Errorf("get claim %s/%s: the answer is no such claim", namespace, name)
	}
	return claim.Spec.VolumeName, nil
}
