package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/types"
)

// drainRecord is what the files of a device say about its drain. It needs
// neither the agent nor the API server.
type drainRecord struct {
	Node      string // "" for unknown
	ReadAt    time.Time
	Agent     agentLife
	WrittenAt time.Time                // when Progress was; zero without one
	Progress  *types.NodeDrainProgress // nil for none that can be read
	Status    *types.NodeDrainStatus   // what EVE's agents are told; nil for none that can be read
	Request   *types.NodeDrainRequest  // the operator's, while it stands
	Forced    bool                     // a force file is there
	Problems  []string                 // what could not be read, and why
	Advice    []advice
}

// agentLife is whether the agent that writes the record is alive.
type agentLife struct {
	Runs bool
	Why  string    // why it is taken for dead; "" where it runs
	Seen time.Time // when it last gave a sign of life; zero for never
}

// silentAgent is how old an agent's last sign of life may be: it gives one
// every ten seconds.
const silentAgent = time.Minute

// maxRecord bounds what is read of a record. A topic's value has at most 64 KiB
// and large fields, at most three, of less than 1 MiB each.
const maxRecord = 4 << 20

// readDrain reads all there is. What is missing or bad is said in the record.
func readDrain(p paths, now time.Time) drainRecord {
	r := drainRecord{ReadAt: now.UTC(), Agent: lifeOfAgent(p, now)}
	if info, err := ownName(p); err == nil {
		r.Node = info.NodeName()
	}
	r.Progress, r.WrittenAt = noted[types.NodeDrainProgress](&r, p.topicFile(self, "NodeDrainProgress"))
	r.Status, _ = noted[types.NodeDrainStatus](&r, p.topicFile(self, "NodeDrainStatus"))
	r.Request, _ = noted[types.NodeDrainRequest](&r, p.topicFile(commandAgent, "NodeDrainRequest"))
	for _, file := range p.forceDrain {
		_, err := os.Lstat(file)
		r.Forced = r.Forced || err == nil
	}
	r.Advice = adviseOn(r, p)
	return r
}

// noted reads one file into the record; a file that is not there is no problem.
func noted[T any](r *drainRecord, path string) (*T, time.Time) {
	v, at, err := readRecord[T](path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, time.Time{}
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
		return nil, time.Time{}
	}
	return &v, at.UTC()
}

// readRecord reads the JSON of a topic's value, and when it was written.
func readRecord[T any](path string) (v T, written time.Time, err error) {
	// O_NONBLOCK: a fifo must not hold us up before it is refused.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return v, written, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return v, written, err
	}
	if !info.Mode().IsRegular() {
		return v, written, fmt.Errorf("%s is not a regular file", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	switch {
	case err != nil:
		return v, written, err
	case len(raw) > maxRecord:
		return v, written, fmt.Errorf("%s is longer than %d bytes", path, maxRecord)
	case bytes.Equal(bytes.TrimSpace(raw), []byte("null")):
		return v, written, fmt.Errorf("%s is empty", path)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var none T // not a part of it
		return none, written, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return v, info.ModTime(), nil
}

// lifeOfAgent tells a running agent from the leftovers of one, by its touch
// file, which only a working agent renews, and its pid.
func lifeOfAgent(p paths, now time.Time) agentLife {
	var a agentLife
	if info, err := os.Stat(p.touch); err == nil {
		a.Seen = info.ModTime().UTC()
	}
	raw, err := os.ReadFile(p.pid)
	pid, bad := strconv.Atoi(strings.TrimSpace(string(raw)))
	switch {
	case err != nil:
		a.Why = "it has no pid file " + p.pid
	case bad != nil || pid <= 0:
		a.Why = "its pid file " + p.pid + " holds no number"
	case errors.Is(syscall.Kill(pid, 0), syscall.ESRCH):
		a.Why = fmt.Sprintf("process %d is gone", pid)
	case a.Seen.IsZero():
		a.Why = "it has given no sign of life yet"
	case now.Sub(a.Seen) > silentAgent:
		a.Why = "its last sign of life was " + stamp(a.Seen, now)
	default:
		a.Runs = true
	}
	return a
}

// ending says how the drain of the record has ended; over is false while it
// has not.
func (r drainRecord) ending() (over bool, err error) {
	fails := func(why string) (bool, error) {
		return true, exitError{exitDrainFailed, errors.New("the drain failed: " + clean(why))}
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
