package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// putApp is all that is known of one application, of its pods since the report.
func putApp(s *screen, a overview.App, report, now time.Time) {
	kind := "container"
	if a.VM {
		kind = "virtual machine"
	}
	s.put(0, appLook(a), clean(a.Name)+", a "+kind+": "+appState(a)+", "+sinceText(a.Since, now))
	s.field("UUID", plain, a.UUID)
	s.field("Kubernetes", plain, "eve-kube-app/"+clean(a.KubeName))
	s.field("runs on", plain, orNone(clean(a.Node)))
	s.field("designated", plain, designated(a)+", affinity "+clean(a.Affinity))
	if a.Restarts != nil {
		s.field("restarts", plain, fmt.Sprint(*a.Restarts))
	}
	if len(a.Ports) > 0 {
		s.field("ports", plain, listed(a.Ports))
	}
	putConsole(s, a, now)
	putRepair(s, a.Repair, now)
	for i, p := range a.Pods {
		if i == shownItems {
			break
		}
		text := clean(p.Name) + " " + p.Status.String() + " on " + orNone(clean(p.NodeName))
		if p.Reason != "" {
			text += ", " + clean(p.Reason)
		}
		if p.RestartCount > 0 {
			text += fmt.Sprintf(", %d restarts, the last %s", p.RestartCount, age(p.RestartTimestamp.Time(), now))
		}
		if !report.IsZero() {
			text += "; reported " + age(report, now)
		}
		s.field("pod", plain, text)
	}
	for i, v := range a.VMIs {
		if i == shownItems {
			break
		}
		s.field("machine", plain, clean(v.Name)+" "+v.Status.String()+" on "+orNone(clean(v.NodeName))+", since "+stamp(v.LastTransitionTime, now))
	}
}

func sinceText(at, now time.Time) string {
	if at.IsZero() {
		return "for an unknown time"
	}
	return "since " + stamp(at, now)
}

func putConsole(s *screen, a overview.App, now time.Time) {
	c := a.Console
	switch {
	case c == nil:
	case c.Open:
		s.field("console", plain, fmt.Sprintf("open on port %d, since %s", c.VNCPort, stamp(c.Since, now)))
	default:
		s.field("console", yellow, "closed: "+clean(c.Why)+", since "+stamp(c.Since, now))
	}
}

// putRepair is what this node makes of an application's health.
func putRepair(s *screen, r *types.AppRepairStatus, now time.Time) {
	if r == nil {
		return
	}
	look := repairLook(r.Phase)
	if r.Phase == types.RepairWell {
		look = green
	}
	text := strings.TrimSpace(clean(string(r.Phase) + " " + string(r.Act)))
	if r.Reason != "" {
		text += ": " + strings.TrimRight(clean(r.Reason), ".")
	}
	s.field("repair", look, text+", "+sinceText(r.Since, now))
	if r.Lost != "" {
		s.field("lost with", yellow, clean(r.Lost))
	}
	for i, e := range r.Evidence {
		if i == shownItems {
			break
		}
		s.field("seen", plain, clean(e))
	}
	for i, step := range r.Steps {
		if i == shownItems {
			break
		}
		text := stamp(step.At, now) + " " + clean(string(step.Act)) + ": " + clean(step.Step)
		if step.Failed != "" {
			text += " FAILED: " + clean(step.Failed)
		}
		s.field("step", plain, text)
	}
}
