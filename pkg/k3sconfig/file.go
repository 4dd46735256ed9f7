package k3sconfig

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

// call is the work on the file under way.
type call struct {
	n     int
	began time.Time
	done  chan struct{}
}

// outcome is what came of it.
type outcome struct {
	n    int
	wish wish
	did  result
	err  error
}

// result is what a look at the file led to.
type result string

const (
	same    result = ""         // it is as it should be
	awaits  result = "awaits"   // its directory is not there
	written result = "written"  // it has another content now
	removed result = "removed"  // it is gone now
	failed  result = "failed"   // the error tells
	fileTmp        = ".%s.part" // what is being written, beside the file
)

// begin looks at the file beside the steps: a strange disk may let a call hang
// for ever, and what is published must not wait for that.
func (c *Component) begin(w wish) {
	keep := c.keep
	if keep == nil {
		keep = keepFile
	}
	path, now := c.OverrideFile, &call{n: c.last.n + 1, began: time.Now(), done: make(chan struct{})}
	c.running = now
	go func() {
		defer close(now.done)
		did, err := keep(path, w)
		_ = c.mail.Publish(types.Global, outcome{n: now.n, wish: w, did: did, err: err})
	}()
}

// collect takes in the outcome of the work that has ended, if some has.
func (c *Component) collect() {
	out, ok := c.mail.Get(types.Global)
	if c.running == nil || !ok || out.n != c.running.n {
		return
	}
	restored := c.last.n > 0 && c.last.wish == out.wish && c.last.err == nil && c.last.did != awaits
	c.running, c.last, c.lastAt = nil, out, time.Now()
	log := c.Log.WithField("file", c.OverrideFile)
	switch {
	case out.did == awaits && out.wish.exists && !c.awaited:
		log.Warn("override file of k3s waits for its directory to be mounted")
	case out.did == written && restored:
		log.Warn("override file of k3s was changed or removed by somebody else: restored")
	case out.did == written:
		log.Info("override file of k3s written")
	case out.did == removed:
		log.Info("override file of k3s removed")
	}
	c.awaited = out.did == awaits && out.wish.exists
}

// letEnd waits for the work under way.
func (c *Component) letEnd() {
	if c.running == nil {
		return
	}
	select {
	case <-c.running.done:
	case <-time.After(stopPatience):
		c.Log.WithField("file", c.OverrideFile).Error("override file of k3s: the disk does not answer, ending without it")
	}
}

// keepFile makes the file what it should be, if it is not. It never makes the
// directory. What is not what we would have written is replaced, whatever it is.
func keepFile(path string, w wish) (result, error) {
	dir, base := filepath.Split(path)
	switch _, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return awaits, nil
	case err != nil:
		return failed, fmt.Errorf("look for the directory of the override file of k3s: %w", err)
	}
	part := filepath.Join(dir, fmt.Sprintf(fileTmp, base))
	if _, err := remove(part); err != nil { // of a run that was killed while it wrote
		return failed, fmt.Errorf("remove half an override file of k3s: %w", err)
	}
	if !w.exists {
		did, err := remove(path)
		if err != nil {
			return failed, fmt.Errorf("remove override file of k3s: %w", err)
		}
		return did, nil
	}
	if holds(path, w.content) {
		return same, nil
	}
	err := write(part, w.content)
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_, _ = remove(part)
		return failed, fmt.Errorf("write override file of k3s: %w", err)
	}
	return written, nil
}

// remove removes a file; none is as good.
func remove(path string) (result, error) {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return same, nil
	case err != nil:
		return failed, err
	}
	return removed, nil
}

// holds reports whether path is a file as we write it. One that cannot be read
// is not.
func holds(path, content string) bool {
	// O_NONBLOCK: a fifo put there must not hold us up.
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

// write makes a file for us alone that is on the disk when it returns. The
// rename that follows need not be: after a power cut the next look makes it good.
func write(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
