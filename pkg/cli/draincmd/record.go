package draincmd

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// drainRecord is what the files of a device say about its drain. It needs
// neither the agent nor the API server.
type drainRecord struct {
	Node      string // "" for unknown
	ReadAt    time.Time
	Agent     device.AgentLife
	WrittenAt time.Time                // when Progress was; zero without one
	Progress  *types.NodeDrainProgress // nil for none that can be read
	Status    *types.NodeDrainStatus   // what EVE's agents are told; nil for none that can be read
	Request   *types.NodeDrainRequest  // the operator's, while it stands
	Forced    bool                     // a force file is there
	Problems  []string                 // what could not be read, and why
	Advice    []advice
}

// readDrain reads all there is. What is missing or bad is said in the record.
func readDrain(p device.Paths, now time.Time) drainRecord {
	r := drainRecord{ReadAt: now.UTC(), Agent: device.LifeOfAgent(p, now)}
	if info, err := device.OwnName(p); err == nil {
		r.Node = info.NodeName()
	}
	r.Progress, r.WrittenAt = noted[types.NodeDrainProgress](&r, p.TopicFile(device.Self, "NodeDrainProgress"))
	r.Status, _ = noted[types.NodeDrainStatus](&r, p.TopicFile(device.Self, "NodeDrainStatus"))
	r.Request, _ = noted[types.NodeDrainRequest](&r, p.TopicFile(device.CommandAgent, "NodeDrainRequest"))
	for _, file := range p.ForceDrain {
		_, err := os.Lstat(file)
		r.Forced = r.Forced || err == nil
	}
	r.Advice = adviseOn(r, p)
	return r
}

// noted reads one file into the record; a file that is not there is no problem.
func noted[T any](r *drainRecord, path string) (*T, time.Time) {
	v, at, err := device.ReadRecord[T](path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, time.Time{}
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
		return nil, time.Time{}
	}
	return &v, at.UTC()
}

// ending says how the drain of the record has ended; over is false while it
// has not.
func (r drainRecord) ending() (over bool, err error) {
	fails := func(why string) (bool, error) {
		return true, terminal.ExitWith(terminal.ExitDrainFailed, errors.New("the drain failed: "+terminal.Clean(why)))
	}
	switch {
	case r.Progress == nil && r.Status == nil:
		return false, nil
	case r.Progress == nil && r.Status.Status == types.DrainComplete:
		return true, nil
	case r.Progress == nil && (r.Status.Status == types.DrainFailedCordon || r.Status.Status == types.DrainFailedDrain):
		return fails(r.Status.Status.String())
	case r.Progress == nil || r.askedAnew():
		return false, nil
	case r.Progress.Phase == types.PhaseComplete:
		return true, nil
	case r.failed():
		return fails(r.Progress.Reason)
	}
	return false, nil
}

func (r drainRecord) failed() bool {
	return r.Progress != nil && (r.Progress.Phase == types.PhaseNoCordon || r.Progress.Phase == types.PhaseNotEmpty)
}

// askedAnew reports that the operator's request is newer than the failure:
// the agent is about to begin again.
func (r drainRecord) askedAnew() bool {
	return r.failed() && r.Request != nil && r.Request.RequestedAt.After(r.Progress.Ended)
}

// idle reports that there is no drain, nor one about to begin.
func (r drainRecord) idle() bool {
	return r.Progress != nil && r.Progress.Phase == types.PhaseIdle && !r.Progress.Left && r.Request == nil
}

// underWay reports a drain that has not ended.
func (r drainRecord) underWay() bool {
	return r.Progress != nil && (r.Progress.Phase == types.PhaseGates || r.Progress.Phase == types.PhaseEmptying)
}
