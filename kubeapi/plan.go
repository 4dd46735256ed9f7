package kubeapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// PlanEvict asks what Evict would be answered, and evicts nothing. Its errors
// are those of Evict.
func (c *Client) PlanEvict(ctx context.Context, pod types.Pod) error {
	return c.evict(unrecorded(ctx), "plan the eviction of", pod, metav1.DryRunAll)
}
