package drain

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// source is another agent's topic, which may not have been heard of yet.
type source struct {
	pubsub.Table[types.NodeDrainRequest]
	notReceived atomic.Bool
}

func (s *source) Synced() bool { return !s.notReceived.Load() }

// recorder is the publication, with its history.
type recorder struct {
	pubsub.Table[types.NodeDrainStatus]
	mu     sync.Mutex
	seen   []stamped
	before func(types.NodeDrainStatus) // called before a new state is published
	looks  atomic.Int64                // one for each step, and few more
}

func (r *recorder) Get(key string) (types.NodeDrainStatus, bool) {
	r.looks.Add(1)
	return r.Table.Get(key)
}

type stamped struct {
	at time.Time
	v  types.NodeDrainStatus
}

func (r *recorder) Publish(key string, v types.NodeDrainStatus) error {
	if was, _ := r.Table.Get(key); was.Status != v.Status && r.before != nil {
		r.before(v)
	}
	r.mu.Lock()
	r.seen = append(r.seen, stamped{time.Now(), v})
	r.mu.Unlock()
	return r.Table.Publish(key, v)
}

// path is the history as digits: 2345(7)9; a change of the requester alone shows twice.
func (r *recorder) path() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, s := range r.seen {
		fmt.Fprint(&b, int(s.v.Status))
	}
	return b.String()
}

// when is how long after start the value was first published; -1 for never.
func (r *recorder) when(start time.Time, v types.NodeDrainStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s.v == v {
			return s.at.Sub(start)
		}
	}
	return -1
}

// journal is the persistent topic, on a disk that may be full.
type journal struct {
	pubsub.Table[types.NodeDrainJournal]
	full   atomic.Bool
	before func() // called before something is written
}

func (j *journal) Publish(key string, v types.NodeDrainJournal) error {
	if j.before != nil {
		j.before()
	}
	if j.full.Load() {
		return errors.New("no space left on device")
	}
	return j.Table.Publish(key, v)
}

// explained is the progress record, each of which may be looked at.
type explained struct {
	pubsub.Table[types.NodeDrainProgress]
	before func(types.NodeDrainProgress)
}

func (p *explained) Publish(key string, v types.NodeDrainProgress) error {
	if p.before != nil {
		p.before(v)
	}
	return p.Table.Publish(key, v)
}
