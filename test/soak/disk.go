//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// ownDirs are where zedkube keeps what outlives a boot (docs/wire.md, "Files").
// What other agents keep beside it is theirs.
var ownDirs = []string{"persist/status/zedkube", "persist/zedkube", "persist/kube-status"}

// spoiled are the disks that are full or read-only, the vault among them.
var spoiled = append([]string{"persist/vault"}, ownDirs...)

// needsMounts says why nothing can be mounted here.
func needsMounts() error {
	if os.Geteuid() != 0 {
		return errors.New("small disks are mounted, which takes root")
	}
	return nil
}

// disks lets three devices drain while what they keep is on a disk that is full
// or read-only for some seconds, and their agents restart.
func disks(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	mounted := &mounts{}
	defer func() { err = errors.Join(err, s.Close(), mounted.close()) }()
	for _, m := range s.Fleet.Members {
		for _, dir := range spoiled {
			if err := mounted.small(filepath.Join(m.Root, dir)); err != nil {
				return err
			}
		}
	}
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		dirs, name := spoiled, "all"
		if rng.IntN(3) > 0 {
			dirs = []string{spoiled[rng.IntN(len(spoiled))]}
			name = filepath.Base(dirs[0])
		}
		each := func(do func(string) error) (err error) {
			for _, dir := range dirs {
				err = errors.Join(err, do(filepath.Join(d.Root, dir)))
			}
			return err
		}
		spoil, restore, what := fill, empty, "full"
		if rng.IntN(2) == 0 {
			spoil, restore, what = lock, unlock, "read-only"
		}
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted(fmt.Sprintf("%s is %s, %s", name, what, is.Status))
		if err := each(spoil); err != nil {
			return errors.Join(err, each(restore))
		}
		wait(ctx, soon(rng, 5*time.Second))
		var err error
		if rng.IntN(2) == 0 {
			err = d.Kill(d.Member, what+" disk")
			wait(ctx, soon(rng, 3*time.Second))
		}
		return errors.Join(err, each(restore))
	})
}

// mounts are small disks.
type mounts struct{ at []string }

func (m *mounts) small(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		return fmt.Errorf("mount a small disk on %s: %w", dir, err)
	}
	m.at = append(m.at, dir)
	return nil
}

func (m *mounts) close() error {
	var errs []error
	for _, dir := range m.at {
		errs = append(errs, unix.Unmount(dir, unix.MNT_DETACH))
	}
	return errors.Join(errs...)
}

// fill leaves no byte on the disk.
func fill(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for page := make([]byte, 4096); ; {
		if _, err := file.Write(page); errors.Is(err, unix.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func empty(dir string) error { return os.RemoveAll(filepath.Join(dir, "filler")) }

// lock makes what is opened from now on read-only, as after an error of the disk.
func lock(dir string) error {
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func unlock(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// journals lets three devices drain while their agents are killed and one of the
// files that they wrote is cut or garbled before they start again.
func journals(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		is, _ := d.Watch.Drain.Get(types.Global)
		var what string
		d.Down(d.Member, "killed, and a file spoiled")
		did, err := d.RestartProgramAfter(func() (err error) {
			what, err = spoilOne(d.Member, rng)
			return err
		})
		d.Up(d.Member)
		if did && what != "" {
			d.told(d.Name, "soak", what)
			d.Faulted(fmt.Sprintf("%s, %s", what, is.Status))
		}
		return err
	})
}

// spoilOne cuts or garbles one of the files that the agent of a device reads
// when it starts, and says what it did.
func spoilOne(m *player.Member, rng *rand.Rand) (string, error) {
	var files []string
	for _, dir := range append([]string{"run/zedkube"}, ownDirs...) {
		err := filepath.WalkDir(filepath.Join(m.Root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return nil // what is not there cannot be spoiled
		})
		if err != nil {
			return "", err
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	slices.Sort(files)
	file := files[rng.IntN(len(files))]
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	how := "empty"
	switch rng.IntN(3) {
	case 0:
		content = nil
	case 1:
		how, content = "cut", content[:rng.IntN(len(content)+1)]
	default:
		how = "garbled"
		for i := range content {
			if rng.IntN(8) == 0 {
				content[i] = byte(rng.Uint32())
			}
		}
	}
	return filepath.Base(filepath.Dir(file)) + " " + how, os.WriteFile(file, content, 0o600)
}
