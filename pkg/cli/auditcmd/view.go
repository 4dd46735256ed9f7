package auditcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// auditTable is what people are shown of operations.
func auditTable(operations []types.Operation, now time.Time, times bool) terminal.Table {
	when := terminal.Column{Title: "AGE"}
	if times {
		when.Title = "TIME"
	}
	t := terminal.Table{Columns: []terminal.Column{
		when,
		{Title: "OP"},
		{Title: "TARGET"},
		{Title: "BY", Keep: 5},
		{Title: "COMPONENT", Keep: 2},
		{Title: "OUTCOME"},
		{Title: "TOOK", Keep: 1, Right: true},
		{Title: "WHY/ERROR", Keep: 4},
	}}
	for _, o := range operations {
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: auditWhen(o, now, times)},
			{Text: terminal.Clean(o.Op)},
			{Text: terminal.Clean(o.Target)},
			{Text: terminal.Clean(o.By)},
			{Text: terminal.Clean(o.Component)},
			auditOutcome(o),
			{Text: auditTook(o)},
			{Text: auditWhy(o)},
		})
	}
	return t
}

func auditWhen(o types.Operation, now time.Time, times bool) string {
	switch {
	case times:
		return o.At.UTC().Format(time.DateTime) + "Z"
	case o.At.After(now.Add(time.Second)): // the clock was put back
		return "in " + terminal.Span(o.At.Sub(now))
	default:
		return terminal.Span(now.Sub(o.At))
	}
}

func auditOutcome(o types.Operation) terminal.Cell {
	c := terminal.Cell{Text: terminal.Clean(string(o.Outcome))}
	switch o.Outcome {
	case types.OperationBegun:
		c.Text, c.Look = "begun", terminal.Yellow
	case types.OperationOK:
		c.Look = terminal.Green
	case types.OperationUnanswered:
		c.Look = terminal.Yellow
	default:
		c.Look = terminal.Red
	}
	if o.Times > 1 {
		c.Text += fmt.Sprintf(" x%d", o.Times)
	}
	return c
}

func auditTook(o types.Operation) string {
	switch {
	case o.Took <= 0:
		return ""
	case o.Took < time.Second:
		return fmt.Sprintf("%dms", o.Took.Milliseconds())
	case o.Took < time.Minute:
		return fmt.Sprintf("%.1fs", o.Took.Seconds())
	}
	return terminal.Span(o.Took)
}

// auditWhy is why it was done, or, where that is not told, which user asked.
func auditWhy(o types.Operation) string {
	switch {
	case o.Error == "":
		return terminal.Clean(cmp.Or(o.Why, o.From))
	case o.Why == "":
		return terminal.Clean(o.Error)
	}
	return terminal.Clean(o.Why) + ": " + terminal.Clean(o.Error)
}

// view is a look for people or programs.
func (a *auditing) view(l auditLook) terminal.View {
	return terminal.View{Data: l, Err: l.err, Draw: func(s *terminal.Screen) {
		operations := l.Operations
		if a.Watch { // a screen is cut at its end, and has the remarks too
			operations = slices.Clone(operations)
			slices.Reverse(operations)
			for _, r := range l.Remarks {
				s.Put(0, terminal.Yellow, terminal.Clean(r))
			}
		}
		if len(operations) == 0 {
			s.Lines = append(s.Lines, l.nothing()...)
			return
		}
		auditTable(operations, l.now, a.times).Draw(s)
		if l.foreign != "" {
			s.Lines = append(s.Lines, "", terminal.Clean(l.foreign))
		}
	}}
}

// nothing says that nothing was found.
func (l auditLook) nothing() []string {
	line := "No operation was recorded."
	if l.all > 0 {
		line = fmt.Sprintf("None of %d operations matches.", l.all)
	}
	if l.foreign != "" {
		return []string{line, terminal.Clean(l.foreign)}
	}
	return []string{line}
}

// remark says what people would miss in the table.
func (a *auditing) remark(w io.Writer, l auditLook) {
	if !a.People() {
		return
	}
	if l.earlier > 0 {
		fmt.Fprintf(w, "%d earlier operations are not shown: --limit 0 shows all.\n", l.earlier)
	}
	for _, r := range l.Remarks {
		fmt.Fprintln(w, terminal.Clean(r))
	}
}

// watch looks again where something has changed. Each operation that is new or has
// changed is an event; where there is no screen, warnings says what cannot be shown.
func (a *auditing) watch(screen bool, warnings io.Writer) func(context.Context) terminal.View {
	var last auditLook
	printed := map[string]string{}
	stamp, remarked := "none", ""
	return func(context.Context) terminal.View {
		is := audit.Stamp(a.paths.Audit)
		last.now = time.Now()
		changed := is != stamp
		if changed {
			last, stamp = a.look(last.now), is
		}
		v := a.view(last)
		if screen {
			return v
		}
		v.Err = nil // what cannot be read is in the remarks
		if !changed {
			return v
		}
		if r := strings.Join(last.Remarks, "\n"); r != remarked {
			a.remark(warnings, auditLook{Remarks: last.Remarks})
			remarked = r
		}
		next := make(map[string]string, len(last.Operations))
		for _, o := range last.Operations {
			text := strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Outcome, o.Last.Format(time.RFC3339), o.Error))
			next[o.ID] = text
			if was, had := printed[o.ID]; !had || was != text {
				v.Events = append(v.Events, terminal.Event{Text: auditLine(o), Data: o})
			}
		}
		printed = next
		return v
	}
}

func auditLine(o types.Operation) string {
	by := o.By
	if o.Component != "" && o.Component != by {
		by += " (" + o.Component + ")"
	}
	return fmt.Sprintf("%s  %s %s  by %s  %s  %s", terminal.Timestamp(o.At), terminal.Clean(o.Op), terminal.Clean(o.Target), terminal.Clean(by), auditOutcome(o).Text, auditWhy(o))
}
