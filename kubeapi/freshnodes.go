package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		renewed, err := renewals(ctx, conn)
		if err != nil {
			return fmt.Errorf("list their leases: %w", err)
		}
		rows, err = joined(nodes.Items, renewed)
		for i := range rows {
			rows[i] = c.stamps.listed(rows[i])
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
	err := c.verb(ctx, func(ctx context.Context, conn *connection) (err error) {
		renewed, err = renewals(ctx, conn)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the leases of nodes: %w", err)
	}
	return renewed, nil
}

// renewals lists when each Lease was last renewed.
func renewals(ctx context.Context, c *connection) (map[string]time.Time, error) {
	list, err := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if err := isWhole(list.ListMeta); err != nil {
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

func joined(nodes []corev1.Node, renewed map[string]time.Time) ([]types.Node, error) {
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
