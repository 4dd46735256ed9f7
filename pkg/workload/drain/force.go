package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// maxForce bounds what is read of a force file; a good one has some 30 bytes.
const maxForce = 4096

// recordForceFile puts on record what an operator says in a force file, when that is new.
func (c *Component) recordForceFile(ctx context.Context, f facts) {
	said := ""
	if f.forced != nil {
		said = f.forced.Status.String()
	}
	if said != "" && said != c.mem.recorded {
		ctx = types.Because(ctx, byOperator, "a force file says "+said)
		types.Did(ctx, c.Operations, "force drain status", "node/"+f.node.Name, nil)
	}
	c.mem.recorded = said
}

// parseForce takes numbers and EVE's names.
func parseForce(raw []byte) (*types.NodeDrainStatus, error) {
	var v struct{ Status, RequestedBy json.RawMessage }
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	status, err := value(v.Status, types.DrainComplete)
	if err != nil || v.Status == nil {
		return nil, fmt.Errorf("status has to be 0 to %d or a name such as %s, not %q", types.DrainComplete, types.DrainComplete, v.Status)
	}
	by, err := value(v.RequestedBy, types.DrainRequesterUpdate)
	if err != nil {
		return nil, fmt.Errorf("requested by has to be 0 to %d or a name such as %s, not %q", types.DrainRequesterUpdate, types.DrainRequesterUpdate, v.RequestedBy)
	}
	return &types.NodeDrainStatus{Status: status, RequestedBy: by}, nil
}

// value is a number up to highest, or the name of one; nothing is zero.
func value[T interface {
	~uint8
	String() string
}](raw json.RawMessage, highest T,
) (T, error) {
	if raw == nil {
		return 0, nil
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		for v := range highest + 1 {
			if strings.EqualFold(v.String(), name) {
				return v, nil
			}
		}
		return 0, fmt.Errorf("unknown name %q", name)
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, err
	}
	if v > highest {
		return 0, fmt.Errorf("%d is above %d", v, highest)
	}
	return v, nil
}

// dropOldForce removes force files at the first start of a boot, as EVE does:
// the one who wrote it meant a drain that is over. No clock is asked how old they
// are: a device without a battery for its clock begins in the past. A file that
// cannot be removed is passed over until it is written again.
func (c *Component) dropOldForce() {
	for _, path := range c.ForceFiles {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); err != nil {
			c.rec.spend(path, markOf(info))
			c.Log.WithError(err).Warn("NodeDrainStatus force file from before this boot cannot be removed, it is ignored until it is written again")
			continue
		}
		c.Log.WithField("file", path).Info("NodeDrainStatus force file from before this boot removed")
	}
}

// forceFile is what a force file says.
type forceFile struct {
	types.NodeDrainStatus
	path string
	mark string // which file, as it was last written
	err  error  // of reading it
}

// readForceFile reads the force file at path.
func readForceFile(path string) (forceFile, error) {
	f, info, err := openTrusted(path)
	if err != nil {
		return forceFile{}, fmt.Errorf("force file: %w", err)
	}
	defer f.Close()
	raw, err := safefile.All(f, maxForce)
	if err != nil {
		return forceFile{}, fmt.Errorf("force file: %w", err)
	}
	if len(raw) == 0 {
		return forceFile{}, fs.ErrNotExist // made, but its writer is not there yet
	}
	v, err := parseForce(raw)
	if err != nil {
		return forceFile{}, fmt.Errorf("force file %s: %w", path, err)
	}
	return forceFile{NodeDrainStatus: *v, mark: markOf(info)}, nil
}

// consumeForce removes the force files that say COMPLETE, which takes effect once,
// whether or not they can be removed. It reports whether one is left.
func (c *Component) consumeForce(tookEffect bool) (left bool) {
	if !tookEffect {
		c.Log.Warn("NodeDrainStatus force file removed: there is no drain to complete")
	}
	for _, path := range c.ForceFiles {
		v, err := readForceFile(path)
		if err != nil || v.Status != types.DrainComplete || c.rec.Spent[path] == v.mark {
			continue
		}
		if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = true
			c.rec.spend(path, v.mark)
			c.Log.WithError(err).Warn("NodeDrainStatus force file cannot be removed, it is ignored until it is written again")
		}
	}
	return left
}

// openTrusted opens a file by which an operator commands a drain. Only a regular
// file counts that root or our own user owns, that nobody else may write, and
// that has no other name: /tmp is writable for everybody.
func openTrusted(path string) (*os.File, os.FileInfo, error) {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := distrust(info); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, info, nil
}

// distrust is why a file is no operator's word, nil where it may be one.
func distrust(info os.FileInfo) error {
	if err := safefile.Others(info); err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || st.Nlink == 0:
		return fs.ErrNotExist // removed or replaced a moment ago
	case st.Nlink > 1:
		return errors.New("it has more than one hard link")
	}
	return nil
}

// markOf tells one writing of a file from another: which file it is, and when by
// the file system it was last changed, which is only compared.
func markOf(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime().String()
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}

// readMarker reports that the tests' marker is there, by the rules of the force
// files, or why one that is there does not count.
func readMarker(path string) (held bool, doubted error) {
	f, _, err := openTrusted(path)
	switch {
	case err == nil:
		return true, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}
