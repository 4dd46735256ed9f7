// Package forcefile reads the files by which an operator overrides the drain status
// that EVE sees (docs/wire.md, "NodeDrainStatus"): the agent, which obeys them, and who
// shows them to people agree on which of them count.
package forcefile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// maxSize bounds what is read of a force file; a good one has some 30 bytes.
const maxSize = 4096

// File is what a force file says.
type File struct {
	types.NodeDrainStatus
	Mark string // which file, as it was last written
}

// Read reads the force file at path. With an error it says nothing.
func Read(path string) (File, error) {
	f, info, err := safefile.OpenTrusted(path)
	if err != nil {
		return File{}, fmt.Errorf("force file: %w", err)
	}
	defer f.Close()
	raw, err := safefile.All(f, maxSize)
	if err != nil {
		return File{}, fmt.Errorf("force file: %w", err)
	}
	if len(raw) == 0 {
		return File{}, fs.ErrNotExist // made, but its writer is not there yet
	}
	v, err := parse(raw)
	if err != nil {
		return File{}, fmt.Errorf("force file %s: %w", path, err)
	}
	return File{NodeDrainStatus: *v, Mark: safefile.Mark(info)}, nil
}

// parse takes numbers and EVE's names.
func parse(raw []byte) (*types.NodeDrainStatus, error) {
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
