package pubsub

import (
	"errors"
	"os"
	"slices"
	"time"
)

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
			f.log.WithField("key", key).Warn("read a value from its backup")
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
