package k3sbinary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	stagedPrefix = ".k3s-"             // and the version
	partPrefix   = ".k3s-part"         // what is not verified yet
	oldPart      = partPrefix + "-old" // Install's, which may be at work
	mostNames    = 1000                // entries of the directory that are looked at
)

// Staged is a verified binary that waits beside the one in use.
type Staged struct {
	Version string
	Path    string
	Size    int64     // bytes
	At      time.Time // when it was staged
}

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// CheckSum says why a text is not a SHA-256 in hexadecimal.
func CheckSum(sum string) error {
	if !sumForm.MatchString(sum) {
		return errors.New("it is not a SHA-256: want 64 digits 0-9 and a-f")
	}
	return nil
}

// Stage makes what from reads the staged binary, if it has that SHA-256 and says that it
// is that version, in this order: what has another sum is not run. Else nothing is
// changed. It takes the place of all that was staged before.
func (f Files) Stage(ctx context.Context, from io.Reader, version, sum string) (Staged, error) {
	if err := f.stage(ctx, from, version, sum); err != nil {
		return Staged{}, fmt.Errorf("stage k3s %s: %w", version, err)
	}
	return f.Staged()
}

func (f Files) stage(ctx context.Context, from io.Reader, version, sum string) (err error) {
	_, err = types.ParseK3sVersion(version)
	if err = errors.Join(err, CheckSum(sum)); err != nil {
		return err
	}
	base, err := f.Base()
	dir := filepath.Join(base, "k3s/bin")
	lock, err2 := os.Open(dir)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return errors.New("another k3s is being staged at this moment")
	}
	if err = errors.Join(removeAll(dir, isPart), f.CheckSpace()); err != nil { // of a run that was killed
		return err
	}
	part, err := os.CreateTemp(dir, partPrefix+"-*")
	if err != nil {
		return err
	}
	defer func() {
		_ = part.Close()
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}()
	is, err := copySum(ctx, part, from)
	if err == nil && is != sum {
		err = fmt.Errorf("its SHA-256 is %s, not %s", is, sum)
	}
	// A file that is open for writing cannot be run.
	if err = errors.Join(err, part.Chmod(0o755), part.Sync(), part.Close()); err != nil {
		return err
	}
	says, err := Version(ctx, part.Name())
	if err == nil && says != version {
		err = fmt.Errorf("it is k3s %s", says)
	}
	if err != nil {
		return err
	}
	name := stagedPrefix + version
	to := filepath.Join(dir, name)
	if err = failpoint.Do("write", to, func() error { return os.Rename(part.Name(), to) }); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), removeAll(dir, func(other string) bool { return strings.HasPrefix(other, stagedPrefix+"v") && other != name }))
}

// Staged is the binary that was staged last, zero for none.
func (f Files) Staged() (last Staged, err error) {
	base, err := f.Base()
	if err != nil {
		return last, err
	}
	dir := filepath.Join(base, "k3s/bin")
	names, err := safefile.Names(dir, mostNames)
	if err != nil {
		return last, fmt.Errorf("look for a staged k3s: %w", err)
	}
	for _, name := range names {
		version, is := strings.CutPrefix(name, stagedPrefix)
		if _, err := types.ParseK3sVersion(version); !is || err != nil {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || safefile.Others(info) != nil {
			continue // what others could write is not what was verified
		}
		if info.ModTime().After(last.At) {
			last = Staged{Version: version, Path: filepath.Join(dir, name), Size: info.Size(), At: info.ModTime().UTC()}
		}
	}
	return last, nil
}

// isPart reports that a file is one of Stage that is not verified yet.
func isPart(name string) bool { return strings.HasPrefix(name, partPrefix) && name != oldPart }

// removeAll removes the files of dir with such names.
func removeAll(dir string, which func(name string) bool) error {
	names, err := safefile.Names(dir, mostNames)
	for _, name := range names {
		if which(name) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}

// syncDir has the disk keep the names in dir.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
