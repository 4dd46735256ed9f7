package drain

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
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
	watch, err := newDirWatch()
	if err != nil {
		log.WithError(err).Warn("cannot watch for the NodeDrainStatus force file, it will be seen late")
		return
	}
	defer watch.close()
	defer context.AfterFunc(ctx, watch.close)()
	for i, file := range files {
		if abs, err := filepath.Abs(file); err == nil {
			files[i] = abs
		}
	}
	for ctx.Err() == nil {
		dirs := watchDirs(watch, files)
		ring() // for what happened before they were watched
		if err := watchUntil(watch, ring, files, dirs); err != nil && ctx.Err() == nil {
			log.WithError(err).Warn("the watch for the NodeDrainStatus force file has ended, it will be seen late")
			return
		}
	}
}

// watchUntil rings for the files until one of the directories comes or goes, or
// events were lost; its error says that the watch has ended.
func watchUntil(watch *dirWatch, ring func(), files, dirs []string) error {
	for {
		events, again, err := watch.next()
		if err != nil {
			return err
		}
		for _, e := range events {
			switch {
			case slices.Contains(files, e.path):
				ring()
			case e.mask&unix.IN_ATTRIB == 0 && slices.Contains(dirs, e.path):
				again = true
			}
		}
		if again {
			return nil
		}
	}
}

// watchDirs watches the directory of each file and all those above it, as far
// as they exist, from the root down: so the coming of a missing one is seen
// however soon it comes. It returns them all.
func watchDirs(watch *dirWatch, files []string) []string {
	var dirs []string
	for _, file := range files {
		for dir := filepath.Dir(file); !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs) // a directory comes before what is in it
	for _, dir := range dirs {
		watch.add(dir)
	}
	return dirs
}
