package auditcmd

import (
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/types"
)

type clusterAudit struct {
	Items   []audited         // of all nodes, the newest last; times by the clock of this node
	Nodes   []clusterview.Row // without what they tell
	Remarks []string          `json:",omitempty"`
}

// viewCluster shows the newest operations that each node tells. Its times are by its own
// clock, and become those of this node.
func (a *auditing) viewCluster(v device.ClusterView) terminal.View {
	d := clusterAudit{Items: []audited{}}
	var all []types.Operation
	for _, r := range v.Nodes {
		if r.View != nil {
			for _, o := range r.View.Operations {
				o.Node, o.At = r.Name, o.At.Add(v.ReadAt.Sub(r.Ago(v.ReadAt)))
				if a.filter.Wants(o) {
					all = append(all, o)
				}
			}
			for _, text := range r.View.Remarks {
				d.Remarks = append(d.Remarks, r.Name+": "+text)
			}
			for _, cut := range r.View.Cut {
				d.Remarks = append(d.Remarks, r.Name+": not told, for the size: "+cut)
			}
		}
		r.View = nil
		d.Nodes = append(d.Nodes, r)
	}
	slices.SortStableFunc(all, func(a, b types.Operation) int { return a.At.Compare(b.At) })
	earlier := 0
	if a.limit > 0 && (a.People() || a.limited) {
		earlier = max(len(all)-a.limit, 0)
	}
	all = terminal.Selected(&a.Outputs, all[earlier:])
	for _, o := range all {
		d.Items = append(d.Items, auditedOf(o))
	}
	s := terminal.View{Data: d, Draw: func(s *terminal.Screen) {
		if len(all) == 0 {
			s.Put(0, terminal.Plain, "No operation that the nodes tell of matches.")
		} else {
			clusterTable(all, v.ReadAt, a.times).Draw(s)
		}
		for _, text := range d.Remarks {
			s.Put(0, terminal.Yellow, terminal.Clean(text))
		}
		device.PutUnanswered(s, v)
	}}
	for _, o := range all {
		s.Names = append(s.Names, o.ID)
		s.Rows = append(s.Rows, terminal.Row{Key: terminal.Clean(o.Node) + " " + o.ID, Text: auditLine(o)})
	}
	return s
}

// clusterTable is the table of operations with the node of each.
func clusterTable(all []types.Operation, now time.Time, times bool) terminal.Table {
	t := auditTable(all, now, times)
	t.Columns = slices.Insert(t.Columns, 1, terminal.Column{Title: "NODE"})
	for i, o := range all {
		t.Rows[i] = slices.Insert(t.Rows[i], 1, terminal.Cell{Text: terminal.Clean(o.Node)})
	}
	return t
}
