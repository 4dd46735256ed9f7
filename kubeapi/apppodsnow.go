package kubeapi

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// AppPodsNow lists the pods of the applications, as they are now.
func (c *Client) AppPodsNow(ctx context.Context) ([]types.Pod, error) {
	conn, done, err := c.use()
	if err != nil {
		return nil, fmt.Errorf("list pods of the applications: %w", err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	list, err := conn.kube.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		err = isWhole(list.ListMeta)
	}
	if err != nil {
		return nil, fmt.Errorf("list pods of the applications: %w", err)
	}
	var pods []types.Pod
	for _, p := range list.Items {
		pods = append(pods, appPodOf(&p))
	}
	return pods, nil
}
