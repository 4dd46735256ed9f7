package drain

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
	"github.com/sirupsen/logrus"
)

// doorbell is an input without content.
type doorbell struct {
	mu    sync.Mutex
	bells []chan<- struct{}
}

// Notify implements loop.Input.
func (d *doorbell) Notify(bell chan<- struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bells = append(d.bells, bell)
}

func (d *doorbell) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, bell := range d.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// watchFiles rings when something happens to one of the files, in directories
// that may come later or be replaced, until ctx is done. Where nothing can be
// watched that is reported: the drain's period has to do then.
func watchFiles(ctx context.Context, log logrus.FieldLogger, ring func(), files ...string) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		log.WithError(err).Warn("cannot watch for the NodeDrainStatus force file, it will be seen late")
		return
	}
	defer notify.Close()
	for i, file := range files {
		if abs, err := filepath.Abs(file); err == nil {
			files[i] = abs
		}
	}
	for {
		dirs := watchDirs(notify, files)
		ring() // for what happened before they were watched
		if !watchUntil(ctx, notify, ring, files, dirs) {
			return
		}
	}
}

// watchUntil rings for the files until one of the directories comes or goes;
// it reports false when ctx is done.
func watchUntil(ctx context.Context, notify *fsnotify.Watcher, ring func(), files, dirs []string) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-notify.Errors: // events were lost
			return true
		case e := <-notify.Events:
			switch {
			case slices.Contains(files, e.Name):
				ring()
			case e.Op != fsnotify.Chmod && slices.Contains(dirs, e.Name):
				return true
			}
		}
	}
}

// watchDirs watches the directory of each file and all those above it, as far
// as they exist, from the root down: so the coming of a missing one is seen
// however soon it comes. It returns them all.
func watchDirs(notify *fsnotify.Watcher, files []string) []string {
	var dirs []string
	for _, file := range files {
		for dir := filepath.Dir(file); !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs) // a directory comes before what is in it
	for _, dir := range dirs {
		_ = notify.Add(dir) // it may not be there yet
	}
	return dirs
}
