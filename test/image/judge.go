package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// wanted is what the image was made of.
type wanted struct{ version, revision string }

// about is the prefix of the labels and annotations that say what an image is.
const about = "org.opencontainers.image."

// inside are the files of an image, and whether each can be run.
var inside = map[string]bool{"LICENSE": false, "zedkube": true, "zedkube-start.sh": true}

// says compares what the image says of itself with what it was made of.
func (i image) says(arch string, w wanted) error {
	if i.config.OS != "linux" || i.config.Architecture != arch {
		return fmt.Errorf("its configuration says %s/%s", i.config.OS, i.config.Architecture)
	}
	if run := i.config.Config.Entrypoint; !slices.Equal(run, []string{"/zedkube"}) {
		return fmt.Errorf("it runs %q", run)
	}
	if user := i.config.Config.User; user != "" {
		return fmt.Errorf("it runs as %q, not as root", user)
	}
	facts := map[string]string{
		"version": w.version, "revision": w.revision, "licenses": "Apache-2.0", "source": "https://github.com/zedkube/zedkube",
	}
	var all error
	for key, want := range facts {
		if got := i.config.Config.Labels[about+key]; got != want {
			all = errors.Join(all, fmt.Errorf("label %s is %q, want %q", key, got, want))
		}
		if got := i.manifest.Annotations[about+key]; got != want {
			all = errors.Join(all, fmt.Errorf("annotation %s is %q, want %q", key, got, want))
		}
	}
	return all
}

// holds says whether the files are those that are meant to be in it.
func holds(files map[string]os.FileMode) error {
	if got, want := slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(inside)); !slices.Equal(got, want) {
		return fmt.Errorf("it holds %v, want %v", got, want)
	}
	for name, runs := range inside {
		if mode := files[name]; mode.Perm()&0o022 != 0 || (mode.Perm()&0o111 != 0) != runs {
			return fmt.Errorf("%s has mode %v", name, mode)
		}
	}
	return nil
}

// static says whether a program is of the architecture and needs no library.
func static(program, arch string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	defer f.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		return fmt.Errorf("the program is one of %v", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return errors.New("the program is not static")
		}
	}
	return nil
}

// runs asks the program for its version: with nothing around it but its root,
// or by qemu where it is for another processor. It says how.
func runs(ctx context.Context, root, arch, version, qemu string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // qemu on a busy machine takes some seconds
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(root, "zedkube"), "version")
	how = "runs"
	switch {
	case arch != runtime.GOARCH && qemu == "":
		return "not run without qemu-user", nil
	case arch != runtime.GOARCH:
		c, how = exec.CommandContext(ctx, qemu, filepath.Join(root, "zedkube"), "version"), "runs by "+filepath.Base(qemu)
	case os.Geteuid() == 0:
		c = exec.CommandContext(ctx, "/zedkube", "version")
		c.SysProcAttr, c.Dir, how = &syscall.SysProcAttr{Chroot: root}, "/", "runs with nothing around it"
	}
	c.Env = []string{}
	var told strings.Builder
	c.Stderr = &told
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("run it: %w: %s", err, told.String())
	}
	if got := strings.TrimSpace(string(out)); got != version {
		return "", fmt.Errorf("it calls itself %q, want %q", got, version)
	}
	return how, nil
}
