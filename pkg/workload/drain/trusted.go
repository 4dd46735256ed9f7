package drain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// openTrusted opens a file by which an operator commands a drain. Only a regular
// file counts that root or our own user owns, that nobody else may write, and
// that has no other name: /tmp is writable for everybody.
func openTrusted(path string) (*os.File, os.FileInfo, error) {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
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
	if err := safefile.Others(info); err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || st.Nlink == 0:
		return fs.ErrNotExist // removed or replaced a moment ago
	case st.Nlink > 1:
		return errors.New("it has another name, which is a hard link")
	}
	return nil
}

// markOf tells one writing of a file from another: which file it is, and when by
// the file system it was last changed, which is only compared.
func markOf(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime().String()
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}

// readMarker reports that the tests' marker is there, by the rules of the force
// files, or why one that is there does not count.
func readMarker(path string) (held bool, doubted error) {
	f, _, err := openTrusted(path)
	switch {
	case err == nil:
		return true, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}
