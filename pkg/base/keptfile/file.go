package keptfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

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
		did, err2 := remove(f.Path)
		if err := errors.Join(err1, err2); err != nil {
			return Same, fmt.Errorf("remove %s: %w", f.Name, err)
		}
		return did, nil
	}
	did, err := f.put(dir, part, w.Content)
	if err != nil {
		_, _ = remove(part)
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
		if err := os.Chmod(dir, 0o700); err != nil {
			return Same, err
		}
	}
	if _, err := remove(part); err != nil { // of a run that was killed while it wrote
		return Same, err
	}
	if holds(f.Path, content) {
		return Same, nil
	}
	if err := write(part, content); err != nil {
		return Same, err
	}
	if err := os.Rename(part, f.Path); err != nil {
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

// write makes a file for us alone that is on the disk when it returns. The
// rename that follows need not be: after a power cut the next look makes it good.
func write(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
