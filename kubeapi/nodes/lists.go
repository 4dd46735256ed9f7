package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreshNodes returns all Nodes but those of KubeEdge as the cluster has them now, each with the time
// at which its kubelet last renewed its Lease, by the clock of that kubelet's
// node; zero where there is no Lease. It is everything or an error: a list that
// may lack a Node, or the Leases, is never returned.
func (c *Client) FreshNodes(ctx context.Context) ([]types.Node, error) {
	var rows []types.Node
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		nodes, err := conn.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := access.IsWhole(nodes.ListMeta); err != nil {
			return err
		}
		renewed, err := renewals(ctx, conn)
		if err != nil {
			return fmt.Errorf("list their leases: %w", err)
		}
		rows, err = Joined(nodes.Items, renewed)
		for i := range rows {
			rows[i] = c.Stamps.Listed(rows[i])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return rows, nil
}

// NodeLeases returns when the kubelets of all nodes last renewed their Leases, by
// name, each by the clock of its node. It is everything or an error.
func (c *Client) NodeLeases(ctx context.Context) (map[string]time.Time, error) {
	var renewed map[string]time.Time
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) (err error) {
		renewed, err = renewals(ctx, conn)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the leases of nodes: %w", err)
	}
	return renewed, nil
}

// renewals lists when each Lease was last renewed.
func renewals(ctx context.Context, c *access.Connection) (map[string]time.Time, error) {
	list, err := c.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if err := access.IsWhole(list.ListMeta); err != nil {
		return nil, err
	}
	renewed := map[string]time.Time{}
	for _, l := range list.Items {
		if l.Namespace == corev1.NamespaceNodeLease && l.Spec.RenewTime != nil {
			renewed[l.Name] = l.Spec.RenewTime.Time
		}
	}
	return renewed, nil
}

// NodeLease returns when the kubelet of a node last renewed its Lease, by the clock
// of its node; zero where there is no Lease. It goes with its Node, and a kubelet
// makes none while that is missing.
func (c *Client) NodeLease(ctx context.Context, node string) (time.Time, error) {
	var renewed time.Time
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		l, err := conn.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		switch {
		case access.NotFound(err):
			return nil
		case err != nil:
			return err
		case l.Name != node:
			return access.ErrOther
		}
		if l.Spec.RenewTime != nil {
			renewed = l.Spec.RenewTime.Time
		}
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("get the lease of node %s: %w", node, err)
	}
	return renewed, nil
}

func Joined(nodes []corev1.Node, renewed map[string]time.Time) ([]types.Node, error) {
	var rows []types.Node
	for _, n := range nodes {
		if n.Name == "" {
			return nil, access.ErrNoName
		}
		if access.IsEdge(&n) {
			continue
		}
		row := NodeOf(&n)
		row.ResourceVersion, row.RenewedAt = n.ResourceVersion, renewed[n.Name]
		rows = append(rows, row)
	}
	return rows, nil
}
