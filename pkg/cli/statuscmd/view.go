package statuscmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func putStatus(s *terminal.Screen, o overview.Overview) {
	putStatusHead(s, o)
	for _, p := range o.Problems {
		putProblem(s, p, o.ReadAt)
	}
	s.Gap()
	f := summary{Screen: s, now: o.ReadAt}
	f.agent(o)
	if o.Node.NoCluster == "" {
		f.api(o.API)
		f.cluster(o)
		f.phase(o)
		f.drain(o.Drain)
		f.lease(o)
		f.report(o.Report)
		f.storage(o.Storage)
		f.conditions(o.Conditions)
	}
	for _, said := range o.K3s {
		f.line("k3s", time.Time{}, terminal.Yellow, terminal.Clean(said))
	}
	f.disks(o.Disks)
	if len(o.Apps.List) > 0 {
		s.Gap()
		appscmd.AppsTable(o, false).Draw(s)
	}
	if len(o.Nodes.List) > 0 {
		s.Gap()
		nodescmd.NodesTable(o.Nodes, o.ReadAt).Draw(s)
		nodescmd.PutSource(s, o.Nodes, o.ReadAt)
	}
}

func putStatusHead(s *terminal.Screen, o overview.Overview) {
	name := cmp.Or(terminal.Clean(o.Node.Name), "this node")
	if c := terminal.Clean(o.Cluster.Name); c != "" && o.Node.NoCluster == "" {
		name += ", cluster " + c
	}
	look := terminal.Green
	for _, p := range o.Problems {
		if look == terminal.Green || p.Severity == types.SeverityBad {
			look = severityLook(p.Severity)
		}
	}
	s.Put(0, look, name+": "+problemsText(len(o.Problems)))
	if o.Copied {
		s.Put(0, terminal.Plain, "a copy, made "+terminal.Timestamp(o.ReadAt)+"; ages are relative to that time")
	}
}

func severityLook(v types.Severity) terminal.Style {
	if v == types.SeverityBad {
		return terminal.Red
	}
	return terminal.Yellow
}

func putProblem(s *terminal.Screen, p types.Finding, now time.Time) {
	word := "WARN"
	if p.Severity == types.SeverityBad {
		word = "BAD "
	}
	s.Gap()
	since := ""
	if !p.Since.IsZero() {
		since = " Since " + terminal.Stamp(p.Since, now) + "."
	}
	s.Hang("  "+word+"  ", 8, severityLook(p.Severity), terminal.Clean(p.Evidence)+since)
	if p.Remedy != "" {
		s.Put(8, terminal.Bold, "-> "+terminal.Clean(p.Remedy))
	}
	s.Put(8, terminal.Plain, "more: zedkube explain "+p.Rule)
}

type summary struct {
	*terminal.Screen
	now time.Time
}

// ageWidth is the column of ages, summaryIndent where the texts begin.
const (
	ageWidth      = 5
	summaryIndent = terminal.LabelWidth + ageWidth + 2
)

func (f summary) line(label string, at time.Time, look terminal.Style, text string) {
	f.Hang(fmt.Sprintf("  %-*s%*s  ", terminal.LabelWidth-2, label, ageWidth, terminal.ShortAge(at, f.now)), summaryIndent, look, text)
}

// reported is a line for what a file says, or that there is none.
func (f summary) reported(label string, t overview.Source, look terminal.Style, text string) {
	switch {
	case t.Why != "":
		look, text = terminal.Red, "cannot be read: "+terminal.Clean(t.Why)
	case !t.Known():
		look, text = terminal.Plain, "unknown: there is no "+terminal.Clean(t.File)
	}
	f.line(label, t.At, look, text)
}

func (f summary) agent(o overview.Overview) {
	look, text := terminal.Green, "runs"
	if !o.Agent.Runs {
		look, text = terminal.Red, "is NOT running: "+terminal.Clean(o.Agent.Why)
	}
	if o.Agent.Hung {
		text = "HANGS: " + terminal.Clean(o.Agent.Why)
	}
	if o.Agent.PID > 0 {
		text += fmt.Sprintf("; process %d", o.Agent.PID)
	}
	if !o.Agent.Runs {
		text += "; the rest is what it last published"
	}
	f.line("agent", o.Agent.Seen, look, text)
	if o.Node.NoCluster != "" {
		f.line("cluster", o.Node.At, terminal.Plain, terminal.Clean(o.Node.NoCluster))
	}
}

