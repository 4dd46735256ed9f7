package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/types"
)

// maxForce bounds what is read of a force file; a good one has some 30 bytes.
const maxForce = 4096

// readForce returns the operator's word, nil for none: that of the first file
// that has one. What is wrong with a file is reported once and the file ignored.
func (c *Component) readForce() *types.NodeDrainStatus {
	var forced *types.NodeDrainStatus
	var reports []string
	for _, path := range c.ForceFiles {
		v, err := readForceFile(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			reports = append(reports, err.Error())
		case err == nil && forced == nil:
			forced = v
		}
	}
	report := strings.Join(reports, "; ")
	if report != "" && report != c.mem.forceReport {
		c.Log.WithField("err", report).Warn("NodeDrainStatus force file ignored")
	}
	c.mem.forceReport = report
	return forced
}

// heed puts on record what an operator says in a force file, when that is new.
func (c *Component) heed(ctx context.Context, f facts) {
	said := ""
	if f.forced != nil {
		said = f.forced.Status.String()
	}
	if said != "" && said != c.mem.heeded {
		ctx = types.Because(ctx, byOperator, "a force file says "+said)
		types.Did(ctx, c.Operations, "force drain status", "node/"+f.node.Name, nil)
	}
	c.mem.heeded = said
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

// dropOldForce removes files that are older than this boot: whoever wrote one
// meant a drain that is over.
func (c *Component) dropOldForce() {
	booted := time.Now().Add(-c.Uptime())
	for _, path := range c.ForceFiles {
		info, err := os.Lstat(path)
		if err != nil || !info.ModTime().Before(booted) {
			continue
		}
		if err := os.Remove(path); err != nil {
			c.Log.WithError(err).Warn("NodeDrainStatus force file from before this boot cannot be removed")
			continue
		}
		c.Log.WithField("file", path).Info("NodeDrainStatus force file from before this boot removed")
	}
}

// readForceFile reads the NodeDrainStatus at path. Only a regular file of root
// or of our own user counts: /tmp is writable for everybody.
func readForceFile(path string) (*types.NodeDrainStatus, error) {
	// O_NONBLOCK: a fifo put there must not hold us up before it is refused.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open force file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat force file %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("force file %s is not a regular file", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("force file %s belongs to another user", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxForce+1))
	if err != nil {
		return nil, fmt.Errorf("read force file %s: %w", path, err)
	}
	if len(raw) > maxForce {
		return nil, fmt.Errorf("force file %s is longer than %d bytes", path, maxForce)
	}
	if len(raw) == 0 {
		return nil, fs.ErrNotExist // made, but its writer is not there yet
	}
	v, err := parseForce(raw)
	if err != nil {
		return nil, fmt.Errorf("force file %s: %w", path, err)
	}
	return v, nil
}

// consumeForce removes the force files that say COMPLETE, which is obeyed once.
func (c *Component) consumeForce(obeyed bool) error {
	if !obeyed {
		c.Log.Warn("NodeDrainStatus force file removed: there is no drain to complete")
	}
	var errs []error
	for _, path := range c.ForceFiles {
		v, err := readForceFile(path)
		if err != nil || v.Status != types.DrainComplete {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove force file: %w", err))
		}
	}
	return errors.Join(errs...)
}
