package storage

import (
	"context"
	"errors"
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

// AttachmentOf is the row of a VolumeAttachment.
func AttachmentOf(a *storagev1.VolumeAttachment) types.Attachment {
	volume := ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
	return types.Attachment{Name: a.Name, UID: string(a.UID), Node: a.Spec.NodeName, Volume: volume}
}

// attachmentsOf lists what node has, or what is attached there. VolumeAttachments
// cannot be selected by node.
func attachmentsOf(ctx context.Context, conn *access.Connection, node string, attached bool) ([]types.Attachment, error) {
	var found []types.Attachment
	list := conn.Kube.StorageV1().VolumeAttachments().List
	err := access.Each(ctx, "VolumeAttachments", access.StoragePage, list, func(a *storagev1.VolumeAttachment) error {
		if a.Spec.NodeName == node && (a.Status.Attached || !attached) {
			found = append(found, AttachmentOf(a))
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

const storageManager = "zedkube-storage"

// What a snapshot job is when zedkube makes it. Later on it is the operator's,
// but for its schedule.
const (
	snapshotsKept  = 3 // of each volume
	snapshotsAside = 1 // volumes at a time
)

var (
	errUnnamed  = errors.New("its UID or version is not known")
	errNotTaken = errors.New("the server stored another value")
	// ErrForeignJob is returned where somebody else's recurring job has the name.
	ErrForeignJob = errors.New("there is one that is not zedkube's")
	errJobGoes    = fmt.Errorf("%w: the previous one is still being deleted", types.ErrConflict)
	errReplaced   = fmt.Errorf("%w: another object now has its name", types.ErrConflict)
	errGone       = fmt.Errorf("%w: it is gone", types.ErrConflict)
)

// SetReserved reserves so many bytes on every disk of this very node of Longhorn
// where that is not so, in one patch, and says whether there was one. It may wrap
// types.ErrConflict, ErrRefused or ErrNoAnswer.
func (c *Client) SetReserved(ctx context.Context, node types.LonghornNode, bytes int64) (changed bool, err error) {
	act := fmt.Sprintf("reserve %d bytes on the disks of Longhorn node %s", bytes, node.Name)
	err = c.Write(ctx, access.Operation{Op: "reserve storage", Target: "longhorn-node/" + node.Name}, act, func(ctx context.Context, conn *access.Connection) error {
		return access.RetryOnConflict(func() (err error) {
			changed, err = reserve(ctx, conn, node, bytes)
			return err
		})
	})
	return changed, err
}

// reserve patches the version that it read: without one, a disk that was taken
// away meanwhile would come back as a fragment.
func reserve(ctx context.Context, conn *access.Connection, node types.LonghornNode, bytes int64) (changed bool, err error) {
	api := conn.Longhorn.Nodes(types.NamespaceLonghorn)
	n, err := api.Get(ctx, node.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return false, err
	case n.Name != node.Name || n.UID == "" || n.ResourceVersion == "":
		return false, access.ErrOther
	case string(n.UID) != node.UID:
		return false, errReplaced
	}
	disks := access.Values{}
	for name, d := range n.Spec.Disks {
		if d.StorageReserved != bytes {
			disks[name] = access.Values{"storageReserved": bytes}
		}
	}
	if len(disks) == 0 {
		return false, nil
	}
	n, err = merge(ctx, api, node.Name, string(n.UID), n.ResourceVersion, access.Values{"spec": access.Values{"disks": disks}})
	switch {
	case err != nil:
		return false, err
	case string(n.UID) != node.UID:
		return false, access.ErrOther
	}
	for name := range disks {
		if n.Spec.Disks[name].StorageReserved != bytes {
			return false, errNotTaken
		}
	}
	return true, nil
}

// merge patches this very object in this version.
func merge[T any](ctx context.Context, api access.Patcher[T], name, uid, version string, patch access.Values) (T, error) {
	if uid == "" || version == "" {
		var none T
		return none, errUnnamed
	}
	patch["metadata"] = access.Values{"uid": uid}
	return access.Merge(ctx, api, name, storageManager, access.ForVersion(version, patch))
}

// SetLonghornSetting gives this very setting in this version the value. It may
// wrap types.ErrConflict, ErrRefused or ErrNoAnswer.
func (c *Client) SetLonghornSetting(ctx context.Context, setting types.LonghornSetting, value string) error {
	op := access.Operation{Op: "set longhorn setting", Target: "longhorn-setting/" + setting.Name}
	return c.Write(ctx, op, "set "+setting.Name+" of Longhorn", func(ctx context.Context, conn *access.Connection) error {
		api := conn.Longhorn.Settings(types.NamespaceLonghorn)
		s, err := merge(ctx, api, setting.Name, setting.UID, setting.Version, access.Values{"value": value})
		switch {
		case access.NotFound(err):
			return errGone
		case err != nil:
			return err
		case string(s.UID) != setting.UID:
			return access.ErrOther
		case s.Value != value:
			return errNotTaken
		}
		return nil
	})
}

// EnsureSnapshotJob makes the snapshot job, or gives the one that is there this
// schedule and changes nothing else of it; it says whether it did either. It is
// an error where that is not zedkube's; that and others may wrap
// types.ErrConflict, ErrRefused or ErrNoAnswer.
func (c *Client) EnsureSnapshotJob(ctx context.Context, cron string) (changed bool, err error) {
	err = c.Write(ctx, access.Operation{Op: "ensure snapshot job", Target: "recurringjob/" + types.SnapshotJobName}, "keep snapshot job "+types.SnapshotJobName, func(ctx context.Context, conn *access.Connection) error {
		return access.RetryOnConflict(func() (err error) {
			changed, err = schedule(ctx, conn, cron)
			return err
		})
	})
	return changed, err
}

func schedule(ctx context.Context, conn *access.Connection, cron string) (changed bool, err error) {
	api := conn.Longhorn.RecurringJobs(types.NamespaceLonghorn)
	j, err := api.Get(ctx, types.SnapshotJobName, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
		j, err = api.Create(ctx, newSnapshotJob(cron), metav1.CreateOptions{FieldManager: storageManager})
		return true, scheduled(j, err, cron)
	case err != nil:
		return false, err
	case j.Name != types.SnapshotJobName:
		return false, access.ErrOther
	case j.DeletionTimestamp != nil:
		return false, errJobGoes
	case !ourJob(j):
		return false, ErrForeignJob
	case j.Spec.Cron == cron:
		return false, nil
	}
	j, err = merge(ctx, api, j.Name, string(j.UID), j.ResourceVersion, access.Values{"spec": access.Values{"cron": cron}})
	switch {
	case access.NotFound(err):
		return false, errGone
	case errors.Is(err, errUnnamed): // nothing was sent
		return false, err
	}
	return true, scheduled(j, err, cron)
}

// scheduled judges an answer.
func scheduled(j *longhornv1.RecurringJob, err error, cron string) error {
	switch {
	case err != nil:
		return err
	case j.Name != types.SnapshotJobName:
		return access.ErrOther
	case j.Spec.Cron != cron:
		return errNotTaken
	}
	return nil
}

func newSnapshotJob(cron string) *longhornv1.RecurringJob {
	return &longhornv1.RecurringJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: types.NamespaceLonghorn, Name: types.SnapshotJobName, Labels: map[string]string{SnapshotLabel: "true"},
		},
		Spec: longhornv1.RecurringJobSpec{
			Name: types.SnapshotJobName, Task: longhornv1.RecurringJobTypeSnapshot, Groups: []string{longhornv1.RecurringJobGroupDefault},
			Cron: cron, Retain: snapshotsKept, Concurrency: snapshotsAside,
		},
	}
}

// DeleteSnapshotJob deletes this very job in this version, and says whether it was
// still there. An error, unless it is gone, may wrap types.ErrConflict,
// ErrRefused or ErrNoAnswer.
func (c *Client) DeleteSnapshotJob(ctx context.Context, job types.SnapshotJob) (changed bool, err error) {
	err = c.Write(ctx, access.Operation{Op: "delete snapshot job", Target: "recurringjob/" + job.Name}, "delete snapshot job "+job.Name, func(ctx context.Context, conn *access.Connection) error {
		if job.UID == "" || job.Version == "" {
			return errUnnamed
		}
		err := conn.Longhorn.RecurringJobs(types.NamespaceLonghorn).Delete(ctx, job.Name, access.Exactly(job.UID, job.Version))
		changed = err == nil
		return access.UnlessGone(err)
	})
	return changed, err
}
