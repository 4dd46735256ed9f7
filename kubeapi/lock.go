package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

// The Lease of docs/wire.md, "Drain lock". It has no duration: it ends by
// evidence and not by time.
const (
	drainLease     = types.DrainLockName
	lockAnnotation = "zedkube.github.io/drain-lock"
	// lockText bounds the annotation: Kubernetes takes 256 KiB for all
	// annotations of an object. 5,000 volumes with names like Longhorn's,
	// of 40 letters, fit.
	lockText = 240_000
)

var errNoHolder = errors.New("nobody is to hold it")

// lockNote is what the annotation says.
type lockNote struct {
	BootID  string         `json:"bootID"`
	Since   time.Time      `json:"since"`
	Ended   bool           `json:"ended,omitempty"`
	Volumes map[string]int `json:"volumes,omitempty"`
	Omitted int            `json:"omitted,omitempty"` // volumes for which there was no room
	Task    string         `json:"task,omitempty"`    // types.DrainLock.Task
}

// DrainLock returns the lock: without Version when there is none, without Holder
// when there is one that nobody holds.
//
// Where the annotation is missing or cannot be read, in whole or in part, the
// lock is held by whom it names, with an empty BootID and without Volumes. An
// empty BootID is no boot, and not one other than the present: nothing shows
// that the holder has been down and is back, nor what it took away meanwhile.
// So such a lock goes with the holder's word, with its Node, or by an operator.
func (c *Client) DrainLock(ctx context.Context) (types.DrainLock, error) {
	var lock types.DrainLock
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		lease, err := conn.kube.CoordinationV1().Leases(Namespace).Get(ctx, drainLease, metav1.GetOptions{})
		if absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		lock, err = lockOf(lease)
		return err
	})
	if err != nil {
		return types.DrainLock{}, fmt.Errorf("get drain lock: %w", err)
	}
	return lock, nil
}

// SetDrainLock makes the lock, or changes the one of lock.Version, and returns
// it as it is then. An error that wraps types.ErrConflict says that somebody
// else was faster.
//
// Where there are too many volumes for the annotation, those with the fewest
// healthy replicas stay. The others are not remembered: whoever compares later
// will not miss a replica of theirs.
func (c *Client) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	act := "set drain lock for node " + lock.Holder
	if lock.Holder == "" {
		return types.DrainLock{}, fmt.Errorf("set drain lock: %w", errNoHolder)
	}
	note, err := noteOf(lock)
	if err != nil {
		return types.DrainLock{}, fmt.Errorf("%s: %w", act, err)
	}
	err = c.write(ctx, deed{"take drain lock", "drain-lock/" + lock.Holder}, act, func(ctx context.Context, conn *connection) error {
		lease, err := writeLock(ctx, conn, lock, note)
		if err != nil {
			return err
		}
		set, err := lockOf(lease)
		if err == nil && set.Holder != lock.Holder {
			return errOther
		}
		lock = set
		return err
	})
	if err != nil {
		return types.DrainLock{}, err
	}
	return lock, nil
}

// writeLock creates the Lease or patches the one of that version. An update
// would make a Lease anew that somebody has freed.
func writeLock(ctx context.Context, conn *connection, lock types.DrainLock, note string) (*coordinationv1.Lease, error) {
	api := conn.kube.CoordinationV1().Leases(Namespace)
	taken := metav1.NewMicroTime(lock.Since)
	if lock.Version == "" {
		return api.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: drainLease, Annotations: map[string]string{lockAnnotation: note}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &lock.Holder, AcquireTime: &taken},
		}, metav1.CreateOptions{FieldManager: drainManager})
	}
	patch := annotationsPatch(values{lockAnnotation: note})
	patch["spec"] = values{"holderIdentity": lock.Holder, "acquireTime": taken}
	data, err := patchFor(lock.Version, patch)
	if err != nil {
		return nil, err
	}
	lease, err := api.Patch(ctx, drainLease, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: drainManager})
	if absent(err) {
		return nil, fmt.Errorf("%w: it is gone", types.ErrConflict)
	}
	return lease, err
}

// FreeDrainLock removes the lock of lock.Version. It returns nil when there is
// none, and an error that wraps types.ErrConflict when it is another one by now.
func (c *Client) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	if lock.Version == "" {
		return nil
	}
	return c.write(ctx, deed{"free drain lock", "drain-lock/" + lock.Holder}, "free drain lock of node "+lock.Holder, func(ctx context.Context, conn *connection) error {
		err := conn.kube.CoordinationV1().Leases(Namespace).Delete(ctx, drainLease,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lock.Version}})
		if absent(err) {
			return nil
		}
		return err
	})
}
