//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (p program) flags() []string {
	return append([]string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false", "-tags", p.tags(), "-ldflags", p.ldflags}, p.module()...)
}

// tags of a program with C let it look up names and users as one without does, and so
// share what is compiled.
func (p program) tags() string {
	if p.cgo {
		return buildTags + ",osusergo,netgo"
	}
	return buildTags
}

// module is the flag that names its go.mod, if it is another one.
func (p program) module() []string {
	if p.modfile == "" {
		return nil
	}
	return []string{"-modfile=" + p.modfile}
}

func (p program) build(ctx context.Context, source, into string, log io.Writer) error {
	dir := filepath.Join(source, p.dir)
	fmt.Fprintf(log, "devcluster: fetching the modules of %s\n", p.name)
	list := append([]string{"list", "-deps", "-tags", p.tags()}, p.module()...)
	deps, err := goOutput(ctx, dir, append(list, p.pkg)...)
	if err != nil {
		return fmt.Errorf("list the packages of %s: %w", p.name, err)
	}
	progress := newProgress(log, p.name, strings.Count(deps, "\n")+1)
	defer progress.stop()
	args := append([]string{"build", "-v", "-o", filepath.Join(into, p.name)}, p.flags()...)
	cmd := goCommand(ctx, dir, append(args, p.pkg)...)
	cmd.Env = append(cmd.Env, "GOTMPDIR="+filepath.Join(into, "tmp")) // goes away with the rest
	cmd.Env = append(cmd.Env, "GOGC=400")                             // as the Makefile's BUILD
	if p.cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	cmd.Stderr = progress
	// It must not outlive the lock: it is killed when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.name, errors.Join(context.Cause(ctx), err), progress.tail())
	}
	cost := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Fprintf(log, "devcluster: built %s in %s, with %s of CPU\n", p.name, time.Since(began).Round(time.Second), cost.Round(time.Second))
	return nil
}

// SourceVariable is the environment variable that names the directory of this
// package where Options.Source does not, the program was compiled with -trimpath
// and runs outside of the module.
const SourceVariable = "DEVCLUSTER_SOURCE"

// sourceDir is where the nested modules are; "" asks the environment, the
// compiler, or the go command where this was compiled with -trimpath.
func sourceDir(ctx context.Context, source string) (string, error) {
	if source == "" {
		source = os.Getenv(SourceVariable)
	}
	if source == "" {
		_, file, _, _ := runtime.Caller(0)
		source = filepath.Dir(file)
		if !filepath.IsAbs(file) {
			var err error
			if source, err = goOutput(ctx, "", "list", "-f", "{{.Dir}}", "github.com/zedkube/zedkube/test/devcluster"); err != nil {
				return "", fmt.Errorf("find the sources of devcluster, or set Options.Source or "+SourceVariable+": %w", err)
			}
		}
	}
	if !isDir(filepath.Join(source, "devkube")) {
		return "", fmt.Errorf("find the sources of devcluster: no devkube in %q, set Options.Source", source)
	}
	return source, nil
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0")
	if dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+dir)
	}
	return cmd
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := goCommand(ctx, dir, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// lock takes the file lock of a cache entry, so that test binaries that run
// side by side build once.
func lock(ctx context.Context, path string, log io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the build lock: %w", err)
	}
	for told := false; ; told = true {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !told {
			fmt.Fprintln(log, "devcluster: waiting for another process that is building the cluster")
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for the build lock: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
