package pubsub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/sirupsen/logrus"
)

// watcher rings when something happens to a path. One serves the whole bus:
// the kernel gives a user few inotify instances.
type watcher struct {
	log logrus.FieldLogger

	mu        sync.Mutex
	fs        *fsnotify.Watcher // nil where there is no inotify available
	failed    bool              // a failure to watch was reported
	interests []interest
}

// interest is what a subscription wants to hear about.
type interest struct {
	dir  string // and the files in it
	sock string
	bell chan<- struct{}
}

// add makes events ring from the next run on. It does not watch yet.
func (w *watcher) add(i interest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interests = append(w.interests, i)
}

// open gets ready to watch. Without inotify the subscriptions still look
// again from time to time, so that is only reported.
func (w *watcher) open() {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.WithError(err).Error("cannot watch directories, changes will be seen late")
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fs = fs
}

// run rings the bells until ctx is done.
func (w *watcher) run(ctx context.Context) {
	w.mu.Lock()
	fs := w.fs
	w.mu.Unlock()
	if fs == nil {
		return
	}
	defer fs.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-fs.Events:
			// A touched file has the content it had.
			if event.Op != fsnotify.Chmod {
				w.ring(func(i interest) bool { return i.concerns(event.Name) })
			}
		case err := <-fs.Errors:
			w.log.WithError(err).Debug("events were lost, all directories are read again")
			w.ring(func(interest) bool { return true })
		}
	}
}

func (w *watcher) ring(which func(interest) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.interests {
		if which(i) {
			Ring(i.bell)
		}
	}
}

// concerns reports whether path is one of the interest's, in its directory or
// above.
func (i interest) concerns(path string) bool {
	if path == i.dir || path == i.sock || filepath.Dir(path) == i.dir {
		return true
	}
	above := strings.TrimSuffix(path, "/") + "/"
	return strings.HasPrefix(i.dir, above) || strings.HasPrefix(i.sock, above)
}

// watch watches dir or, while that does not exist, the nearest directory above
// it, where its coming is an event.
func (w *watcher) watch(dir string) {
	w.mu.Lock()
	fs := w.fs
	w.mu.Unlock()
	if fs == nil {
		return
	}
	for at := dir; ; {
		err := fs.Add(at)
		switch {
		case err == nil && at == dir:
			return
		case err == nil:
			// What was missing may have come before we watched its parent.
			if _, err := os.Stat(below(at, dir)); err != nil { // a link to nothing is not there either
				return
			}
			at = dir
		case errors.Is(err, os.ErrNotExist) && at != filepath.Dir(at):
			at = filepath.Dir(at)
		default:
			w.report(err)
			return
		}
	}
}

// unwatch ends the watch on dir, unless someone else wants it too. What is
// watched above it stays.
func (w *watcher) unwatch(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := 0
	for _, i := range w.interests {
		if i.dir == dir {
			wanted++
		}
	}
	if w.fs != nil && wanted < 2 {
		_ = w.fs.Remove(dir) // it may not be watched, or not be there any more
	}
}

// below is the child of parent on the way to path.
func below(parent, path string) string {
	for filepath.Dir(path) != parent && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}

func (w *watcher) report(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failed && !errors.Is(err, fsnotify.ErrClosed) {
		w.failed = true
		w.log.WithError(err).Error("cannot watch a directory, changes will be seen late")
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
	if left := f.settle - time.Since(since); left > 0 {
		return left
	}
	f.withdraw(key)
	return f.rescan
}
