package joincmd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// ownStatusEvery is how often the own status is looked at between two tries: a
// withdrawal ends the wait.
const ownStatusEvery = time.Second

// ownStatus is what this device knows of the cluster it is to join: what the
// command line says, and for the rest EdgeNodeClusterStatus.
type ownStatus struct {
	given joinTarget
	file  string

	seen bool // the file has named a cluster
	last joinTarget
}

// look returns whom to ask, and why nobody can be asked where that is not
// whole. It fails when there is nothing to wait for any more.
func (s *ownStatus) look() (joinTarget, answer, error) {
	if s.given.whole() {
		return s.given, answer{}, nil
	}
	status, _, err := device.ReadRecord[types.EdgeNodeClusterStatus](s.file)
	missing := errors.Is(err, fs.ErrNotExist) || err == nil && status.ClusterID.UUID == uuid.Nil
	switch {
	case missing && s.seen:
		return s.last, answer{}, terminal.ExitWith(terminal.ExitJoinWithdrawn, errors.New("EdgeNodeClusterStatus was withdrawn: this device is no longer configured to join"))
	case missing:
		return s.given, answer{reason: "NoClusterStatus", why: "this device has no EdgeNodeClusterStatus yet, " + s.file}, nil
	case err != nil && s.seen && s.last.whole():
		return s.last, answer{}, nil // half written: what it said holds
	case err != nil:
		return s.given, answer{reason: "BadClusterStatus", why: "the own EdgeNodeClusterStatus cannot be read: " + terminal.Clean(err.Error())}, nil
	case status.BootstrapNode && !s.given.server.IsValid():
		return s.given, answer{}, terminal.ExitWith(terminal.ExitUsage, errors.New("this is the bootstrap node of its cluster: it does not join another node"))
	}
	s.seen, s.last = true, s.complete(status)
	if !s.last.whole() {
		why := fmt.Sprintf("the own EdgeNodeClusterStatus names no server of cluster %s to join", s.last.cluster)
		return s.last, answer{reason: "NoJoinServer", why: why}, nil
	}
	return s.last, answer{}, nil
}

// complete fills in what the command line leaves out.
func (s *ownStatus) complete(status types.EdgeNodeClusterStatus) joinTarget {
	t := s.given
	if ip, ok := netip.AddrFromSlice(status.JoinServerIP); ok && !t.server.IsValid() && !ip.IsUnspecified() {
		t.server = ip.Unmap()
	}
	if t.cluster == uuid.Nil {
		t.cluster = status.ClusterID.UUID
	}
	return t
}
