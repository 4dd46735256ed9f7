package drain

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/forcefile"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

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
			c.rec.spend(path, safefile.Mark(info))
			c.Log.WithError(err).Warn("NodeDrainStatus force file from before this boot cannot be removed, it is ignored until it is written again")
			continue
		}
		c.Log.WithField("file", path).Info("NodeDrainStatus force file from before this boot removed")
	}
}

// forceFile is what a force file says.
type forceFile struct {
	forcefile.File
	path string
	err  error // of reading it
}

// consumeForce removes the force files that say COMPLETE, which takes effect once,
// whether or not they can be removed. It reports whether one is left.
func (c *Component) consumeForce(tookEffect bool) (left bool) {
	if !tookEffect {
		c.Log.Warn("NodeDrainStatus force file removed: there is no drain to complete")
	}
	for _, path := range c.ForceFiles {
		v, err := forcefile.Read(path)
		if err != nil || v.Status != types.DrainComplete || c.rec.Spent[path] == v.Mark {
			continue
		}
		if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = true
			c.rec.spend(path, v.Mark)
			c.Log.WithError(err).Warn("NodeDrainStatus force file cannot be removed, it is ignored until it is written again")
		}
	}
	return left
}

// readMarker reports that the tests' marker is there, by the rules of the force
// files, or why one that is there does not count.
func readMarker(path string) (held bool, doubted error) {
	f, _, err := safefile.OpenTrusted(path)
	switch {
	case err == nil:
		return true, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}
