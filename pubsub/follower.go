package pubsub

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// minRetry is the pause before a dial: right after a publisher went, it
	// often comes back at once. It doubles up to maxRetry.
	minRetry = 50 * time.Millisecond
	maxRetry = 10 * time.Second
	// rescanEvery is how often a directory is read without an event, in case
	// one was lost.
	rescanEvery = time.Minute
	// settle is how long a file has to be missing from a directory that is
	// still there: the first files missing may be a directory being removed as
	// a whole, and that is nobody's withdrawal.
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
	watcher *watcher
	bell    chan struct{}
	table   sink
	synced  atomic.Bool

	refused map[string]string    // what was last refused of a key and reported
	missing map[string]time.Time // since when the file of a row is not there
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
	retry, due := minRetry, time.Time{}
	for ctx.Err() == nil {
		f.watcher.watch(filepath.Dir(f.topic.sock()))
		f.watcher.watch(f.topic.dir())
		if !time.Now().Before(due) {
			// Before the dial: a publisher that hangs must not hide its files.
			due = time.Now().Add(f.scan())
		}
		connected, whole := f.session(ctx)
		if whole {
			retry = minRetry
		}
		if connected {
			due = time.Now().Add(f.scan())
		}
		timer := time.NewTimer(max(0, min(retry, time.Until(due))))
		select {
		case <-ctx.Done():
		case <-f.bell:
			retry, due = minRetry, time.Time{}
		case <-timer.C:
			retry = min(2*retry, maxRetry)
		}
		timer.Stop()
	}
}

// scan takes the directory for the truth as far as that can be trusted, and
// returns when it wants to look again. A directory that is missing or cannot
// be read says nothing; a file that cannot be used changes nothing.
func (f *follower) scan() time.Duration {
	if f.topic.socketOnly {
		return rescanEvery
	}
	values, bad, err := readDir(f.topic.dir())
	if err != nil {
		clear(f.missing)
		return rescanEvery
	}
	for key, data := range values {
		f.update(key, data)
	}
	for key, err := range bad {
		f.refuse(key, err.Error(), err)
	}
	again := rescanEvery
	for _, key := range f.table.keys() {
		_, good := values[key]
		_, is := bad[key]
		if good || is {
			delete(f.missing, key)
			continue
		}
		since, known := f.missing[key]
		if !known {
			since = time.Now()
			f.missing[key] = since
		}
		if left := settle - time.Since(since); left > 0 {
			again = min(again, left)
			continue
		}
		f.withdraw(key)
	}
	f.whole()
	return again
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

// refuse reports bad data of key, once until that is something else. The last
// good row stays.
func (f *follower) refuse(key, what string, err error) {
	if last, ok := f.refused[key]; ok && last == what {
		return
	}
	f.refused[key] = what
	f.log.WithError(err).WithField("key", key).Error("cannot use what was published, the last good value stays")
}

// canonical spells JSON so that a file and a message with the same value are
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

// whole notes that the rows are a complete snapshot.
func (f *follower) whole() {
	if !f.synced.Swap(true) {
		f.table.wake()
	}
}
