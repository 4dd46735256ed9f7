package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// auditEvery is how often the files are looked at while they are watched.
const auditEvery = time.Second

// auditTable is what people are shown of operations.
func auditTable(operations []types.Operation, now time.Time, times bool) table {
	when := column{title: "AGE"}
	if times {
		when.title = "TIME"
	}
	t := table{columns: []column{
		when,
		{title: "OP"},
		{title: "TARGET"},
		{title: "BY", keep: 5},
		{title: "COMPONENT", keep: 2},
		{title: "OUTCOME"},
		{title: "TOOK", keep: 1, right: true},
		{title: "WHY/ERROR", keep: 4},
	}}
	for _, o := range operations {
		t.rows = append(t.rows, []cell{
			{text: auditWhen(o, now, times)},
			{text: clean(o.Op)},
			{text: clean(o.Target)},
			{text: clean(o.By)},
			{text: clean(o.Component)},
			auditOutcome(o),
			{text: auditTook(o)},
			{text: auditWhy(o)},
		})
	}
	return t
}

func auditWhen(o types.Operation, now time.Time, times bool) string {
	switch {
	case times:
		return o.At.UTC().Format(time.DateTime) + "Z"
	case o.At.After(now.Add(time.Second)): // the clock was put back
		return "in " + span(o.At.Sub(now))
	default:
		return span(now.Sub(o.At))
	}
}

func auditOutcome(o types.Operation) cell {
	c := cell{text: clean(string(o.Outcome))}
	switch o.Outcome {
	case types.OperationBegun:
		c.text, c.look = "begun", yellow
	case types.OperationOK:
		c.look = green
	case types.OperationUnanswered:
		c.look = yellow
	default:
		c.look = red
	}
	if o.Times > 1 {
		c.text += fmt.Sprintf(" x%d", o.Times)
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
	return span(o.Took)
}

// auditWhy is why it was done, or, where that is not told, which user asked.
func auditWhy(o types.Operation) string {
	switch {
	case o.Error == "":
		return clean(cmp.Or(o.Why, o.From))
	case o.Why == "":
		return clean(o.Error)
	}
	return clean(o.Why) + ": " + clean(o.Error)
}

// shown is a look for people or programs.
func (a *auditing) shown(l auditLook) shown {
	return shown{data: l, err: l.err, lines: func(width int, colour bool) []string {
		operations := l.Operations
		if a.watch { // a screen is cut at its end
			operations = slices.Clone(operations)
			slices.Reverse(operations)
		}
		s := &screen{width: width, colour: colour}
		if a.watch { // else they are apart from the table
			for _, r := range l.Remarks {
				s.put(0, yellow, clean(r))
			}
		}
		if len(operations) == 0 {
			return append(s.lines, l.nothing()...)
		}
		s.lines = append(s.lines, auditTable(operations, l.now, a.times).lines(width, colour)...)
		if l.foreign != "" {
			s.lines = append(s.lines, "", clean(l.foreign))
		}
		return s.lines
	}}
}

// nothing says that nothing was found.
func (l auditLook) nothing() []string {
	line := "No operation was recorded."
	if l.all > 0 {
		line = fmt.Sprintf("None of %d operations is of that kind.", l.all)
	}
	if l.foreign != "" {
		return []string{line, clean(l.foreign)}
	}
	return []string{line}
}

// shower looks again where something has changed.
func (a *auditing) shower() func(context.Context) shown {
	var last auditLook
	stamp := "none"
	return func(context.Context) shown {
		now := time.Now()
		if is := audit.Stamp(a.paths.audit); is != stamp {
			last, stamp = a.look(now), is
		}
		last.now = now
		return a.shown(last)
	}
}

// remark says what people would miss in the table.
func (a *auditing) remark(w io.Writer, l auditLook) {
	if !a.people() {
		return
	}
	if l.earlier > 0 {
		fmt.Fprintf(w, "%d earlier operations are not shown: --limit 0 shows all.\n", l.earlier)
	}
	for _, r := range l.Remarks {
		fmt.Fprintln(w, clean(r))
	}
}

// auditRemarks says what of the trail is missing: it is shown all the same.
func auditRemarks(p audit.Problems, err error) (says []string) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			says = append(says, "A part of the trail cannot be read, and what it holds is not shown: "+clean(line))
		}
	}
	if p.Torn > 0 {
		says = append(says, fmt.Sprintf("%d lines make no sense and are left out; a power cut tears the last one.", p.Torn))
	}
	if p.Lost > 0 {
		says = append(says, fmt.Sprintf("%d lines were lost while they could not be written.", p.Lost))
	}
	return says
}

// follow prints a line, or a document, for each operation and for each change of
// one, until ctx is done, and on warnings what cannot be shown.
func (a *auditing) follow(ctx context.Context, t terminal, warnings io.Writer) error {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	told := map[string]string{}
	stamp, remarked := "none", ""
	for {
		if is := audit.Stamp(a.paths.audit); is != stamp {
			stamp = is
			l := a.look(time.Now())
			if r := strings.Join(l.Remarks, "\n"); r != remarked {
				a.remark(warnings, auditLook{Remarks: l.Remarks})
				remarked = r
			}
			next := make(map[string]string, len(l.Operations))
			for _, o := range l.Operations {
				text := strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Outcome, o.Last.Format(time.RFC3339), o.Error))
				next[o.ID] = text
				if was, had := told[o.ID]; had && was == text {
					continue
				}
				if err := a.tell(t, o); err != nil {
					return err
				}
			}
			told = next
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *auditing) tell(t terminal, o types.Operation) error {
	if !a.people() {
		return a.outputs.encode(t, o, "")
	}
	by := o.By
	if o.Component != "" && o.Component != by {
		by += " (" + o.Component + ")"
	}
	_, err := fmt.Fprintf(t, "%s  %s %s  by %s  %s  %s\n",
		o.At.UTC().Format(time.DateTime)+"Z", clean(o.Op), clean(o.Target), clean(by), auditOutcome(o).text, auditWhy(o))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
