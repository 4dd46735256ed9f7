// Package keptfile keeps a small file for another program: it is there with
// its content, or not there, whatever others do to it (docs/wire.md, "Files").
// Nobody but us can read it, its reader sees the old one or the new one, and
// the work on it holds nothing up, since a strange disk may let a call hang
// for ever.
package keptfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// patience is how long the end of the agent waits for the disk.
const patience = 5 * time.Second

// Keeper keeps one file beside the steps of the component that holds it. Its
// zero value has not looked yet. All but Notify is for one goroutine.
type Keeper struct {
	Work func(File, Desired) (Result, error) // nil for File.Keep; tests have one that hangs

	work   loop.Call[Outcome] // under way; it rings when it has ended
	began  time.Time          // when that did
	last   Outcome            // of the work that ended last
	lastAt time.Time          // when that was
	err    error              // why it failed, until that is forgotten
}

// Outcome is what came of one look at the file. Its zero value is none.
type Outcome struct {
	Desired Desired
	Result  Result
	Err     error
}

// Stands reports that the file was as wished after it.
func (o Outcome) Stands(w Desired) bool { return o.Desired == w && o.Err == nil && o.Result != Awaits }

// Waits reports that the file is to be written once its directory is there.
func (o Outcome) Waits() bool { return o.Desired.Do == Write && o.Result == Awaits }

// Act is what was done to the file, or failed: "write file" or "remove file"; ""
// where there was nothing to do.
func (o Outcome) Act() string {
	switch {
	case o.Result == Removed, o.Err != nil && o.Desired.Do == Remove:
		return "remove file"
	case o.Result == Written, o.Err != nil && o.Desired.Do == Write:
		return "write file"
	}
	return ""
}

// Begin looks at the file and makes it what it should be. It returns at once.
// It is for a Keeper that is not busy.
func (k *Keeper) Begin(ctx context.Context, f File, w Desired) {
	run := k.Work
	if run == nil {
		run = File.Keep
	}
	k.began = time.Now()
	k.work.Begin(ctx, patience, func(context.Context) Outcome { // but it lasts as long as the disk takes
		did, err := run(f, w)
		return Outcome{Desired: w, Result: did, Err: err}
	})
}

// Notify rings when there is something to collect.
func (k *Keeper) Notify(bell chan<- struct{}) { k.work.Notify(bell) }

// Collect takes in the outcome of the work that has ended; ok is false where
// none has. was is the one before. now has its monotonic reading, here and for
// Due: a wall clock may be set back.
func (k *Keeper) Collect(now time.Time) (was, is Outcome, ok bool) {
	was = k.last
	is, ok = k.work.Take()
	if !ok {
		return was, was, false
	}
	k.began, k.last, k.lastAt, k.err = time.Time{}, is, now, is.Err
	return was, is, true
}

// Err is why the last look failed.
func (k *Keeper) Err() error { return k.err }

// Forget forgets why the last look failed: nothing is wanted of the file any more.
func (k *Keeper) Forget() { k.err = nil }

// End waits until the work under way has ended, but not for long; it reports
// whether it has.
func (k *Keeper) End() bool { return k.work.EndWithin(patience) }

// State is what a decision may have to know of a Keeper.
type State struct {
	Kept   Desired   // of the last look; it leaves alone before the first
	Stands bool      // the file was so after it
	At     time.Time // when that ended
	Busy   bool      // there is work under way
	Since  time.Time // when that began
}

// State returns what is known now.
func (k *Keeper) State() State {
	return State{Kept: k.last.Desired, Stands: k.last.Desired.Do != Leave && k.last.Stands(k.last.Desired), At: k.lastAt, Busy: k.work.Busy(), Since: k.began}
}

// Due is how long after now the next look should be: none for another wish
// than the last look's, else every so often, since others may touch the file.
func (s State) Due(w Desired, now time.Time, every time.Duration) time.Duration {
	if s.Kept != w {
		return 0
	}
	return max(0, s.At.Add(every).Sub(now))
}

// File says which file is kept.
type File struct {
	Path string
	Name string // what errors call it
	// MakeDir makes the file's directory, with mode 0700, where the one above
	// it is there. Without it the file's directory must be there. What is
	// awaited so may be a mount: nobody makes it here, that would hide it.
	MakeDir bool
}

// Action says what to do with a file.
type Action int

// The actions.
const (
	Leave  Action = iota // let be what is there
	Write                // it is to have a content
	Remove               // it is not to be there
)

// Desired is what a file should be. Its zero value leaves it alone.
type Desired struct {
	Do      Action
	Content string // for Write
}

// Result is what a look at a file led to.
type Result int

// The results.
const (
	Same    Result = iota // it is as it should be, or the error tells
	Awaits                // the directory that is not made here is not there
	Written               // it has another content now
	Removed               // it is gone now
)

// Keep makes the file what it should be, if it is not, whatever is in its
// place. It takes as long as the disk does.
func (f File) Keep(w Desired) (Result, error) {
	if w.Do == Leave {
		return Same, nil
	}
	dir := filepath.Dir(f.Path)
	awaited := dir
	if f.MakeDir {
		awaited = filepath.Dir(dir)
	}
	switch _, err := os.Stat(awaited); {
	case errors.Is(err, fs.ErrNotExist):
		return Awaits, nil
	case err != nil:
		return Same, fmt.Errorf("keep %s: check its directory: %w", f.Name, err)
	}
	part := filepath.Join(dir, "."+filepath.Base(f.Path)+".part")
	if w.Do == Remove {
		_, err1 := remove(part)
		var did Result
		err2 := failpoint.Do("remove", f.Path, func() (err error) { did, err = remove(f.Path); return err })
		if err := errors.Join(err1, err2); err != nil {
			return Same, fmt.Errorf("remove %s: %w", f.Name, err)
		}
		return did, nil
	}
	did, err := f.put(dir, part, w.Content)
	if err != nil {
		return Same, fmt.Errorf("write %s: %w", f.Name, err)
	}
	return did, nil
}

// remove removes a file; none is as good.
func remove(path string) (Result, error) {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return Same, nil
	case err != nil:
		return Same, err
	}
	return Removed, nil
}

// put replaces the file in one step: a reader sees the old one or the
// new one.
func (f File) put(dir, part, content string) (Result, error) {
	if f.MakeDir {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return Same, err
		}
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
			return Same, err
		}
	}
	if _, err := remove(part); err != nil { // of a run that was killed while it wrote
		return Same, err
	}
	if holds(f.Path, content) {
		return Same, nil
	}
	// This need not be on the disk: after a power cut the next look makes it good.
	if err := safefile.Replace(f.Path, part, content, 0o600); err != nil {
		return Same, err
	}
	return Written, nil
}

// holds reports whether path is a file as we write it. One that cannot be read
// is not.
func holds(path, content string) bool {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info.Mode() != 0o600 || info.Size() != int64(len(content)) {
		return false
	}
	raw, err := safefile.All(f, int64(len(content)))
	return err == nil && string(raw) == content
}
