package k3sconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultBinary is the k3s that the kube container starts, as other
	// containers see it.
	DefaultBinary = "/persist/vault/kube/k3s/bin/k3s"
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

// throughProcess is the path of the binary as the process of k3s has it, "" where no
// process is named. Where the kube container's storage is a volume of its own (zfs), the
// binary can only be seen through that process.
func (c *Component) throughProcess() string {
	pid, err := k3sprocess.ReadPID(c.PID)
	if err != nil {
		return ""
	}
	return filepath.Join(c.Proc, strconv.Itoa(pid), "root/var/lib/k3s/bin/k3s")
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

// node is what is known of this node and its cluster.
type node struct {
	known   bool   // zedkube knows whether the device belongs to a cluster
	running string // the own kubelet's version, as the Node of this boot says; "" while unknown
	onDisk  bool   // the k3s binary on disk is of that version
	binary  string // as in K3sVersionStatus
}

// decideVersion is the version for the kube container, and what is published of it: what
// KubeLifecycle releases, else what runs. A change of k3s.version reaches every node within
// seconds, and the kube container of each stops k3s for it at once: three servers together
// lose etcd's quorum. Nor is it ever the kube container's own version once k3s runs: that
// changes with every update of EVE.
func decideVersion(f facts) (version string, s types.K3sVersionStatus, err error) {
	wanted := f.status.Wanted
	if f.heard {
		wanted, err = asked(f.settings)
	}
	s = types.K3sVersionStatus{Version: f.published.K3sVersion, Running: f.node.running, OnDisk: f.node.onDisk, Binary: f.node.binary, Wanted: wanted}
	switch pin := s.Running != "" && s.OnDisk; {
	case f.lifecycle == nil && s.Version != "": // a change may be under way
	case f.lifecycle != nil && f.lifecycle.Released != "":
		s.Version = f.lifecycle.Released
	case pin:
		s.Version = s.Running
	}
	if wanted == "" && err == nil || wanted == s.Version {
		return s.Version, s, err
	}
	switch {
	case err != nil:
		s.Why = fmt.Sprintf("The setting k3s.version is refused: %v.", err)
	case f.lifecycle == nil || f.lifecycle.Wanted != wanted:
		s.Why = "It is not decided yet when this node changes to " + wanted + "."
	default:
		s.Why = f.lifecycle.Reason
		if f.lifecycle.Phase == types.LifecycleRefused {
			err = errors.New(f.lifecycle.Reason)
		}
	}
	s.Held, s.Since = true, f.now.UTC().Truncate(time.Second)
	if f.status.Held && f.status.Wanted == wanted {
		s.Since = f.status.Since
	}
	return s.Version, s, err
}

// asked is the version that the setting asks for, "" for none; as it stands
// there where it is no version.
func asked(m types.ConfigItemValueMap) (string, error) {
	v, err := text(m, types.SettingK3sVersion)
	if v = strings.TrimSpace(v); v == "" || err != nil {
		return "", err
	}
	if _, err := types.ParseK3sVersion(v); err != nil {
		return shortened(v), fmt.Errorf("%s is %q: %w", types.SettingK3sVersion, shortened(v), err)
	}
	return v, nil
}

// shortened is a text that may be anything, fit for a sentence.
func shortened(text string) string {
	return strings.ToValidUTF8(phrase.Cut(text, 64), "")
}
