package kubeapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/zedkube/zedkube/types"
)

// noteText bounds what is read: no annotation can be longer.
const noteText = 256 << 10

var errTooLong = errors.New("it is too long for an annotation")

// lockOf reads a Lease, of which anybody may have written any part.
func lockOf(lease *coordinationv1.Lease) (types.DrainLock, error) {
	if lease.Name != drainLease || lease.Namespace != Namespace || lease.ResourceVersion == "" {
		return types.DrainLock{}, errOther
	}
	lock := types.DrainLock{Version: lease.ResourceVersion}
	if lease.Spec.HolderIdentity != nil {
		lock.Holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.AcquireTime != nil {
		lock.Since = lease.Spec.AcquireTime.Time
	}
	note, ok := readNote(lease.Annotations[lockAnnotation])
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
	if len(text) > noteText {
		return lockNote{}, false
	}
	if json.Unmarshal([]byte(text), &note) != nil {
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
