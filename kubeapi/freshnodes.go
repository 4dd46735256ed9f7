package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

var errPartial = errors.New("the answer is a part of the list only")

// FreshNodes returns all Nodes but those of KubeEdge as the cluster has them now, each with the time
// at which its kubelet last renewed its Lease, by the clock of that kubelet's
// node; zero where there is no Lease. It is everything or an error: a list that
// may lack a Node, or the Leases, is never returned.
func (c *Client) FreshNodes(ctx context.Context) ([]types.Node, error) {
	var rows []types.Node
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		nodes, err := conn.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := isWhole(nodes.ListMeta); err != nil {
			return err
		}
		leases, err := conn.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list their leases: %w", err)
		}
		if err := isWhole(leases.ListMeta); err != nil {
			return fmt.Errorf("list their leases: %w", err)
		}
		rows, err = joined(nodes.Items, leases.Items)
		for i := range rows {
			rows[i].StampStale = c.stamps.stale(rows[i])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return rows, nil
}

// NodeLease returns when the kubelet of a node last renewed its Lease, by the clock
// of its node; zero where there is no Lease. It goes with its Node, and a kubelet
// makes none while that is missing.
func (c *Client) NodeLease(ctx context.Context, node string) (time.Time, error) {
	var renewed time.Time
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		l, err := conn.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		switch {
		case absent(err):
			return nil
		case err != nil:
			return err
		case l.Name != node:
			return errOther
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

// isWhole refuses pages, and answers of another kind, which are decoded to an
// empty list without a version.
func isWhole(list metav1.ListMeta) error {
	switch {
	case list.ResourceVersion == "":
		return errNoVersion
	case list.Continue != "":
		return errPartial
	}
	return nil
}

func joined(nodes []corev1.Node, leases []coordinationv1.Lease) ([]types.Node, error) {
	renewed := map[string]time.Time{}
	for _, l := range leases {
		if l.Namespace == corev1.NamespaceNodeLease && l.Spec.RenewTime != nil {
			renewed[l.Name] = l.Spec.RenewTime.Time
		}
	}
	var rows []types.Node
	for _, n := range nodes {
		if n.Name == "" {
			return nil, errNoName
		}
		if isEdge(&n) {
			continue
		}
		row := nodeOf(&n)
		row.ResourceVersion, row.RenewedAt = n.ResourceVersion, renewed[n.Name]
		rows = append(rows, row)
	}
	return rows, nil
}
