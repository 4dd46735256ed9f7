package k3sbinary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// formerName is the binary that was in use before the last Install.
const formerName = "k3s.old"

// Install puts the staged binary, if it is that version and still has that SHA-256, in the place of the
// one in use, which is kept. Where that is the one in use already it changes nothing: twice, the former one would
// be gone. A power cut leaves the one or the other as k3s, and a whole one: only names change. k3s
// that runs is not touched.
func (f Files) Install(ctx context.Context, version, sum string) error {
	path, err := f.Binary()
	if err == nil && (Staged{Path: path}).checkSum(ctx, sum) == nil {
		return nil
	}
	s, err := f.Staged()
	if err == nil && s.Version != version {
		err = fmt.Errorf("staged is %q", s.Version)
	}
	if err == nil {
		err = s.checkSum(ctx, sum)
	}
	bin := filepath.Dir(s.Path)
	used, former, part := filepath.Join(bin, "k3s"), filepath.Join(bin, formerName), filepath.Join(bin, oldPart)
	if err == nil {
		err = removeAll(bin, func(name string) bool { return name == oldPart })
	}
	for _, step := range []func() error{
		func() error { return os.Link(used, part) },
		func() error { return failpoint.Do("write", former, func() error { return os.Rename(part, former) }) },
		func() error { return syncDir(bin) },
		func() error { return failpoint.Do("write", used, func() error { return os.Rename(s.Path, used) }) },
		func() error { return syncDir(bin) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return fmt.Errorf("install k3s %s: %w", version, err)
	}
	return nil
}

// Sum is its SHA-256 as it is on the disk now.
func (s Staged) Sum(ctx context.Context) (string, error) {
	file, err := safefile.Open(s.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return copySum(ctx, io.Discard, file)
}

func (s Staged) checkSum(ctx context.Context, sum string) error {
	is, err := s.Sum(ctx)
	if err == nil && is != sum {
		err = fmt.Errorf("its SHA-256 is %s, not %s", is, sum)
	}
	return err
}

// Restore puts the former binary back, if it is of that version. It needs no network. What it replaces is
// gone.
func (f Files) Restore(ctx context.Context, version string) error {
	path, err := f.Binary()
	bin := filepath.Dir(path)
	former, says := filepath.Join(bin, formerName), ""
	if err == nil {
		says, err = Version(ctx, former)
	}
	if err == nil && says != version {
		err = fmt.Errorf("the former one is %s", says)
	}
	if err == nil {
		err = errors.Join(failpoint.Do("restore", path, func() error { return os.Rename(former, path) }), syncDir(bin))
	}
	if err != nil {
		return fmt.Errorf("put k3s %s back: %w", version, err)
	}
	return nil
}
