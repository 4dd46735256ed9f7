package kubeapi

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// NodeAttachments returns, from a fresh and whole list, all VolumeAttachments of
// the node, whether they are attached or not.
func (c *Client) NodeAttachments(ctx context.Context, node string) ([]types.Attachment, error) {
	var found []types.Attachment
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		var err error
		found, err = attachmentsOf(ctx, conn, node, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list what is attached to node %s: %w", node, err)
	}
	return found, nil
}

// DeleteAttachment deletes this very VolumeAttachment, not a namesake, and
// returns nil when it is gone. Its finalizer stays: the attacher takes it off
// when it has detached the volume.
func (c *Client) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	return c.deleteVery(ctx, deed{"delete attachment", "volumeattachment/" + a.Name}, "delete VolumeAttachment "+a.Name, a.UID, nil, func(conn *connection) object {
		api := conn.kube.StorageV1().VolumeAttachments()
		return object{
			remove: func(ctx context.Context, o metav1.DeleteOptions) error { return api.Delete(ctx, a.Name, o) },
			get:    func(ctx context.Context) (metav1.Object, error) { return api.Get(ctx, a.Name, metav1.GetOptions{}) },
		}
	})
}

// attachmentsOf lists what node has, or what is attached there. VolumeAttachments
// cannot be selected by node.
func attachmentsOf(ctx context.Context, conn *connection, node string, attached bool) ([]types.Attachment, error) {
	var found []types.Attachment
	err := pages(ctx, conn.kube.StorageV1().VolumeAttachments().List, func(l *storagev1.VolumeAttachmentList) error {
		for _, a := range l.Items {
			if a.Name == "" {
				return errNoName
			}
			if a.Spec.NodeName != node || attached && !a.Status.Attached {
				continue
			}
			row := types.Attachment{Name: a.Name, UID: string(a.UID), Node: node}
			if pv := a.Spec.Source.PersistentVolumeName; pv != nil {
				row.Volume = *pv
			}
			found = append(found, row)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list VolumeAttachments: %w", err)
	}
	return found, nil
}
