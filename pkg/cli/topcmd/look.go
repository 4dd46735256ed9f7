package topcmd

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/types"
)

const (
	// lookEvery is how often the agent is told that somebody still looks.
	lookEvery = 5 * time.Second
	// lookForgotten is how old the word of a command may be that lives: more, and
	// it was killed before it could take it back.
	lookForgotten = time.Minute
	// lookWithin is how long the table waits for the agent to hear that: not so
	// long that one that hangs keeps it from being drawn.
	lookWithin = time.Second
)

// looking is the wish that the agent looks often, under a key of its own.
type looking struct {
	topic device.Requested[types.MetricsLook]
	key   string
	next  time.Time // of the renewal
	err   error     // of the newest; nil where it lies there
}

// startLooking makes the topic ready, and takes back what commands left there
// that were killed.
func startLooking(p device.Paths) (*looking, error) {
	topic, err := device.OperatorTopic[types.MetricsLook](p)
	if err != nil {
		return nil, err
	}
	topic.Within = lookWithin
	l := &looking{topic: topic, key: uuid.NewString()}
	now := time.Now()
	for key, left := range topic.All() {
		if now.Sub(left.At).Abs() > lookForgotten {
			_ = topic.Unpublish(key) // the next command tries again
		}
	}
	return l, nil
}

// renew says it again when it is time.
func (l *looking) renew(now time.Time) {
	if now.Before(l.next) {
		return
	}
	l.next = now.Add(lookEvery)
	l.err = l.topic.Publish(l.key, types.MetricsLook{At: now.UTC()})
	if l.err != nil {
		l.err = fmt.Errorf("the agent cannot be asked to look every 5 s: %w", l.err)
	}
}

// end takes it back. Where that fails the agent forgets it all the same.
func (l *looking) end() { _ = l.topic.Unpublish(l.key) }
