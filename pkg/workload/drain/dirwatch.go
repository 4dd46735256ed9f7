package drain

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
