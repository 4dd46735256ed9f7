// Package safefile reads files that other programs write. A FIFO or a device in
// the place of a file does not hold the reader up, and a huge file does not take
// its memory.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Small is a bound for files of one value or one page, in bytes.
const Small = 1 << 20

// ErrNotRegular is wrapped where the path is no regular file.
var ErrNotRegular = errors.New("it is not a regular file")

// Others is why a file is not the word of root or of our own user alone: another
// user owns it, or may write it. It is nil where it is.
func Others(info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case !ok:
		return errors.New("its owner is unknown")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to another user (uid %d)", st.Uid)
	case mode&0o022 != 0:
		return fmt.Errorf("users other than its owner can write to it (mode %#o)", mode)
	}
	return nil
}

// Open opens the regular file at path for reading. Symbolic links are followed.
func Open(path string) (*os.File, error) {
	// O_NONBLOCK: to open a FIFO that nobody writes to would hang.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// Read reads the regular file at path; an error where it has more than most
// bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f, most)
}

// All reads what is left of an open file; an error where that is more than most
// bytes.
func All(f *os.File, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("read %s: it is longer than %d bytes", f.Name(), most)
	}
	return raw, nil
}
