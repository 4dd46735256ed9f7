package appscmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// detachLog writes what happens for the user at the terminal, and for those who ask
// later.
type detachLog struct {
	out  io.Writer
	file *os.File // nil where it cannot be written
}

// openDetachLog opens the log file, whose lack holds nothing up: a detach is
// most needed where something is broken.
func openDetachLog(p device.Paths, out, warn io.Writer) *detachLog {
	l := &detachLog{out: out}
	err := os.MkdirAll(filepath.Dir(detachLogFile(p)), 0o755)
	if err == nil {
		l.file, err = openDetachFile(detachLogFile(p))
	}
	if err != nil {
		fmt.Fprintln(warn, "The log file could not be written:", terminal.Clean(err.Error()))
	}
	return l
}

// openDetachFile opens a log to write at its end: a regular file that has no other name
// and that nobody else may write from now on.
func openDetachFile(path string) (*os.File, error) {
	f, info, err := safefile.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|safefile.NoFollow, 0o640)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink != 1 {
		err = fmt.Errorf("%s is not a regular file with a single hard link", path)
	}
	if err == nil {
		err = f.Chmod(0o640) // an earlier release let everybody write it
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// say writes one line. What the file does not take is to be seen all the same.
func (l *detachLog) say(at time.Time, format string, args ...any) error {
	line := terminal.Timestamp(at) + " " + terminal.Clean(fmt.Sprintf(format, args...)) + "\n"
	if l.file != nil {
		_, _ = l.file.WriteString(line)
	}
	if _, err := io.WriteString(l.out, line); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (l *detachLog) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
