// Package safefile reads files that other programs write, and makes files for them. A FIFO or a device in
// the place of a file does not hold the reader up, and a huge file does not take
// its memory. Every other package opens such files by this one.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
)

// Small is a bound for files of one value or one page, in bytes.
const Small = 1 << 20

// NoFollow is a flag of OpenFile: a symbolic link in the file's place is an
// error.
const NoFollow = syscall.O_NOFOLLOW

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

// OpenFile opens the regular file at path, with the flags and the mode of
// os.OpenFile. Its errors name the path as those of os do.
func OpenFile(path string, flag int, mode os.FileMode) (*os.File, os.FileInfo, error) {
	// O_NONBLOCK: to open a FIFO that nobody writes to would hang.
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// OpenTrusted opens a file by which an operator commands the agent. Only a regular
// file counts that root or our own user owns, that nobody else may write, and
// that has no other name: /tmp is writable for everybody.
func OpenTrusted(path string) (*os.File, os.FileInfo, error) {
	f, info, err := OpenFile(path, os.O_RDONLY|NoFollow, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := distrust(info); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, info, nil
}

// distrust is why a file is no operator's word, nil where it may be one.
func distrust(info os.FileInfo) error {
	if err := Others(info); err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || st.Nlink == 0:
		return fs.ErrNotExist // removed or replaced a moment ago
	case st.Nlink > 1:
		return errors.New("it has more than one hard link")
	}
	return nil
}

// Mark tells one writing of a file from another: which file it is, and when by
// the file system it was last changed, which is only compared.
func Mark(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime().String()
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}

// Open opens the regular file at path for reading. Symbolic links are followed.
func Open(path string) (*os.File, error) {
	f, _, err := OpenFile(path, os.O_RDONLY, 0)
	return f, err
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
	raw, err := Head(f, most+1)
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is longer than %d bytes", most)}
	}
	return raw, nil
}

// Head reads what is left of an open file, up to most bytes. With an error comes
// what could be read.
func Head(f *os.File, most int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(f, most))
}

// Create makes a file where none is, whole or not at all, with just that mode. Its
// content is on the disk when it returns. Readers see it where it is linked or renamed to.
func Create(path, content string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Chmod(mode)); err == nil { // whatever the umask is
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// Replace puts a file as of Create in the place of what is at path, in one step: a reader
// sees the old one or the new one. It is made at part, beside it; what is there is removed.
func Replace(path, part, content string, mode os.FileMode) error {
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Create(part, content, mode); err != nil {
		return err
	}
	err := failpoint.Do("write", path, func() error { return os.Rename(part, path) })
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// Names lists the entries of a directory in the order it has them, most of them
// at the most. A FIFO in its place does not hold the reader up.
func Names(dir string, most int) ([]string, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil // there are none
	}
	return names, err
}

// CheckSpace says why a directory has no room for so many bytes, and copies of these files.
func CheckSpace(dir string, need uint64, copies ...string) error {
	for _, path := range copies {
		if info, err := os.Stat(path); err == nil {
			need += uint64(max(info.Size(), 0))
		}
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	if free := s.Bavail * uint64(max(s.Bsize, 0)); free < need {
		return fmt.Errorf("%d MiB are free for k3s, it needs %d MiB", free>>20, need>>20)
	}
	return nil
}
