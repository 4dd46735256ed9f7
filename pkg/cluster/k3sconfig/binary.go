package k3sconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	// DefaultBinary is the k3s that the kube container starts, as other
	// containers see it.
	DefaultBinary = "/persist/vault/kube/k3s/bin/k3s"
	// DefaultPID has the process ID of k3s. Where the kube container's storage is
	// a volume of its own (zfs), the binary can only be seen through that process.
	DefaultPID = "/run/k3s.pid"
	// maxBinary bounds what is read of the binary; k3s has some 75 MB.
	maxBinary = 512 << 20
	// readFor is how long the disk may take for it.
	readFor = time.Minute
)

// binary is a look into the k3s binary on disk.
type binary struct {
	path     string // "" where there is none
	size     int64
	modified time.Time
	inode    uint64
	version  string // what was looked for in it
	has      bool   // and is there
	err      error
}

// same reports whether o would be the same look at the same file.
func (b binary) same(o binary) bool {
	return b.path == o.path && b.size == o.size && b.modified.Equal(o.modified) && b.inode == o.inode && b.version == o.version
}

// again looks at the binary that is there now; one that has not changed is not
// read again.
func (c *Component) again(ctx context.Context, last binary, version string) binary {
	is := c.find(version)
	if is.same(last) && last.err == nil {
		return last
	}
	if is.path != "" {
		is.has, is.err = contains(ctx, is.path, version)
	}
	return is
}

// find returns the binary that is there, not looked into yet.
func (c *Component) find(version string) binary {
	for _, path := range []string{c.Binary, c.throughProcess()} {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		b := binary{path: path, size: info.Size(), modified: info.ModTime(), version: version}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			b.inode = sys.Ino
		}
		return b
	}
	return binary{version: version}
}

// throughProcess is the path of the binary as the process of k3s has it, ""
// where no process is named.
func (c *Component) throughProcess() string {
	raw, err := safefile.Read(c.PID, 32)
	pid := strings.TrimSpace(string(raw))
	if err != nil || pid == "" || strings.Trim(pid, "0123456789") != "" {
		return ""
	}
	return filepath.Join(c.Proc, pid, "root/var/lib/k3s/bin/k3s")
}

// contains reports whether a file has text in it, with no digit after it. The
// version of k3s is linked into its binary as text; to run the binary would be
// to trust it.
func contains(ctx context.Context, path, text string) (bool, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return false, fmt.Errorf("read the version of k3s: %w", err)
	}
	defer f.Close()
	buf := make([]byte, len(text)+1<<20)
	kept := 0
	for read := 0; read <= maxBinary && ctx.Err() == nil; {
		n, err := f.Read(buf[kept:])
		read += n
		part := buf[:kept+n]
		end := errors.Is(err, io.EOF)
		for rest := part; ; {
			at := bytes.Index(rest, []byte(text))
			if at < 0 {
				break
			}
			rest = rest[at+len(text):]
			if len(rest) > 0 && (rest[0] < '0' || rest[0] > '9') || len(rest) == 0 && end {
				return true, nil
			}
		}
		switch {
		case end:
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read the version of k3s: %w", err)
		}
		kept = copy(buf, part[max(0, len(part)-len(text)):])
	}
	return false, fmt.Errorf("read the version of k3s in %s: it takes too long, or has more than %d bytes", path, maxBinary)
}
