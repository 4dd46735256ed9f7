package draincmd

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// otherNode is the node that is asked about, "" for this one.
func otherNode(p device.Paths, args []string) string {
	if len(args) == 0 {
		return ""
	}
	name := terminal.Named("node", args[0])
	if info, err := device.OwnName(p); err == nil && info.NodeName() == name {
		return ""
	}
	return name
}

// viewCluster shows the drains of all nodes, or all that is known of the one of node.
func viewCluster(v device.ClusterView, node string) terminal.View {
	s := terminal.View{Data: v.Document(), Steady: v.Steady(), Draw: func(s *terminal.Screen) {
		device.PutAnswers(s, drainTable(v), v)
	}}
	for _, r := range v.Nodes {
		s.Names = append(s.Names, r.Name)
		s.Rows = append(s.Rows, terminal.Row{Key: device.NodeName(r), Text: told(r, v.ReadAt).line()})
	}
	switch {
	case node == "" || v.Problem != "" && len(v.Nodes) == 0:
	case len(v.Nodes) == 0:
		s.Err = fmt.Errorf("the cluster has no node %q", terminal.Clean(node))
	default:
		r := told(v.Nodes[0], v.ReadAt)
		s.Data, s.Steady, s.Draw = r, r.line(), r.put
		if r.State == clusterview.Silent || r.State == clusterview.Failed {
			s.Err = terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("%s does not tell of its drain: %s", terminal.Clean(node), terminal.Clean(r.Why)))
		}
	}
	return s
}

// toldRecord is what another node tells of its drain.
type toldRecord struct {
	drainRecord
	State   clusterview.State
	Why     string    `json:",omitzero"` // of State
	HeardAt time.Time `json:",omitzero"`
	EVESees string    `json:",omitzero"`

	row clusterview.Row
	now time.Time
}

func told(r clusterview.Row, now time.Time) toldRecord {
	t := toldRecord{State: r.State, Why: r.Why, HeardAt: r.HeardAt, row: r, now: now}
	t.Node, t.ReadAt, t.Agent.Runs = r.Name, r.Ago(now).UTC(), true
	if r.View == nil {
		return t
	}
	d := r.View.Drain
	t.Progress, t.WrittenAt, t.Request, t.Forced = d.Progress, d.At, d.Request, slices.ContainsFunc(d.Forced, func(f overview.ForceFile) bool { return f.Ignored == "" })
	if d.Status != "" {
		t.EVESees = d.Status + ", for " + d.RequestedBy
	}
	if r.State == clusterview.Answered {
		t.Advice = adviseFor(t.drainRecord, device.Options{}.Paths())
	}
	return t
}

func (t toldRecord) line() string {
	if t.Progress == nil {
		return cmp.Or(terminal.Clean(t.row.Node.Drain), "no drain status") + ", " + string(t.State)
	}
	return device.Was(t.row, summary(t.drainRecord))
}

// put is the drain as its own node shows it, behind how that has answered.
func (t toldRecord) put(s *terminal.Screen) {
	answer := device.AnswerText(t.row, t.now)
	head := "As " + terminal.Clean(t.Node) + " told " + answer.Text
	if t.State != clusterview.Answered {
		head = terminal.Clean(t.Node) + ": " + answer.Text
	}
	if t.EVESees != "" {
		head += ", with EVE told " + terminal.Clean(t.EVESees)
	}
	s.Put(0, answer.Look, head)
	if t.Progress == nil {
		s.Put(0, terminal.Yellow, "Drain of "+terminal.Clean(t.Node)+": "+cmp.Or(terminal.Clean(t.row.Node.Drain), "unknown"))
		return
	}
	if t.State != clusterview.Answered {
		s.Put(0, terminal.Yellow, "This is what was last known, and may not be so now.")
	}
	putDrain(s, t.drainRecord)
	for _, f := range t.row.View.Drain.Forced {
		if f.Ignored != "" {
			s.Put(0, terminal.Yellow, "There is a force file, which is ignored: "+terminal.Clean(f.Ignored))
		} else {
			s.Put(0, terminal.Yellow, "There is a force file: EVE sees "+terminal.Clean(f.Says)+" instead.")
		}
	}
	if len(t.Advice) > 0 {
		s.Put(2, terminal.Bold, "These commands are for "+terminal.Clean(t.Node)+".")
	}
}

func drainTable(v device.ClusterView) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "NODE"},
		{Title: "DRAIN"},
		{Title: "FOR", Keep: 7, Right: true},
		{Title: "PODS", Keep: 6},
		{Title: "BLOCKED BY", Keep: 5},
		device.AnswerColumn(),
		{Title: "WHY", Keep: 4},
	}}
	for _, r := range v.Nodes {
		row := []terminal.Cell{{Text: device.NodeName(r)}, {Text: terminal.Clean(r.Node.Drain), Look: terminal.Yellow}, {}, {}, {}, device.AnswerText(r, v.ReadAt), {}}
		if r.View != nil && r.View.Drain.Progress != nil {
			p := *r.View.Drain.Progress
			look, _ := PhaseText(p)
			row[1] = terminal.Cell{Text: device.Was(r, terminal.Clean(string(p.Phase))), Look: look}
			row[2].Text = terminal.ShortAge(p.Since, r.Ago(v.ReadAt))
			if p.Pods != (types.DrainPods{}) {
				row[3].Text = fmt.Sprintf("%d of %d gone", p.Pods.Evicted, p.Pods.Total)
			}
			if n := len(p.Blockers) + max(p.BlockersOmitted, 0) + len(p.Volumes) + max(p.VolumesOmitted, 0); n > 0 {
				row[4].Text = fmt.Sprint(n)
			}
			row[6].Text = terminal.Clean(p.Reason)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
