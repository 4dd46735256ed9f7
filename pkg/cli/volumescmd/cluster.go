package volumescmd

import (
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// ofCluster are the volumes as the node tells that reports for the cluster. Where several do,
// or did, one that has answered counts more than one that is remembered, and then the newest.
func ofCluster(c device.ClusterView) volumesView {
	v := volumesView{ReadAt: c.ReadAt, Items: []overview.Volume{}, Problems: []string{}}
	var from *clusterview.Row
	answered := func(r clusterview.Row) bool { return r.State == clusterview.Answered }
	for _, r := range c.Nodes {
		if !answered(r) {
			v.Problems = append(v.Problems, device.NodeName(r)+": "+device.AnswerText(r, c.ReadAt).Text)
		}
		switch {
		case r.View == nil || len(r.View.Volumes) == 0:
		case from == nil, answered(r) && !answered(*from), answered(r) == answered(*from) && r.HeardAt.After(from.HeardAt):
			from = &r
		}
	}
	if c.Problem != "" {
		v.Problems = append(v.Problems, c.Problem)
	}
	switch {
	case from != nil:
		v.From, v.At = "node "+terminal.Clean(from.Name)+", which reports for the cluster", from.HeardAt
		if !answered(*from) {
			v.From = "node " + terminal.Clean(from.Name) + ", which reported for the cluster and does not answer now: this is what was last known"
		}
		v.Items = append(v.Items, from.View.Volumes...)
		overview.ByUrgency(v.Items)
	case len(v.Problems) == 0:
		v.From, v.At = "the nodes, none of which reports volumes", c.ReadAt
	}
	return v
}
