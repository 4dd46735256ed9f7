// Package filewatch tells when something happens to files in directories that may
// come later or be replaced. It does not notice what happens behind a symbolic link
// in the path, nor a directory that the kernel refused to watch: who uses it looks at
// the files from time to time as well.
package filewatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Watch is an inotify instance. One goroutine uses it; another may close it.
type Watch struct {
	fd   *os.File
	dirs map[int32]string // by watch descriptor
	buf  []byte
}

// event is what happened to a path: to a watched directory, or to what is in one.
type event struct {
	path string
	mask uint32
}

const (
	// above is what is asked for of a directory above those of the files: what comes and
	// goes there. One of them is /run, where each agent of the device touches a file of its
	// own several times a minute.
	above = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	// watched is what is asked for of a file's directory: whose rights change, too, and what
	// somebody has finished writing. Not every single write, as fsnotify asks for: one of
	// the directories is /tmp, and others write there.
	watched = above | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE
)

// New makes a watch, for one Run. It fails where the kernel has none left.
func New() (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &Watch{fd: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}, buf: make([]byte, 64<<10)}, nil
}

// Run rings when something happens to one of the files, and once at the beginning, until
// ctx is done. Its error says that the watch has ended before.
func (w *Watch) Run(ctx context.Context, ring func(), files ...string) error {
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	for i, file := range files {
		if abs, err := filepath.Abs(file); err == nil {
			files[i] = abs
		}
	}
	for ctx.Err() == nil {
		dirs := w.watchDirs(files)
		ring() // for what happened before they were watched
		if err := w.until(ring, files, dirs); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// until rings for the files until one of the directories comes or goes, or
// events were lost; its error says that the watch has ended.
func (w *Watch) until(ring func(), files, dirs []string) error {
	for {
		events, again, err := w.next()
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
func (w *Watch) watchDirs(files []string) []string {
	var dirs, own []string
	for _, file := range files {
		own = append(own, filepath.Dir(file))
		for dir := filepath.Dir(file); !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs) // a directory comes before what is in it
	for _, dir := range dirs {
		if slices.Contains(own, dir) {
			w.add(dir, watched)
		} else {
			w.add(dir, above)
		}
	}
	return dirs
}

func (w *Watch) close() { _ = w.fd.Close() }

// add watches dir, which may be watched already, or not be there.
func (w *Watch) add(dir string, mask uint32) {
	conn, err := w.fd.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = conn.Control(func(fd uintptr) {
		if wd, err := unix.InotifyAddWatch(int(fd), dir, mask); err == nil {
			w.dirs[int32(wd)] = dir //nolint:gosec // the kernel's own type
		}
	})
}

// next waits for events. lost says that there were more than the kernel keeps. An
// error says that the watch is closed.
func (w *Watch) next() (events []event, lost bool, err error) {
	n, err := w.fd.Read(w.buf)
	if err != nil {
		return nil, false, err
	}
	for b := w.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		wd := int32(binary.NativeEndian.Uint32(b)) //nolint:gosec // struct inotify_event begins with an int
		mask := binary.NativeEndian.Uint32(b[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
		b = b[end:]
		dir, known := w.dirs[wd]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			lost = true
		case !known:
		case mask&unix.IN_IGNORED != 0:
			delete(w.dirs, wd)
		default:
			events = append(events, event{path: filepath.Join(dir, string(name)), mask: mask})
		}
	}
	return events, lost, nil
}
