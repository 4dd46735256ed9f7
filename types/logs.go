package types

import (
	"errors"
	"time"
)

// LogOptions say what to read of a container's log. Each line comes with its
// time in RFC 3339 with nanoseconds and a space before it.
type LogOptions struct {
	Container string
	Previous  bool      // of the instance before the present one
	Follow    bool      // go on until the container ends
	Since     time.Time // the oldest line; the server knows seconds only, parts of one are cut off; zero for the beginning
	Tail      int64     // only so many lines of those that are there, the newest; 0 for all
}

// ErrNoLog is wrapped where the kubelet has no such log: the pod is gone, the
// container has not started, or there was no instance before.
var ErrNoLog = errors.New("no such log")
