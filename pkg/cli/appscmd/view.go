package appscmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// putApp is all that is known of one application, of its pods since the report.
func putApp(s *terminal.Screen, a overview.App, report, now time.Time) {
	kind := "container"
	if a.VM {
		kind = "virtual machine"
	}
	s.Put(0, appLook(a), terminal.Clean(a.Name)+", a "+kind+": "+AppState(a)+", "+sinceText(a.Since, now))
	s.Field("UUID", terminal.Plain, a.UUID)
	s.Field("Kubernetes", terminal.Plain, "eve-kube-app/"+terminal.Clean(a.KubeName))
	s.Field("runs on", terminal.Plain, terminal.OrNone(terminal.Clean(a.Node)))
	s.Field("designated", terminal.Plain, designated(a)+", affinity "+terminal.Clean(a.Affinity))
	if a.Restarts != nil {
		s.Field("restarts", terminal.Plain, fmt.Sprint(*a.Restarts))
	}
	if len(a.Ports) > 0 {
		s.Field("ports", terminal.Plain, terminal.Listed(a.Ports))
	}
	putConsole(s, a, now)
	putRepair(s, a.Repair, now)
	for _, p := range a.Pods[:min(len(a.Pods), terminal.ShownItems)] {
		text := terminal.Clean(p.Name) + " " + p.Status.String() + " on " + terminal.OrNone(terminal.Clean(p.NodeName))
		if p.Reason != "" {
			text += ", " + terminal.Clean(p.Reason)
		}
		if p.RestartCount > 0 {
			text += fmt.Sprintf(", %d restarts, the last %s", p.RestartCount, terminal.Age(p.RestartTimestamp.Time(), now))
		}
		if !report.IsZero() {
			text += "; reported " + terminal.Age(report, now)
		}
		s.Field("pod", terminal.Plain, text)
	}
	for _, v := range a.VMIs[:min(len(a.VMIs), terminal.ShownItems)] {
		s.Field("machine", terminal.Plain, terminal.Clean(v.Name)+" "+v.Status.String()+" on "+terminal.OrNone(terminal.Clean(v.NodeName))+", since "+terminal.Stamp(v.LastTransitionTime, now))
	}
}

func sinceText(at, now time.Time) string {
	if at.IsZero() {
		return "for an unknown time"
	}
	return "since " + terminal.Stamp(at, now)
}

func putConsole(s *terminal.Screen, a overview.App, now time.Time) {
	c := a.Console
	switch {
	case c == nil:
	case c.Open:
		s.Field("console", terminal.Plain, fmt.Sprintf("open on port %d, since %s", c.VNCPort, terminal.Stamp(c.Since, now)))
	default:
		s.Field("console", terminal.Yellow, "closed: "+terminal.Clean(c.Why)+", since "+terminal.Stamp(c.Since, now))
	}
}

// putRepair is what this node makes of an application's health.
func putRepair(s *terminal.Screen, r *types.AppRepairStatus, now time.Time) {
	if r == nil {
		return
	}
	look := repairLook(r.Phase)
	if r.Phase == types.RepairWell {
		look = terminal.Green
	}
	text := strings.TrimSpace(terminal.Clean(string(r.Phase) + " " + string(r.Act)))
	if r.Reason != "" {
		text += ": " + strings.TrimRight(terminal.Clean(r.Reason), ".")
	}
	s.Field("repair", look, text+", "+sinceText(r.Since, now))
	if r.Lost != "" {
		s.Field("lost with", terminal.Yellow, terminal.Clean(r.Lost))
	}
	for _, e := range r.Evidence[:min(len(r.Evidence), terminal.ShownItems)] {
		s.Field("seen", terminal.Plain, terminal.Clean(e))
	}
	for _, step := range r.Steps[:min(len(r.Steps), terminal.ShownItems)] {
		text := terminal.Stamp(step.At, now) + " " + terminal.Clean(string(step.Act)) + ": " + terminal.Clean(step.Step)
		if step.Failed != "" {
			text += " FAILED: " + terminal.Clean(step.Failed)
		}
		s.Field("step", terminal.Plain, text)
	}
}
