package network

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const networksManager = "zedkube-networks"

// NetworkLabel marks the attachments of network instances that zedkube made. Its
// value is the UUID of the instance.
const NetworkLabel = "zedkube.github.io/network-instance"

// EnsureNetworkNAD makes the attachment of a network instance, or puts it right. One
// of somebody else is treated as EnsureNAD treats it.
func (c *Client) EnsureNetworkNAD(ctx context.Context, nad types.NetworkNAD) error {
	id := nad.ID.String()
	config := `{"cniVersion":"0.3.1","type":"eve-bridge","networkInstance":"` + id + `"}`
	return c.changeNAD(ctx, "ensure nad", "ensure network attachment "+nad.Name, nad.Name, func(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured) error {
		if o == nil {
			return makeNAD(ctx, conn, nad.Name, networksManager, config, map[string]any{"labels": map[string]any{NetworkLabel: id}})
		}
		same, label := sameConfig(o, config), o.GetLabels()[NetworkLabel]
		switch {
		case o.GetDeletionTimestamp() != nil:
			return ErrNADGoes
		case label == "" && !same:
			return types.ErrForeignNAD
		case label == id && same:
			return nil
		}
		labels := access.Values{"labels": access.Values{NetworkLabel: id}}
		return patchNAD(ctx, conn, o, networksManager, access.Values{"metadata": labels, "spec": access.Values{"config": config}})
	})
}

// DeleteNetworkNAD deletes the attachment of a network instance. One without
// zedkube's label, or of another instance, is left alone.
func (c *Client) DeleteNetworkNAD(ctx context.Context, nad types.NetworkNAD) error {
	return c.changeNAD(ctx, "delete nad", "delete network attachment "+nad.Name, nad.Name, func(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured) error {
		if o == nil || o.GetLabels()[NetworkLabel] != nad.ID.String() {
			return nil
		}
		return deleteNAD(ctx, conn, o)
	})
}
