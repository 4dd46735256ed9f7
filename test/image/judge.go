package main

import (
	"bytes"
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

// runner is how the program of an unpacked image is run.
type runner struct {
	how     string
	command func(ctx context.Context, args ...string) *exec.Cmd
}

// newRunner runs it with nothing around it but its root, or by qemu where it is
// for another processor. It is nil without qemu.
func newRunner(root, arch, qemu string) *runner {
	words, attr := []string{filepath.Join(root, "zedkube"), "--root", root}, &syscall.SysProcAttr{}
	how := "runs"
	switch {
	case arch != runtime.GOARCH && qemu == "":
		return nil
	case arch != runtime.GOARCH:
		words, how = append([]string{qemu}, words...), "runs by "+filepath.Base(qemu)
	case os.Geteuid() == 0:
		words, attr.Chroot, how = []string{"/zedkube"}, root, "runs with nothing around it"
	}
	return &runner{how, func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, words[0], append(words[1:len(words):len(words)], args...)...)
		c.Env, c.Dir, c.SysProcAttr = []string{}, "/", attr
		return c
	}}
}

// runs asks the program for its version.
func (r *runner) runs(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // qemu on a busy machine takes some seconds
	defer cancel()
	var told strings.Builder
	c := r.command(ctx, "version")
	c.Stderr = &told
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("run it: %w: %s", err, told.String())
	}
	if got := strings.TrimSpace(string(out)); got != version {
		return fmt.Errorf("it calls itself %q, want %q", got, version)
	}
	return nil
}

// serves starts the program below root as on a device without a cluster, asks
// for its status, and ends it.
func (r *runner) serves(ctx context.Context, root string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute) // seconds, but for qemu on a busy machine
	defer cancel()
	for _, dir := range []string{"run", "persist", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			return fmt.Errorf("make the device's directories: %w", err)
		}
	}
	var told bytes.Buffer
	agent := r.command(ctx, "run")
	agent.Stderr = &told
	if err := agent.Start(); err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	for touched := false; !touched; {
		select {
		case err := <-ended:
			return fmt.Errorf("it ends by itself: %w: %s", errors.Join(err, errors.New(agent.ProcessState.String())), told.String())
		case <-time.After(100 * time.Millisecond):
			_, err := os.Stat(filepath.Join(root, "run/zedkube.touch"))
			touched = err == nil
		}
	}
	out, err := r.command(ctx, "status", "-o", "jsonpath={.Agent.PID} {.Agent.Runs}").CombinedOutput()
	want := fmt.Sprintf("%d true", agent.Process.Pid)
	if err == nil && strings.TrimSpace(string(out)) != want {
		err = errors.New("that is another agent's")
	}
	if err != nil {
		err = fmt.Errorf("its status is %q, want %q: %w", out, want, err)
	}
	if stop := agent.Process.Signal(syscall.SIGTERM); stop != nil {
		err = errors.Join(err, stop)
	}
	if end := <-ended; end != nil {
		err = errors.Join(err, fmt.Errorf("told to end: %w: %s", end, told.String()))
	}
	return err
}
