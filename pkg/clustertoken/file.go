package clustertoken

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/types"
)

// stopPatience is how long the end of the agent waits for the disk.
const stopPatience = 5 * time.Second

// deed is what a file is wanted for.
type deed int

const (
	leave deed = iota // nothing is known: let be what is there
	write
	remove
)

// wish is what the file should be.
type wish struct {
	do      deed
	content string
}

// work is the work on the file under way.
type work struct {
	n     int
	began time.Time
	done  chan struct{}
}

// outcome is what came of it.
type outcome struct {
	n    int
	wish wish
	did  did
	err  error
}

// did is what a look at the file led to.
type did int

const (
	same    did = iota // it is as it should be, or the error tells
	awaits             // the mount it belongs on is not there
	written            // it has another content now
	removed            // it is gone now
)

// beginFile looks at the file beside the steps: a strange disk may let a call
// hang for ever.
func (c *Component) beginFile(w wish) {
	keep := c.keep
	if keep == nil {
		keep = keepFile
	}
	path, now := c.Manifest, &work{n: c.last.n + 1, began: time.Now(), done: make(chan struct{})}
	c.keeping = now
	go func() {
		defer close(now.done)
		what, err := keep(path, w)
		_ = c.filed.Publish(types.Global, outcome{n: now.n, wish: w, did: what, err: err})
	}()
}

// collectFile takes in the outcome of the work that has ended, if some has.
func (c *Component) collectFile(now time.Time) {
	out, ok := c.filed.Get(types.Global)
	if c.keeping == nil || !ok || out.n != c.keeping.n {
		return
	}
	c.keeping, c.last, c.lastAt = nil, out, now
	log := c.Log.WithField("file", c.Manifest)
	waits := out.did == awaits && out.wish.do == write
	switch {
	case waits && !c.awaited:
		log.Warn("registration manifest waits for the vault to be mounted")
	case out.did == written:
		log.Info("registration manifest written")
	case out.did == removed:
		log.Info("registration manifest removed")
	}
	c.awaited = waits
}

// keepFile makes the file what it should be, if it is not. It makes the
// directory of the file but never the one above, which would hide a mount.
func keepFile(path string, w wish) (did, error) {
	dir := filepath.Dir(path)
	if _, err := os.Stat(filepath.Dir(dir)); errors.Is(err, fs.ErrNotExist) {
		return awaits, nil
	}
	part := filepath.Join(dir, "."+filepath.Base(path)+".part")
	if w.do == remove {
		_, err := gone(part)
		what, err2 := gone(path)
		if err = errors.Join(err, err2); err != nil {
			return same, fmt.Errorf("remove the registration manifest: %w", err)
		}
		return what, nil
	}
	what, err := put(dir, part, path, w.content)
	if err != nil {
		_, _ = gone(part)
		return same, fmt.Errorf("write the registration manifest: %w", err)
	}
	return what, nil
}

// gone removes a file; none is as good.
func gone(path string) (did, error) {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return same, nil
	case err != nil:
		return same, err
	}
	return removed, nil
}

// put replaces the file in one step: whoever reads it sees the old one or the
// new one.
func put(dir, part, path, content string) (did, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return same, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return same, err
	}
	if _, err := gone(part); err != nil { // of a run that was killed while it wrote
		return same, err
	}
	if holds(path, content) {
		return same, nil
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return same, err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync() // the rename need not be: after a power cut the next look makes it good
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return same, err
	}
	if err := os.Rename(part, path); err != nil {
		return same, err
	}
	return written, nil
}

// holds reports whether path is a file as we write it.
func holds(path, content string) bool {
	// O_NONBLOCK: a pipe put there must not hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode() != 0o600 || info.Size() != int64(len(content)) {
		return false
	}
	raw, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	return err == nil && string(raw) == content
}
