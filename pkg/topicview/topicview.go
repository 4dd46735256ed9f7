// Package topicview shows what lies in the directories of pubsub, of any agent,
// to people: enums by their names, large fields in their place, secrets masked.
// It needs neither the agents nor the types of their topics.
package topicview

import (
	"errors"
	"time"
)

// Topic is one topic of one agent on a device.
type Topic struct {
	Agent      string
	Name       string
	Persistent bool
	Keys       int
	Bytes      int64
	Written    time.Time // when the newest value was; zero without one
}

// Value is what lies under one key.
type Value struct {
	Key     string
	Written time.Time
	Value   any    // of encoding/json, masked, enums named; nil where Why says why
	Why     string // why it cannot be shown; "" where it can
}

// Change is one field that is not what it was.
type Change struct {
	Path string // Key.Field.Field[0]
	Old  string // JSON; "" for a field that came
	New  string // JSON; "" for a field that went
}

// ErrNone is returned where there is no such topic.
var ErrNone = errors.New("there is no such topic")
