package nodescmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/types"
)

// viewCluster shows how each node sees the cluster, what its drain does and what is wrong there.
func viewCluster(v device.ClusterView, only []string) terminal.View {
	s := terminal.View{Data: v.Document(), Steady: v.Steady(), Draw: func(s *terminal.Screen) {
		device.PutAnswers(s, clusterTable(v), v)
		for _, r := range v.Nodes {
			putTold(s, r, v.ReadAt)
		}
	}}
	for _, r := range v.Nodes {
		row := []string{nodeStatus(r.Node), clusterPhase(r).Text, clusterDrain(r).Text, problemsText(r).Text, string(r.State)}
		s.Names = append(s.Names, r.Name)
		s.Rows = append(s.Rows, terminal.Row{Key: device.NodeName(r), Text: strings.Join(row, ", ")})
	}
	if len(v.Nodes) == 0 && len(only) > 0 {
		s.Err = fmt.Errorf("the cluster has no node %q", terminal.Clean(only[0]))
	}
	return s
}

func clusterTable(v device.ClusterView) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "NODE"},
		{Title: "STATUS"},
		{Title: "FOR", Keep: 4, Right: true},
		{Title: "CLUSTER", Keep: 6},
		{Title: "DRAIN", Keep: 7},
		{Title: "PROBLEMS", Keep: 8},
		{Title: "AGENT", Keep: 3},
		device.AnswerColumn(),
	}}
	for _, r := range v.Nodes {
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: device.NodeName(r)},
			{Text: nodeStatus(r.Node), Look: nodeLook(r.Node)},
			{Text: terminal.ShortAge(r.Node.Since, v.ReadAt)},
			clusterPhase(r),
			clusterDrain(r),
			problemsText(r),
			nodeAgent(r.Node),
			device.AnswerText(r, v.ReadAt),
		})
	}
	return t
}

func clusterPhase(r clusterview.Row) terminal.Cell {
	if r.View == nil {
		return terminal.Cell{}
	}
	return terminal.Cell{Text: device.Was(r, terminal.Clean(string(r.View.Phase)))}
}

// clusterDrain is the phase of the node's drain, or what its Node shows of one.
func clusterDrain(r clusterview.Row) terminal.Cell {
	if r.View == nil || r.View.Drain.Progress == nil {
		return terminal.Cell{Text: terminal.Clean(r.Node.Drain), Look: terminal.Yellow}
	}
	p := r.View.Drain.Progress
	c := terminal.Cell{Text: device.Was(r, terminal.Clean(string(p.Phase))), Look: terminal.Yellow}
	if p.Phase == types.PhaseIdle {
		c.Look = terminal.Plain
	}
	return c
}

// problemsText counts the worst kind of problems that a node has.
func problemsText(r clusterview.Row) terminal.Cell {
	if r.View == nil {
		return terminal.Cell{}
	}
	bad := 0
	for _, f := range r.View.Problems {
		if f.Severity == types.SeverityBad {
			bad++
		}
	}
	switch n := len(r.View.Problems); {
	case bad > 0:
		return terminal.Cell{Text: device.Was(r, fmt.Sprintf("%d BAD", bad)), Look: terminal.Red}
	case n > 0:
		return terminal.Cell{Text: device.Was(r, fmt.Sprintf("%d WARN", n)), Look: terminal.Yellow}
	}
	return terminal.Cell{Text: device.Was(r, "none")}
}

const mostProblems = 5 // of one node: zedkube status there shows all

// putTold is why a node's phases are what they are, and what is wrong there.
func putTold(s *terminal.Screen, r clusterview.Row, now time.Time) {
	if r.View == nil {
		return
	}
	v, at := r.View, r.Ago(now)
	var lines []func()
	add := func(look terminal.Style, text string) { lines = append(lines, func() { s.Put(2, look, text) }) }
	if v.Why != "" && v.Phase != types.ClusterProvisioned {
		add(terminal.Plain, "cluster "+terminal.Clean(string(v.Phase))+because(v.Why)+", since "+terminal.Stamp(v.Since, at))
	}
	if p := v.Drain.Progress; p != nil && p.Phase != types.PhaseIdle {
		add(terminal.Yellow, "drain "+terminal.Clean(string(p.Phase))+because(p.Reason)+", since "+terminal.Stamp(p.Since, at))
	}
	for i, f := range v.Problems {
		if i == mostProblems {
			add(terminal.Plain, fmt.Sprintf("and %d more problems", len(v.Problems)-i))
			break
		}
		look, text := terminal.Yellow, "WARN "
		if f.Severity == types.SeverityBad {
			look, text = terminal.Red, "BAD  "
		}
		text += terminal.Clean(f.Rule) + ": "
		if f.Subject != "" {
			text += terminal.Clean(f.Subject) + ": "
		}
		text += terminal.Clean(f.Evidence)
		if !f.Since.IsZero() {
			text += " Since " + terminal.Stamp(f.Since, at) + "."
		}
		add(look, text)
	}
	for _, cut := range v.Cut {
		add(terminal.Plain, "not told, for the size: "+terminal.Clean(cut))
	}
	if len(lines) == 0 {
		return
	}
	s.Gap()
	head := device.NodeName(r)
	if r.State != clusterview.Answered {
		head += ", as last known " + terminal.Age(r.HeardAt, now)
	}
	s.Put(0, terminal.Bold, head)
	for _, put := range lines {
		put()
	}
}

// because adds to a phase why it is so, where that is told.
func because(why string) string {
	if why = strings.TrimRight(terminal.Clean(why), ". "); why == "" {
		return ""
	}
	return ": " + why
}
