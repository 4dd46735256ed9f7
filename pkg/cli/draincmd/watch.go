package draincmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// watch looks at the record until its drain has ended: with nil when it is complete, an
// error with exit code 3 when it has failed or was withdrawn, and 1 before that.
func watch(read func() drainRecord) func(context.Context) terminal.View {
	ran := false // a drain was seen under way
	return func(context.Context) terminal.View {
		r := read()
		v := view(r)
		v.Err = terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted, the drain has not ended"))
		if over, err := r.ending(); over {
			v.Ended, v.Err = true, err
		} else if ran = ran || r.underWay(); ran && r.idle() {
			v.Ended, v.Err = true, terminal.ExitWith(terminal.ExitDrainFailed, errors.New("the drain was withdrawn: "+terminal.Clean(r.Progress.Reason)))
		}
		return v
	}
}

// view is a record for people or programs.
func view(r drainRecord) terminal.View {
	text := summary(r)
	return terminal.View{Data: r, Steady: text, Rows: []terminal.Row{{Text: text}}, Draw: func(s *terminal.Screen) { putDrain(s, r) }}
}

// summary is the record in a line, without what changes by itself.
func summary(r drainRecord) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !r.Agent.Runs {
		add("THE AGENT DOES NOT RUN")
	}
	for _, problem := range r.Problems {
		add("%s", terminal.Clean(problem))
	}
	p := r.Progress
	switch {
	case p == nil && r.Status == nil:
		add("no record of a drain")
	case p == nil:
		add("%s", terminal.Clean(r.Status.Status.String()))
	default:
		_, text := PhaseText(*p)
		add("%s", text)
		if p.Reason != "" {
			add("%s", terminal.Clean(p.Reason))
		}
		if p.Pods != (types.DrainPods{}) {
			add("pods %s", PodsText(p.Pods))
		}
		if n := len(p.Blockers) + max(p.BlockersOmitted, 0); n > 0 {
			add("%d pods block it", n)
		}
		if n := len(p.Volumes) + max(p.VolumesOmitted, 0); n > 0 {
			add("%d volumes block it", n)
		}
	}
	return strings.Join(parts, "; ")
}
