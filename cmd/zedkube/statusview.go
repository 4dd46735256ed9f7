package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// statusLines is an overview as a screen: what is wrong first.
func statusLines(o overview.Overview, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	putStatusHead(s, o)
	for _, p := range o.Problems {
		putProblem(s, p, o.ReadAt)
	}
	s.gap()
	f := facts{screen: s, now: o.ReadAt}
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
		s.gap()
		s.lines = append(s.lines, appsTable(o, false).lines(width, colour)...)
	}
	if len(o.Nodes.List) > 0 {
		s.gap()
		s.lines = append(s.lines, nodesTable(o.Nodes, o.ReadAt).lines(width, colour)...)
	}
	return s.lines
}

func putStatusHead(s *screen, o overview.Overview) {
	name := cmp.Or(clean(o.Node.Name), "this node")
	if c := clean(o.Cluster.Name); c != "" && o.Node.NoCluster == "" {
		name += ", cluster " + c
	}
	look := green
	for _, p := range o.Problems {
		if look == green || p.Severity == overview.Bad {
			look = severityLook(p.Severity)
		}
	}
	s.put(0, look, name+": "+problemsText(len(o.Problems)))
	if o.Copied {
		s.put(0, plain, "a copy, made "+o.ReadAt.Format("2006-01-02 15:04:05Z")+"; ages are of that moment")
	}
}

func severityLook(v overview.Severity) style {
	if v == overview.Bad {
		return red
	}
	return yellow
}

// putProblem is one thing that is wrong, with what to do.
func putProblem(s *screen, p overview.Problem, now time.Time) {
	word := "WARN"
	if p.Severity == overview.Bad {
		word = "BAD "
	}
	s.gap()
	since := ""
	if !p.Since.IsZero() {
		since = " Since " + stamp(p.Since, now) + "."
	}
	s.hang("  "+word+"  ", 8, severityLook(p.Severity), clean(p.What)+since)
	if p.Remedy != "" {
		s.put(8, bold, "-> "+clean(p.Remedy))
	}
	s.put(8, plain, p.Name+"; docs/operations.md, \""+p.Anchor+"\"")
}

// facts writes one line for each thing that is known, with its age.
type facts struct {
	*screen
	now time.Time
}

// ageWidth is the column of ages, factIndent where the texts begin.
const (
	ageWidth   = 5
	factIndent = labelWidth + ageWidth + 2
)

func (f facts) line(label string, at time.Time, look style, text string) {
	f.hang(fmt.Sprintf("  %-*s%*s  ", labelWidth-2, label, ageWidth, shortAge(at, f.now)), factIndent, look, text)
}

// told is a line for what a file says, or that there is none.
func (f facts) told(label string, t overview.Told, look style, text string) {
	switch {
	case t.Why != "":
		look, text = red, "cannot be read: "+clean(t.Why)
	case !t.Known():
		look, text = plain, "nothing is known: there is no "+clean(t.File)
	}
	f.line(label, t.At, look, text)
}

func (f facts) agent(o overview.Overview) {
	look, text := green, "runs"
	if !o.Agent.Runs {
		look, text = red, "does NOT run: "+clean(o.Agent.Why)
	}
	if o.Agent.Hung {
		text = "HANGS: " + clean(o.Agent.Why)
	}
	if o.Agent.PID > 0 {
		text += fmt.Sprintf("; process %d", o.Agent.PID)
	}
	f.line("agent", o.Agent.Seen, look, text)
	if o.Node.NoCluster != "" {
		f.line("cluster", o.Node.At, plain, clean(o.Node.NoCluster))
	}
}

func (f facts) api(a overview.API) {
	look, text := plain, "is not known to answer"
	switch a.Answers {
	case types.ConditionTrue:
		look, text = green, "answers"
	case types.ConditionFalse:
		look, text = red, "does NOT answer"
	}
	if a.Why != "" {
		text += ": " + clean(a.Why)
	}
	f.line("API server", a.Since, look, text)
}

func (f facts) cluster(o overview.Overview) {
	c := o.Cluster
	var parts []string
	parts = append(parts, clean(c.Role))
	if c.Address != "" {
		parts = append(parts, clean(c.Address)+" on "+cmp.Or(clean(c.Interface), "no interface"))
	}
	if c.JoinServer != "" && c.Role != "bootstrap" {
		parts = append(parts, "joins "+clean(c.JoinServer))
	}
	parts = append(parts, "cluster "+clean(c.ID))
	f.told("cluster", c.Told, plain, strings.Join(parts, ", "))
	m := c.Membership
	look := green
	switch m.State {
	case types.MembershipDoubtful, types.MembershipLeaving:
		look = yellow
	case types.MembershipNever, types.MembershipLeft:
		look = plain
	}
	text := clean(string(m.State))
	if m.Reason != "" {
		text += ": " + clean(m.Reason)
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
		text += ", tie-breaker " + clean(m.TieBreaker)
	}
	if m.Hindered != "" {
		text += ": " + clean(m.Hindered)
	}
	f.told("members", m.Told, plain, text)
}
