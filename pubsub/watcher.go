package pubsub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

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
		if !which(i) {
			continue
		}
		select {
		case i.bell <- struct{}{}:
		default:
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
			if _, err := os.Lstat(below(at, dir)); err != nil {
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
