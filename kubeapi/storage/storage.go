package storage

import (
	"context"
	"fmt"
	"slices"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// NodeAttachments returns, from a fresh and whole list, all VolumeAttachments of
// the node, whether they are attached or not.
func (c *Client) NodeAttachments(ctx context.Context, node string) ([]types.Attachment, error) {
	return access.Read(ctx, c.Session, "list what is attached to node "+node, func(ctx context.Context, conn *access.Connection) ([]types.Attachment, error) {
		return attachmentsOf(ctx, conn, node, false)
	})
}

// DeleteAttachment deletes this very VolumeAttachment, not a namesake, and
// returns nil when it is gone. Its finalizer stays: the attacher takes it off
// when it has detached the volume.
func (c *Client) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	op := access.Operation{Op: "delete attachment", Target: "volumeattachment/" + a.Name}
	return access.DeleteExactly(ctx, c.Session, op, "delete VolumeAttachment "+a.Name, a.Name, a.UID, nil,
		func(conn *access.Connection) access.Objects[*storagev1.VolumeAttachment] {
			return conn.Kube.StorageV1().VolumeAttachments()
		})
}

// attachmentsOf lists what node has, or what is attached there. VolumeAttachments
// cannot be selected by node.
func attachmentsOf(ctx context.Context, conn *access.Connection, node string, attached bool) ([]types.Attachment, error) {
	var found []types.Attachment
	list := conn.Kube.StorageV1().VolumeAttachments().List
	err := access.Each(ctx, "VolumeAttachments", access.StoragePage, list, func(a *storagev1.VolumeAttachment) error {
		if a.Spec.NodeName == node && (a.Status.Attached || !attached) {
			volume := ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
			found = append(found, types.Attachment{Name: a.Name, UID: string(a.UID), Node: node, Volume: volume})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Client has the verbs on volumes.
type Client struct{ *access.Session }

// Storage returns, from fresh and whole lists, the volumes of Longhorn with
// their replicas and engines, its drain policy where there are any, and the
// VolumeAttachments of node that are attached. Longhorn is not installed where
// its namespace or its kinds do not exist; whatever else keeps a list from being
// whole is an error. Volumes and their replicas are sorted by name.
func (c *Client) Storage(ctx context.Context, node string) (types.Storage, error) {
	return access.Read(ctx, c.Session, "list volumes", func(ctx context.Context, conn *access.Connection) (types.Storage, error) {
		return storageOf(ctx, conn, node)
	})
}

func storageOf(ctx context.Context, conn *access.Connection, node string) (types.Storage, error) {
	var s types.Storage
	var err error
	if s.Attachments, err = attachmentsOf(ctx, conn, node, true); err != nil {
		return s, err
	}
	if installed, err := hasLonghorn(ctx, conn); err != nil || !installed {
		return s, err
	}
	disks, err := listDisks(ctx, conn)
	if apierrors.IsNotFound(err) {
		// Anybody may answer 404; that the kinds are unknown, the server has to say.
		if err := conn.Denies(ctx, longhornv1.SchemeGroupVersion.Group); err != nil {
			return s, fmt.Errorf("volumes of Longhorn: %w", err)
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Longhorn = true
	if len(disks) == 0 {
		return s, nil
	}
	if s.Policy, err = drainPolicy(ctx, conn); err != nil {
		return s, err
	}
	if s.Volumes, err = disks.volumes(); err != nil {
		return s, err
	}
	return s, markDaemons(ctx, conn, node, &s)
}

// hasLonghorn asks until it is there. That it is taken away is seen by its lists.
func hasLonghorn(ctx context.Context, conn *access.Connection) (bool, error) {
	if access.Kept[Clients](conn).installed.Load() {
		return true, nil
	}
	ns, err := conn.Kube.CoreV1().Namespaces().Get(ctx, types.NamespaceLonghorn, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for namespace %s: %w", types.NamespaceLonghorn, err)
	case ns.Name != types.NamespaceLonghorn:
		return false, fmt.Errorf("look for namespace %s: the answer is not this namespace", types.NamespaceLonghorn)
	}
	access.Kept[Clients](conn).installed.Store(true)
	return true, nil
}

// drainPolicy is "" where Longhorn has no such setting.
func drainPolicy(ctx context.Context, conn *access.Connection) (string, error) {
	setting, err := conn.Longhorn.Settings(types.NamespaceLonghorn).Get(ctx, types.LonghornDrainPolicy, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read setting %s: %w", types.LonghornDrainPolicy, err)
	case setting.Name != types.LonghornDrainPolicy:
		return "", fmt.Errorf("read setting %s: the answer is not this setting", types.LonghornDrainPolicy)
	}
	return setting.Value, nil
}

func longhornTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

// markDaemons marks the attachments of volumes that another node serves and that
// nobody but pods of DaemonSets uses on node. Pods are listed only where there
// is such a volume, which takes one that many nodes may write.
func markDaemons(ctx context.Context, conn *access.Connection, node string, s *types.Storage) error {
	served := map[string]string{} // claim, by volume
	for _, v := range s.Volumes {
		if v.Running && v.Engine != "" && v.Engine != node && !slices.Contains(v.Also, node) && v.Claim != "" {
			served[v.Name] = v.Claim
		}
	}
	if !slices.ContainsFunc(s.Attachments, func(a types.Attachment) bool { return served[a.Volume] != "" }) {
		return nil
	}
	daemons, others, err := access.ClaimUsers(ctx, conn, node)
	if err != nil {
		return err
	}
	for i := range s.Attachments {
		a := &s.Attachments[i]
		claim := served[a.Volume]
		a.Daemons = claim != "" && daemons[claim] && !others[claim]
	}
	return nil
}
