package drain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/zedkube/zedkube/types"
)

// maxForce bounds what is read of a force file; a good one has some 30 bytes.
const maxForce = 4096

// readForce returns the operator's word, nil for none. What is wrong with the
// file is reported once and the file ignored.
func (c *Component) readForce() *types.NodeDrainStatus {
	forced, err := readForceFile(c.ForceFile)
	report := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		forced = nil
	case err != nil:
		report = err.Error()
		if report != c.mem.forceReport {
			c.Log.WithError(err).Warn("NodeDrainStatus force file ignored")
		}
	}
	c.mem.forceReport = report
	return forced
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
	var v struct {
		Status      *types.DrainStatus
		RequestedBy types.DrainRequester
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("parse force file %s: %w", path, err)
	}
	if v.Status == nil || *v.Status > types.DrainComplete || v.RequestedBy > types.DrainRequesterUpdate {
		return nil, fmt.Errorf("force file %s: Status has to be 0 to %d and RequestedBy 0 to %d",
			path, types.DrainComplete, types.DrainRequesterUpdate)
	}
	return &types.NodeDrainStatus{Status: *v.Status, RequestedBy: v.RequestedBy}, nil
}

// consumeForce removes a force file that has been obeyed.
func (c *Component) consumeForce() error {
	if err := os.Remove(c.ForceFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove force file: %w", err)
	}
	return nil
}
