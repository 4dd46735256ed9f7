package topcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// topicRecord is the file of a topic, read again when it has changed.
type topicRecord[T any] struct {
	path  string
	value *T    // nil for none that can be read
	err   error // why; wraps fs.ErrNotExist where there is no file

	was  os.FileInfo
	seen bool
}

func (r *topicRecord[T]) look() {
	info, err := os.Stat(r.path)
	if err != nil {
		r.value, r.err, r.was, r.seen = nil, err, nil, true
		return
	}
	if r.was != nil && os.SameFile(info, r.was) && info.ModTime().Equal(r.was.ModTime()) && info.Size() == r.was.Size() {
		return
	}
	v, _, err := device.ReadRecord[T](r.path)
	r.value, r.err, r.was, r.seen = &v, err, info, true
	if err != nil {
		r.value = nil
	}
}

// topFiles are the agent's topics.
type topFiles struct {
	own     topicRecord[types.KubeNodeMetrics]
	cluster topicRecord[types.KubeClusterMetrics]
}

func newTopFiles(p device.Paths) *topFiles {
	return &topFiles{
		own:     topicRecord[types.KubeNodeMetrics]{path: p.TopicFile(device.Self, "KubeNodeMetrics")},
		cluster: topicRecord[types.KubeClusterMetrics]{path: p.TopicFile(device.Self, "KubeClusterMetrics")},
	}
}

// look reads what has changed; of the cluster only where that is shown.
func (f *topFiles) look(cluster bool) {
	f.own.look()
	if cluster {
		f.cluster.look()
	}
}

// problems are what the files do not say, and why.
func (f *topFiles) problems(agent device.AgentLife, now time.Time) []string {
	var said []string
	if !agent.Runs {
		said = append(said, "the agent is NOT running: "+agent.Why+"; its values are the last ones that it published")
	}
	m := f.own.value
	switch {
	case errors.Is(f.own.err, fs.ErrNotExist) && agent.Runs:
		said = append(said, "the agent has published no KubeNodeMetrics yet")
	case f.own.err != nil && !errors.Is(f.own.err, fs.ErrNotExist):
		said = append(said, "KubeNodeMetrics: "+f.own.err.Error())
	case m != nil && m.Stale != "":
		said = append(said, "this node's kubelet: "+m.Stale)
	case m != nil && agent.Runs && now.Sub(m.At).Abs() > max(m.Every, time.Minute)+topOld:
		said = append(said, fmt.Sprintf("KubeNodeMetrics is stale: it is from %s", terminal.Stamp(m.At, now)))
	}
	if m != nil && m.Omitted > 0 {
		said = append(said, fmt.Sprintf("%d pods or containers are left out of KubeNodeMetrics, which would be too large", m.Omitted))
	}
	// Only the node that reports for the cluster has the other file.
	if err := f.cluster.err; err != nil && !errors.Is(err, fs.ErrNotExist) {
		said = append(said, "KubeClusterMetrics: "+err.Error())
	}
	if c := f.cluster.value; c != nil && c.Truncated > 0 {
		said = append(said, fmt.Sprintf("%d entries are left out of KubeClusterMetrics, which would be too large", c.Truncated))
	}
	return said
}
