// Package k3sbinary is the k3s binary of this device: where it is, which version it
// has, and the next one, which is verified and staged beside it before anything is
// stopped (docs/wire.md, "Staged k3s").
package k3sbinary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultVarLib is /var/lib of the kube container, as other containers see it.
	DefaultVarLib = "/persist/vault/kube"
	// DefaultNeed is the free space for a change: the new binary and the former one, some 75 MB
	// each, the data that k3s unpacks, some 250 MB, and as much again for the device.
	DefaultNeed = 1 << 30

	maxBinary = 512 << 20        // bytes
	runFor    = 30 * time.Second // how long --version may take
	maxOutput = 4 << 10          // bytes that are read of what it prints
	nobody    = 65534
)

// Files is where a device has them.
type Files struct {
	VarLib string         // DefaultVarLib
	K3s    k3sprocess.K3s // whose process shows it where VarLib does not
	Need   uint64         // DefaultNeed
}

// ErrNone is wrapped where there is no k3s binary.
var ErrNone = errors.New("there is no k3s binary")

// Base is /var/lib of the kube container as it can be reached from here. Where its
// storage is a volume of its own (zfs), only a process of it can see that.
func (f Files) Base() (string, error) {
	has := func(base string) bool {
		info, err := os.Stat(filepath.Join(base, "k3s/bin/k3s"))
		return err == nil && info.Mode().IsRegular()
	}
	if has(f.VarLib) {
		return f.VarLib, nil
	}
	p, _ := f.K3s.Find()
	of := func(pid int) string { return filepath.Join(f.K3s.Proc, strconv.Itoa(pid), "root/var/lib") }
	if p.PID != 0 && has(of(p.PID)) {
		return of(p.PID), nil
	}
	if pid := f.K3s.Supervisor(); pid != 0 && has(of(pid)) { // k3s does not run, or has just ended
		return of(pid), nil
	}
	return "", fmt.Errorf("%w: not in %s, nor in the files of a running k3s or of kube-init", ErrNone, filepath.Join(f.VarLib, "k3s/bin"))
}

// Binary is the path of the k3s that the kube container starts.
func (f Files) Binary() (string, error) {
	base, err := f.Base()
	return filepath.Join(base, "k3s/bin/k3s"), err
}

// CheckSpace says why a binary cannot be staged, or taken into use, for lack of space. What a
// download that was killed has left gives its space when the next one begins.
func (f Files) CheckSpace() error {
	base, err := f.Base()
	if err != nil {
		return err
	}
	dir, need := filepath.Join(base, "k3s/bin"), f.Need
	names, err := safefile.Names(dir, mostNames)
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && isPart(name) {
			need -= min(need, uint64(max(info.Size(), 0)))
		}
	}
	return errors.Join(err, safefile.CheckSpace(dir, need))
}

var saysVersion = regexp.MustCompile(`^k3s version (\S+)`)

// Version runs a binary for its version. It runs as nobody, without network and without
// our environment: it may be a binary that nobody has run before.
func Version(ctx context.Context, path string) (string, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return "", fmt.Errorf("ask k3s for its version: %w", err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, runFor)
	defer cancel()
	// By its descriptor it is the file that was opened, and nobody can run it where the
	// directories are root's alone.
	c := exec.CommandContext(ctx, "/proc/self/fd/3", "--version")
	c.Args[0] = "k3s"
	var out head
	c.Env, c.Dir, c.ExtraFiles, c.Stdout, c.WaitDelay = []string{"PATH=/usr/bin:/bin", "HOME=/"}, "/", []*os.File{f}, &out, time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		// The end of the first process of a PID namespace ends all others in it.
		c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWPID
	}
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("run %s --version: %w", path, errors.Join(err, ctx.Err()))
	}
	m := saysVersion.FindSubmatch(out.Bytes())
	if m == nil {
		return "", fmt.Errorf("run %s --version: it does not print a version of k3s", path)
	}
	if _, err := types.ParseK3sVersion(string(m[1])); err != nil {
		return "", fmt.Errorf("run %s --version: it prints %q: %w", path, m[1], err)
	}
	return string(m[1]), nil
}

// Ran is a binary that was run for its version. The zero value is none.
type Ran struct {
	Version string
	Err     error // why that is not known
	file    os.FileInfo
}

// Again is the binary that is at path now. It is run only if it is not the one that was
// run last, or that failed. There may be none: then the error is of os.Stat.
func (last Ran) Again(ctx context.Context, path string) (Ran, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Ran{}, err
	}
	if is := last.file; is != nil && last.Err == nil && os.SameFile(info, is) && info.ModTime().Equal(is.ModTime()) && info.Size() == is.Size() {
		return last, nil
	}
	now := Ran{file: info}
	now.Version, now.Err = Version(ctx, path)
	return now, nil
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), maxOutput-h.Len())])
	return len(p), nil
}

// copySum copies a binary, to nowhere for io.Discard, and returns its SHA-256.
func copySum(ctx context.Context, to io.Writer, from io.Reader) (string, error) {
	sum := sha256.New()
	from = io.LimitReader(from, maxBinary+1)
	for all := int64(0); ; {
		n, err := io.CopyN(io.MultiWriter(to, sum), from, 4<<20)
		all += n
		switch {
		case all > maxBinary:
			return "", fmt.Errorf("it has more than %d bytes", maxBinary)
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil || ctx.Err() != nil:
			return "", errors.Join(err, ctx.Err())
		}
	}
}
