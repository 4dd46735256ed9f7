package statuscmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// putStatus is an overview: what is wrong first.
func putStatus(s *terminal.Screen, o overview.Overview) {
	putStatusHead(s, o)
	for _, p := range o.Problems {
		putProblem(s, p, o.ReadAt)
	}
	s.Gap()
	f := facts{Screen: s, now: o.ReadAt}
	f.agent(o)
	if o.Node.NoCluster == "" {
		f.api(o.API)
		f.cluster(o)
		f.drain(o.Drain)
		f.lease(o)
		f.report(o.Report)
		f.storage(o.Storage)
		f.conditions(o.Conditions)
	}
	f.disks(o.Disks)
	if len(o.Apps.List) > 0 {
		s.Gap()
		appscmd.AppsTable(o, false).Draw(s)
	}
	if len(o.Nodes.List) > 0 {
		s.Gap()
		nodescmd.NodesTable(o.Nodes, o.ReadAt).Draw(s)
	}
}

func putStatusHead(s *terminal.Screen, o overview.Overview) {
	name := cmp.Or(terminal.Clean(o.Node.Name), "this node")
	if c := terminal.Clean(o.Cluster.Name); c != "" && o.Node.NoCluster == "" {
		name += ", cluster " + c
	}
	look := terminal.Green
	for _, p := range o.Problems {
		if look == terminal.Green || p.Severity == overview.Bad {
			look = severityLook(p.Severity)
		}
	}
	s.Put(0, look, name+": "+problemsText(len(o.Problems)))
	if o.Copied {
		s.Put(0, terminal.Plain, "a copy, made "+terminal.Timestamp(o.ReadAt)+"; ages are of that moment")
	}
}

func severityLook(v overview.Severity) terminal.Style {
	if v == overview.Bad {
		return terminal.Red
	}
	return terminal.Yellow
}

// putProblem is one thing that is wrong, with what to do.
func putProblem(s *terminal.Screen, p overview.Problem, now time.Time) {
	word := "WARN"
	if p.Severity == overview.Bad {
		word = "BAD "
	}
	s.Gap()
	since := ""
	if !p.Since.IsZero() {
		since = " Since " + terminal.Stamp(p.Since, now) + "."
	}
	s.Hang("  "+word+"  ", 8, severityLook(p.Severity), terminal.Clean(p.What)+since)
	if p.Remedy != "" {
		s.Put(8, terminal.Bold, "-> "+terminal.Clean(p.Remedy))
	}
	s.Put(8, terminal.Plain, p.Name+"; docs/operations.md, \""+p.Anchor+"\"")
}

// facts writes one line for each thing that is known, with its age.
type facts struct {
	*terminal.Screen
	now time.Time
}

// ageWidth is the column of ages, factIndent where the texts begin.
const (
	ageWidth   = 5
	factIndent = terminal.LabelWidth + ageWidth + 2
)

func (f facts) line(label string, at time.Time, look terminal.Style, text string) {
	f.Hang(fmt.Sprintf("  %-*s%*s  ", terminal.LabelWidth-2, label, ageWidth, terminal.ShortAge(at, f.now)), factIndent, look, text)
}

// told is a line for what a file says, or that there is none.
func (f facts) told(label string, t overview.Told, look terminal.Style, text string) {
	switch {
	case t.Why != "":
		look, text = terminal.Red, "cannot be read: "+terminal.Clean(t.Why)
	case !t.Known():
		look, text = terminal.Plain, "unknown: there is no "+terminal.Clean(t.File)
	}
	f.line(label, t.At, look, text)
}

func (f facts) agent(o overview.Overview) {
	look, text := terminal.Green, "runs"
	if !o.Agent.Runs {
		look, text = terminal.Red, "does NOT run: "+terminal.Clean(o.Agent.Why)
	}
	if o.Agent.Hung {
		text = "HANGS: " + terminal.Clean(o.Agent.Why)
	}
	if o.Agent.PID > 0 {
		text += fmt.Sprintf("; process %d", o.Agent.PID)
	}
	f.line("agent", o.Agent.Seen, look, text)
	if o.Node.NoCluster != "" {
		f.line("cluster", o.Node.At, terminal.Plain, terminal.Clean(o.Node.NoCluster))
	}
}

func (f facts) api(a overview.API) {
	look, text := terminal.Plain, "is not known to answer"
	switch a.Answers {
	case types.ConditionTrue:
		look, text = terminal.Green, "answers"
	case types.ConditionFalse:
		look, text = terminal.Red, "does NOT answer"
	}
	if a.Why != "" {
		text += ": " + terminal.Clean(a.Why)
	}
	f.line("API server", a.Since, look, text)
}

func (f facts) cluster(o overview.Overview) {
	c := o.Cluster
	var parts []string
	parts = append(parts, terminal.Clean(c.Role))
	if c.Address != "" {
		parts = append(parts, terminal.Clean(c.Address)+" on "+cmp.Or(terminal.Clean(c.Interface), "no interface"))
	}
	if c.JoinServer != "" && c.Role != "bootstrap" {
		parts = append(parts, "joins "+terminal.Clean(c.JoinServer))
	}
	parts = append(parts, "cluster "+terminal.Clean(c.ID))
	f.told("cluster", c.Told, terminal.Plain, strings.Join(parts, ", "))
	m := c.Membership
	look := terminal.Green
	switch m.State {
	case types.MembershipDoubtful, types.MembershipLeaving:
		look = terminal.Yellow
	case types.MembershipNever, types.MembershipLeft:
		look = terminal.Plain
	}
	text := terminal.Clean(string(m.State))
	if m.Reason != "" {
		text += ": " + terminal.Clean(m.Reason)
	}
	f.told("membership", m.Told, look, text)
	f.members(c.Members)
}

func (f facts) members(m overview.Members) {
	text := "the controller names no masters"
	if n := len(m.Masters); n > 0 {
		text = fmt.Sprintf("%d masters", n)
	}
	if n := len(m.Stale); n > 0 {
		text += fmt.Sprintf(", %d stale", n)
	}
	if m.TieBreaker != "" {
		text += ", tie-breaker " + terminal.Clean(m.TieBreaker)
	}
	if m.Hindered != "" {
		text += ": " + terminal.Clean(m.Hindered)
	}
	f.told("members", m.Told, terminal.Plain, text)
}
