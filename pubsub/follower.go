package pubsub

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// minRetry is the pause before a dial: right after a publisher went, it
	// often comes back at once. It doubles up to maxRetry.
	minRetry = 50 * time.Millisecond
	maxRetry = 10 * time.Second
	// rescanEvery is a follower's rescan outside of tests.
	rescanEvery = time.Minute
	// settle is how long a directory may say something else than is meant. The
	// first files missing may be a directory being removed as a whole, and that
	// is nobody's withdrawal. And EVE's publishers send a value before they
	// write its file, so a directory may be behind a socket that was just lost.
	settle = time.Second
)

// sink is the typed half of a subscription.
type sink interface {
	// keep decodes and stores a row; it rings only if the row is another one.
	keep(key string, data []byte) error
	remove(key string)
	keys() []string
	wake()
}

// follower is a subscription without its type. Its run goroutine alone
// changes the rows.
type follower struct {
	topic   topic
	log     logrus.FieldLogger
	quota   *quota
	watcher *watcher
	bell    chan struct{}
	table   sink
	synced  atomic.Bool
	rescan  time.Duration // how often a directory is read without an event, in case one was lost
	counts  counts

	refused  map[string]string    // what was last refused of a key and reported
	missing  map[string]time.Time // since when the file of a row is not there
	reported map[string]string    // the trouble with a path that was last reported
}

// Synced implements Source.
func (f *follower) Synced() bool { return f.synced.Load() }

// open implements member: the directory is read once.
func (f *follower) open() error {
	if err := f.topic.check(); err != nil {
		return err
	}
	f.scan()
	return nil
}

// run implements member: it follows the socket while there is one and the
// directory otherwise.
func (f *follower) run(ctx context.Context) {
	if f.topic.check() != nil {
		return
	}
	retry, due, behind := minRetry, time.Time{}, time.Time{}
	for ctx.Err() == nil {
		f.watcher.watch(filepath.Dir(f.topic.sock()))
		f.watcher.watch(f.topic.dir())
		// Before the dial: a publisher that hangs must not hide its files.
		due = f.scanWhen(due)
		connected, whole := f.follow(ctx)
		if whole {
			retry, behind = minRetry, time.Now().Add(settle)
		}
		if connected {
			due = f.scanWhen(behind)
		}
		timer := time.NewTimer(max(0, min(retry, time.Until(due))))
		select {
		case <-ctx.Done():
		case <-f.bell:
			retry, due = minRetry, behind
		case <-timer.C:
			retry = min(2*retry, maxRetry)
		}
		timer.Stop()
	}
}

// update stores a value, or reports once why it cannot.
func (f *follower) update(key string, data []byte) {
	if err := f.table.keep(key, data); err != nil {
		f.refuse(key, canonical(data), err)
		return
	}
	delete(f.refused, key)
}

// withdraw removes a row.
func (f *follower) withdraw(key string) {
	delete(f.refused, key)
	delete(f.missing, key)
	f.table.remove(key)
}

// refuse reports bad data of key, once until that is something else and while its
// publisher has not caused too many lines. The last good row stays.
func (f *follower) refuse(key, what string, err error) {
	if last, ok := f.refused[key]; ok && last == what {
		return
	}
	f.refused[key] = what
	f.counts.refused.Add(1)
	if log, ok := f.quota.take(f.log); ok {
		log.WithError(err).WithField("key", key).Error("received an invalid value, keeping the last valid one")
	}
}

// canonical encodes JSON so that a file and a message with the same value are
// the same text. What is no JSON is left as it is.
func canonical(data []byte) string {
	var tree any
	if decodeNumbers(data, &tree) == nil {
		if b, err := json.Marshal(tree); err == nil {
			return string(b)
		}
	}
	return string(data)
}

// report logs trouble with a path, once until it is something else.
func (f *follower) report(path, what string, err error) {
	if f.reported[path] != err.Error() {
		f.reported[path] = err.Error()
		if log, ok := f.quota.take(f.log); ok {
			log.WithError(err).Warn(what)
		}
	}
}

// whole notes that the rows are a complete snapshot. They are not while there
// is a key that never had a good value: its row is unknown, not withdrawn.
func (f *follower) whole() {
	if f.synced.Load() {
		return
	}
	rows := f.table.keys()
	for key := range f.refused {
		if key != "" && !slices.Contains(rows, key) {
			return
		}
	}
	f.synced.Store(true)
	f.table.wake()
}

// stats implements member.
func (f *follower) stats() Stats { return f.counts.stats(f.topic.String(), true, 0) }