func (f summary) api(a overview.API) {
	look, text := terminal.Plain, "unknown"
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

// phase is that of the cluster, of its workloads where they are disabled, and of a change of k3s that there is.
func (f summary) phase(o overview.Overview) {
	if c := o.Cluster.Object; c.Phase != "" {
		look := map[types.ClusterPhase]terminal.Style{types.ClusterProvisioned: terminal.Green, types.ClusterFailed: terminal.Red}[c.Phase]
		f.line("phase", c.Since, look, terminal.Clean(fmt.Sprintf("%s: %s", c.Phase, c.Why)))
	}
	if w := o.Workloads; w.Phase != "" && w.Phase != types.WorkloadsEnabled {
		f.line("workloads", w.Since, terminal.Yellow, terminal.Clean(strings.TrimSuffix(string(w.Phase)+": "+w.Reason, ": ")))
	}
	if c := o.Change; c != nil && c.To != "" {
		f.line("k3s", c.Since, terminal.Yellow, terminal.Clean(fmt.Sprintf("%s: %s to %s: %s", c.Phase, c.From, c.To, c.Reason)))
	}
}

func (f summary) cluster(o overview.Overview) {
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
	f.reported("cluster", c.Source, terminal.Plain, strings.Join(parts, ", "))
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
	f.reported("membership", m.Source, look, text)
	f.members(c.Members)
}

func (f summary) members(m overview.Members) {
	text := "the controller lists no masters"
	if n := len(m.Masters); n > 0 {
		text = phrase.Counted(n, "master")
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
	f.reported("members", m.Source, terminal.Plain, text)
}

func (f summary) drain(d overview.Drain) {
	look, text := terminal.Plain, ""
	if p := d.Progress; p != nil {
		look, text = draincmd.PhaseText(*p)
		if p.Pods != (types.DrainPods{}) {
			text += ", " + draincmd.PodsText(p.Pods)
		}
		for _, more := range draincmd.BlockTexts(*p) {
			text += ", " + more
		}
		if p.Cordon != "" {
			text += "; " + terminal.Clean(overview.Cordoned(p.Cordon))
		}
	}
	f.reported("drain", d.Source, look, text)
	if d.Status != "" {
		f.line("EVE sees", d.At, terminal.Plain, terminal.Clean(d.Status)+", for "+terminal.Clean(d.RequestedBy))
	}
	if d.Request != nil {
		f.line("requester", d.Request.RequestedAt, terminal.Plain, strings.TrimSuffix("the operator: "+terminal.Clean(d.Request.Context), ": "))
	}
}

func (f summary) lease(o overview.Overview) {
	l := o.Lease
	look, text := terminal.Plain, terminal.Clean(l.Leader)+" reports for the cluster"
	switch {
	case l.Leader == "":
		look, text = terminal.Yellow, "no node reports for the cluster"
	case l.Mine:
		text = "this node reports for the cluster"
	}
	if !l.Takes {
		text += "; this node is not a candidate"
	}
	if !l.Since.IsZero() {
		text += ", since " + terminal.Stamp(l.Since, f.now)
	}
	f.reported("leader", l.Source, look, text)
}

func (f summary) report(r overview.Report) {
	stale, cut, unseen := 0, 0, 0
	for _, s := range r.Sections {
		switch {
		case s.Absent:
		case !s.StaleSince.IsZero():
			stale++
		case !s.Known:
			unseen++
		}
		if s.Truncated > 0 {
			cut++
		}
	}
	look, text := terminal.Green, phrase.Counted(len(r.Sections)-stale-unseen, "section")+" up to date"
	if stale+unseen+cut > 0 {
		look = terminal.Yellow
	}
	for _, part := range []struct {
		n    int
		word string
	}{{stale, "stale"}, {unseen, "not seen yet"}, {cut, "truncated"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	f.reported("report", r.Source, look, text)
}

func (f summary) storage(s overview.Storage) {
	if s.Health != "" {
		look := map[string]terminal.Style{"Healthy": terminal.Green, "Degraded": terminal.Yellow, "Failed": terminal.Red}[s.Health]
		whole := 0
		for _, v := range s.Volumes {
			if v.Robustness == types.StorageVolumeRobustnessHealthy.String() {
				whole++
			}
		}
		f.line("storage", s.Since, look, fmt.Sprintf("%s, %d of %s healthy", terminal.Clean(s.Health), whole, phrase.Counted(len(s.Volumes), "volume")))
	}
	var wrong []string
	for _, level := range s.Settings {
		if level.Kept && level.Why != "" {
			wrong = append(wrong, terminal.Clean(level.Name)+": "+terminal.Clean(level.Why))
		}
	}
	look, text := terminal.Plain, "as in the device's settings, as far as this node applies them"
	if len(wrong) > 0 {
		look, text = terminal.Yellow, strings.Join(wrong, "; ")
	}
	f.reported("settings", s.Source, look, text)
}

func (f summary) conditions(c overview.Conditions) {
	var wrong, open []string
	for _, s := range c.List {
		switch s.Status {
		case types.ConditionTrue:
		case types.ConditionFalse:
			wrong = append(wrong, terminal.Clean(string(s.Type)))
		default:
			open = append(open, terminal.Clean(string(s.Type)))
		}
	}
	look, text := terminal.Green, fmt.Sprintf("%d of %d True", len(c.List)-len(wrong)-len(open), len(c.List))
	if len(wrong) > 0 {
		look, text = terminal.Yellow, text+"; False: "+strings.Join(wrong, ", ")
	}
	if len(open) > 0 {
		text += "; Unknown: " + strings.Join(open, ", ")
	}
	f.reported("conditions", c.Source, look, text)
	var versions []string
	for _, v := range []struct{ name, version string }{{"Kubernetes", c.Kubernetes}, {"KubeVirt", c.KubeVirt}, {"CDI", c.CDI}, {"Longhorn", c.Longhorn}, {"CNI", c.CNI}} {
		if v.version != "" {
			versions = append(versions, v.name+" "+terminal.Clean(v.version))
		}
	}
	if len(versions) > 0 {
		f.line("versions", c.At, terminal.Plain, strings.Join(versions, ", "))
	}
	for _, cert := range c.Certificates {
		f.line("certificate", c.At, terminal.Plain, fmt.Sprintf("%s expires %s", terminal.Clean(cert.Name), terminal.Stamp(cert.NotAfter, f.now)))
	}
}

func (f summary) disks(list []overview.Disk) {
	var texts []string
	for _, d := range list {
		if d.Size > 0 {
			free := d.Free
			texts = append(texts, fmt.Sprintf("%s %d%% free (%s)", d.Path, int(float64(free)/float64(d.Size)*100), terminal.BytesText(&free)))
		}
	}
	if len(texts) > 0 {
		f.line("disks", f.now, terminal.Plain, strings.Join(texts, ", "))
	}
}
