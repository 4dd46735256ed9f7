//go:build linux

package devcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

const (
	kubeVersion = "v1.34.4" // of devkube/go.mod; kubectl refuses servers without a version
	kwokModule  = "sigs.k8s.io/kwok"
	kwokPackage = "sigs.k8s.io/kwok/cmd/kwok"
	buildTags   = "kustomize_disable_go_plugin_support"
)

// program is one binary of the cluster: what to build, where, and how.
type program struct {
	name, dir, pkg, ldflags string
}

// programs are in the order they are built.
var programs = []program{
	{
		"devkube", "devkube", ".", "-s -w -X k8s.io/component-base/version.gitVersion=" + kubeVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34",
	},
	{"kwok", "kwok", kwokPackage, "-s -w"},
}

// stageFiles are the stages of kwok's own module that our kubelets play.
var stageFiles = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-ready.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
}

// binaries is a filled cache entry: programs and kwok's stage files.
type binaries string

func (b binaries) path(name string) string { return filepath.Join(string(b), name) }

// Build makes the programs of the cluster, unless they are cached already, and
// returns the directory they are in. It needs the go command and, the first
// time, the modules; that takes some minutes, with a line on log every few
// seconds. Source is this package's directory; "" finds it.
func Build(ctx context.Context, source string, log io.Writer) (string, error) {
	source, err := sourceDir(source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	key, err := cacheKey(ctx, source)
	if err != nil {
		return "", err
	}
	entry := filepath.Join(cache, "zedkube-devcluster", key)
	if isDir(entry) {
		return entry, nil
	}
	if err := os.MkdirAll(filepath.Dir(entry), 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := lock(ctx, entry+".lock", log)
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(entry) {
		return entry, nil
	}
	return entry, fill(ctx, source, entry, log)
}

// fill builds into a directory beside the entry and renames it when it is
// whole, so that an entry that exists is complete. The caller holds the lock.
func fill(ctx context.Context, source, entry string, log io.Writer) error {
	partial := entry + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("clear an unfinished build: %w", err)
	}
	defer os.RemoveAll(partial)
	if err := os.MkdirAll(filepath.Join(partial, "tmp"), 0o755); err != nil {
		return fmt.Errorf("make the build directory: %w", err)
	}
	fmt.Fprintf(log, "devcluster: building Kubernetes %s and kwok into %s; this happens once and takes some minutes\n", kubeVersion, entry)
	for _, p := range programs {
		if err := p.build(ctx, source, partial, log); err != nil {
			return err
		}
	}
	if err := copyStages(ctx, filepath.Join(source, "kwok"), partial); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(partial, "tmp")); err != nil {
		return fmt.Errorf("clear the build directory: %w", err)
	}
	if err := os.Rename(partial, entry); err != nil {
		return fmt.Errorf("put the build in place: %w", err)
	}
	return nil
}

func (p program) flags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-tags", buildTags, "-ldflags", p.ldflags}
}

func (p program) build(ctx context.Context, source, into string, log io.Writer) error {
	dir := filepath.Join(source, p.dir)
	fmt.Fprintf(log, "devcluster: fetching the modules of %s\n", p.name)
	deps, err := goOutput(ctx, dir, "list", "-deps", "-tags", buildTags, p.pkg)
	if err != nil {
		return fmt.Errorf("list the packages of %s: %w", p.name, err)
	}
	progress := newProgress(log, p.name, strings.Count(deps, "\n")+1)
	defer progress.stop()
	args := append([]string{"build", "-v", "-o", filepath.Join(into, p.name)}, p.flags()...)
	cmd := goCommand(ctx, dir, append(args, p.pkg)...)
	cmd.Env = append(cmd.Env, "GOTMPDIR="+filepath.Join(into, "tmp")) // goes away with the rest
	cmd.Stderr = progress
	// It must not outlive the lock: it is killed when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.name, errors.Join(context.Cause(ctx), err), progress.tail())
	}
	return nil
}

// copyStages takes kwok's own stages out of its module: a release of kwok and
// its stages belong together.
func copyStages(ctx context.Context, kwokDir, into string) error {
	module, err := goOutput(ctx, kwokDir, "list", "-m", "-f", "{{.Dir}}", kwokModule)
	if err != nil {
		return fmt.Errorf("find the kwok module: %w", err)
	}
	for _, name := range stageFiles {
		stage, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return fmt.Errorf("read a stage of kwok: %w", err)
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(name)), stage, 0o644); err != nil {
			return fmt.Errorf("copy a stage of kwok: %w", err)
		}
	}
	return nil
}

// cacheKey is a hash of everything that decides what a build makes.
func cacheKey(ctx context.Context, source string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{
		"devkube/go.mod", "devkube/go.sum", "devkube/main.go", "kwok/go.mod", "kwok/go.sum",
	} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read the sources of the cluster: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	env, err := goOutput(ctx, filepath.Join(source, "devkube"), "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", fmt.Errorf("ask for the Go version: %w", err)
	}
	fmt.Fprintln(hash, env, stageFiles)
	for _, p := range programs {
		fmt.Fprintln(hash, p.flags())
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// sourceDir is where the nested modules are; "" asks the compiler.
func sourceDir(source string) (string, error) {
	if source == "" {
		_, file, _, ok := runtime.Caller(0)
		if !ok {
			return "", errors.New("find the sources of devcluster: unknown to this binary, set Options.Source")
		}
		source = filepath.Dir(file)
	}
	if !isDir(filepath.Join(source, "devkube")) {
		return "", fmt.Errorf("find the sources of devcluster: no devkube in %q, set Options.Source", source)
	}
	return source, nil
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", "PWD="+dir)
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
