package storage

import (
	"context"
	"errors"
	"fmt"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

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
