package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"os"
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

// scanWhen scans if that is due and returns when the next scan is.
func (f *follower) scanWhen(due time.Time) time.Time {
	if time.Now().Before(due) {
		return due
	}
	return time.Now().Add(f.scan())
}

// scan takes the directory for the truth as far as that can be trusted, and
// returns when it wants to look again. A directory that is missing or cannot
// be read says nothing; a file that cannot be used changes nothing.
func (f *follower) scan() time.Duration {
	if f.topic.socketOnly {
		return f.rescan
	}
	values, bad, err := readDir(f.topic.dir())
	if err != nil {
		clear(f.missing)
		if !errors.Is(err, os.ErrNotExist) {
			f.report(f.topic.dir(), "cannot read the publisher's directory", err)
		}
		return f.rescan
	}
	delete(f.reported, f.topic.dir())
	for key, data := range values {
		f.update(key, data)
	}
	for key, err := range bad {
		f.refuse(key, err.Error(), err)
	}
	if f.topic.persistent {
		f.fallBack(values, bad)
	}
	again := f.rescan
	for _, key := range f.known() {
		_, good := values[key]
		_, is := bad[key]
		if good || is {
			delete(f.missing, key)
			continue
		}
		again = min(again, f.miss(key))
	}
	f.whole()
	return again
}

// fallBack takes the backup of every key that has no good value: its file is
// lost or bad. A withdrawal takes the backup away before the file, so a file
// that is lost beside its backup was not withdrawn.
func (f *follower) fallBack(values map[string][]byte, bad map[string]error) {
	backups, _, err := readFiles(f.topic.dir(), backupSuffix)
	if err != nil {
		f.report(f.topic.dir(), "cannot read the publisher's backups", err)
	}
	rows := f.table.keys()
	for key, data := range backups {
		if _, is := values[key]; !is && bad[key] == nil {
			bad[key] = os.ErrNotExist
		}
		if slices.Contains(rows, key) {
			continue // the last good value is newer
		}
		if f.table.keep(key, data) == nil {
			f.log.WithField("key", key).Warn("took a value from its backup")
		}
	}
}

// known is every key that was heard of, with a row or without a good value yet.
func (f *follower) known() []string {
	keys := f.table.keys()
	for key := range f.refused {
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// miss withdraws a key whose file is not there, unless it has to be looked for
// again; then it returns in how long.
func (f *follower) miss(key string) time.Duration {
	since, known := f.missing[key]
	if !known {
		since = time.Now()
		f.missing[key] = since
	}
	if left := settle - time.Since(since); left > 0 {
		return left
	}
	f.withdraw(key)
	return f.rescan
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
	f.counts.refused.Add(1)
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

// report logs trouble with a path, once until it is something else.
func (f *follower) report(path, what string, err error) {
	if f.reported[path] != err.Error() {
		f.reported[path] = err.Error()
		f.log.WithError(err).Warn(what)
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
