package types

import (
	"cmp"
	"errors"
	"time"
)

// LogOptions say what to read of a container's log. Each line comes with its
// time in RFC 3339 with nanoseconds and a space before it.
type LogOptions struct {
	Container string
	Previous  bool      // of the instance before the current one
	Follow    bool      // go on until the container ends
	Since     time.Time // the oldest line; the server knows seconds only, parts of one are cut off; zero for the beginning
	Tail      int64     // at most that many lines, the newest; 0 for all
}

// ErrNoLog is wrapped where the kubelet has no such log: the pod is gone, the
// container has not started, or there was no instance before.
var ErrNoLog = errors.New("no such log")

// LogFile is a file of a container's log that a kubelet keeps.
type LogFile struct {
	Name    string // in the directory of the container
	Run     int32  // which of the container's instances wrote it, from 0
	Rotated bool   // nothing is added to it any more
}

// Compare orders files as they were written.
func (f LogFile) Compare(other LogFile) int {
	newest := func(f LogFile) int {
		if f.Rotated {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(f.Run, other.Run), cmp.Compare(newest(f), newest(other)), cmp.Compare(f.Name, other.Name))
}
