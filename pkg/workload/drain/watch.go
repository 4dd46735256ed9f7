package drain

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

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

// watched is what is asked for of a directory: what comes and goes there, whose
// rights change, and what somebody has finished writing. Not every single write,
// as fsnotify asks for: one of the directories is /tmp, and others write there.
const watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// dirWatch is an inotify instance. One goroutine uses it; another may close it.
type dirWatch struct {
	fd   *os.File
	dirs map[int32]string // by watch descriptor
	buf  []byte
}

// dirEvent is what happened to a path: to a watched directory, or to what is in one.
type dirEvent struct {
	path string
	mask uint32
}

func newDirWatch() (*dirWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &dirWatch{fd: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}, buf: make([]byte, 64<<10)}, nil
}

func (w *dirWatch) close() { _ = w.fd.Close() }

// add watches dir, which may be watched already, or not be there.
func (w *dirWatch) add(dir string) {
	conn, err := w.fd.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = conn.Control(func(fd uintptr) {
		if wd, err := unix.InotifyAddWatch(int(fd), dir, watched); err == nil {
			w.dirs[int32(wd)] = dir //nolint:gosec // the kernel's own type
		}
	})
}

// next waits for events. lost says that there were more than the kernel keeps. An
// error says that the watch is closed.
func (w *dirWatch) next() (events []dirEvent, lost bool, err error) {
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
			events = append(events, dirEvent{path: filepath.Join(dir, string(name)), mask: mask})
		}
	}
	return events, lost, nil
}
