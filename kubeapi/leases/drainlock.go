package leases

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// The Lease of docs/wire.md, "Drain lock". It has no duration: it ends by
// evidence and not by time.
const (
	DrainLease     = types.DrainLockName
	LockAnnotation = "zedkube.github.io/drain-lock"
	// lockText bounds the annotation: Kubernetes takes 256 KiB for all
	// annotations of an object. 5,000 volumes with names like Longhorn's,
	// of 40 letters, fit.
	lockText = 240_000
)

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
	return access.Read(ctx, c.Session, "get drain lock", func(ctx context.Context, conn *access.Connection) (types.DrainLock, error) {
		lease, err := conn.Kube.CoordinationV1().Leases(access.Namespace).Get(ctx, DrainLease, metav1.GetOptions{})
		if err != nil {
			return types.DrainLock{}, access.UnlessGone(err)
		}
		return lockOf(lease)
	})
}

// SetDrainLock makes the lock, or changes the one of lock.Version, and returns
// it as it is then. An error that wraps types.ErrConflict says that somebody
// else was faster.
//
// Where there are too many volumes for the annotation, those with the fewest
// healthy replicas stay. The others are not remembered: a later comparison will not
// miss a replica of theirs.
func (c *Client) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	act := "set drain lock for node " + lock.Holder
	if lock.Holder == "" {
		return types.DrainLock{}, fmt.Errorf("set drain lock: %w", ErrNoIdentity)
	}
	note, err := noteOf(lock)
	if err != nil {
		return types.DrainLock{}, fmt.Errorf("%s: %w", act, err)
	}
	op := access.Operation{Op: "take drain lock", Target: "drain-lock/" + lock.Holder}
	err = c.Write(ctx, op, act, func(ctx context.Context, conn *access.Connection) error {
		lease, err := writeLock(ctx, conn, lock, note)
		if err != nil {
			return err
		}
		set, err := lockOf(lease)
		if err == nil && set.Holder != lock.Holder {
			return access.ErrOther
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
// would recreate a Lease that somebody has freed.
func writeLock(ctx context.Context, conn *access.Connection, lock types.DrainLock, note string) (*coordinationv1.Lease, error) {
	api := conn.Kube.CoordinationV1().Leases(access.Namespace)
	taken := metav1.NewMicroTime(lock.Since)
	if lock.Version == "" {
		return api.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: access.Namespace, Name: DrainLease, Annotations: map[string]string{LockAnnotation: note}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &lock.Holder, AcquireTime: &taken},
		}, metav1.CreateOptions{FieldManager: access.DrainManager})
	}
	patch := access.AnnotationsPatch(access.Values{LockAnnotation: note})
	patch["spec"] = access.Values{"holderIdentity": lock.Holder, "acquireTime": taken}
	lease, err := access.Merge(ctx, api, DrainLease, access.DrainManager, access.ForVersion(lock.Version, patch))
	if access.NotFound(err) {
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
	op := access.Operation{Op: "free drain lock", Target: "drain-lock/" + lock.Holder}
	return c.Write(ctx, op, "free drain lock of node "+lock.Holder, func(ctx context.Context, conn *access.Connection) error {
		return access.UnlessGone(conn.Kube.CoordinationV1().Leases(access.Namespace).Delete(ctx, DrainLease,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lock.Version}}))
	})
}

// noteText bounds what is read: no annotation can be longer.
const noteText = 256 << 10

var errTooLong = errors.New("it is too long for an annotation")

// lockOf reads a Lease, of which anybody may have written any part.
func lockOf(lease *coordinationv1.Lease) (types.DrainLock, error) {
	if lease.Name != DrainLease || lease.Namespace != access.Namespace || lease.ResourceVersion == "" {
		return types.DrainLock{}, access.ErrOther
	}
	acquired := ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time
	lock := types.DrainLock{Version: lease.ResourceVersion, Holder: Holder(lease), Since: acquired}
	note, ok := readNote(lease.Annotations[LockAnnotation])
	if !ok {
		return lock, nil
	}
	lock.BootID, lock.Ended, lock.Volumes, lock.Task = note.BootID, note.Ended, note.Volumes, note.Task
	if !note.Since.IsZero() {
		lock.Since = note.Since
	}
	return lock, nil
}

// readNote believes all or nothing: a person who got one part wrong may have
// got others wrong as well.
func readNote(text string) (lockNote, bool) {
	var note lockNote
	if len(text) > noteText || json.Unmarshal([]byte(text), &note) != nil {
		return lockNote{}, false
	}
	for name, healthy := range note.Volumes {
		if name == "" || healthy < 0 {
			return lockNote{}, false
		}
	}
	return note, true
}

// noteOf is the annotation, within its bound. A volume that was worst off is
// the last to be left out: there the loss of one more replica matters most.
func noteOf(lock types.DrainLock) (string, error) {
	note := lockNote{BootID: lock.BootID, Since: lock.Since, Ended: lock.Ended, Task: lock.Task, Omitted: len(lock.Volumes), Volumes: map[string]int{}}
	bare, err := json.Marshal(note)
	if err != nil {
		return "", err
	}
	room := lockText - len(bare)
	names := slices.SortedFunc(maps.Keys(lock.Volumes), func(a, b string) int {
		return cmp.Or(cmp.Compare(lock.Volumes[a], lock.Volumes[b]), strings.Compare(a, b))
	})
	for _, name := range names {
		entry, err := json.Marshal(map[string]int{name: lock.Volumes[name]})
		if err != nil {
			return "", err
		}
		if room -= len(entry); room < 0 { // its braces make up for the comma
			break
		}
		note.Volumes[name] = lock.Volumes[name]
		note.Omitted--
	}
	text, err := json.Marshal(note)
	if err == nil && len(text) > lockText+len(`,"volumes":{}`) {
		return "", errTooLong
	}
	return string(text), err
}
