// Package auditcmd is zedkube audit, and the same for the page.
package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

const auditExitCodes = `Exit codes:
  0   it was shown, or nothing was found
  1   wrong usage, interrupted, or it could not be printed
  2   nothing has been recorded here, or a part cannot be read; the rest is shown
  99  unknown command`

// auditLimit is how many operations people are shown unless they ask for more.
const auditLimit = 200

type auditing struct {
	terminal.Outputs
	paths device.Paths

	since, until string
	limit        int
	times        bool // and not ages
	cluster      bool
	limited      bool // the limit was given

	filter audit.Filter
}

// NewAuditCommand shows what zedkube did.
func NewAuditCommand(o *device.Options) *cobra.Command {
	var a auditing
	c := &cobra.Command{
		Use:   "audit [--cluster] [--since 2h] [--op OP,...] [--failed] [--watch]",
		Short: "Show what zedkube did to the cluster and to this device: who requested it, why, and the outcome",
		Long: "Show what this node's zedkube did to the cluster and to the device, newest last: who requested it, why, and the\n" +
			"outcome. Repeated attempts are one line. It reads files, so it works without the agent\n" +
			"and, with --root, on a copy.\n\n" + auditExitCodes,
		Example: "  zedkube audit --op cordon,uncordon       who cordoned this node\n" +
			"  zedkube audit --failed --since 2h        what went wrong\n" +
			"  zedkube audit --target cam-0 --watch     what is done to an application, live\n" +
			"  zedkube audit --by OPERATOR -o json",
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			a.paths, a.limited = o.Paths(), c.Flags().Changed("limit")
			return a.run(c)
		},
	}
	terminal.List[types.Operation](&a.Outputs, c, "operation", auditTable(nil, time.Time{}, false))
	a.WatchFlag(c)
	f := c.Flags()
	f.StringVar(&a.since, "since", "", "only operations newer than a duration or a time: 2h, 7d, 2026-01-31, 15:04 (UTC)")
	f.StringVar(&a.until, "until", "", "only operations begun before a time, or longer ago than a duration")
	f.StringSliceVar(&a.filter.Ops, "op", nil, "only these operations, such as cordon,evict; the first word is enough")
	f.StringSliceVar(&a.filter.Components, "component", nil, "only what these components did, such as drain,apps; \"command\" for commands")
	f.StringSliceVar(&a.filter.By, "by", nil, "only operations requested by these, such as OPERATOR,UPDATE")
	f.StringVar(&a.filter.Target, "target", "", "only what was done to targets that contain this text")
	f.BoolVar(&a.filter.Failed, "failed", false, "only what was refused, failed or was not answered")
	f.IntVar(&a.limit, "limit", auditLimit, "show at most this many, the newest; 0 for all; with -o all unless it is given")
	device.ClusterFlag(c, &a.Outputs, &a.cluster, "show the newest operations of all nodes", terminal.Table{})
	a.ColumnsBy(func([]string) []terminal.Column {
		if a.cluster {
			return clusterTable(nil, time.Time{}, a.times).Columns
		}
		return auditTable(nil, time.Time{}, a.times).Columns
	})
	f.BoolVar(&a.times, "time", false, "show times (UTC) instead of ages")
	for flag, of := range map[string]func(types.Operation) string{
		"op":        func(o types.Operation) string { return o.Op },
		"component": func(o types.Operation) string { return o.Component },
		"by":        func(o types.Operation) string { return o.By },
	} {
		terminal.CompletedFrom(c, flag, func(context.Context) []string { return recorded(o.Paths(), of) })
	}
	return c
}

// recorded are the values that there are on this device, each once.
func recorded(p device.Paths, of func(types.Operation) string) (values []string) {
	all, _, _ := audit.Read(p.Audit) // what cannot be read is not offered
	for _, o := range all {
		for value := range strings.SplitSeq(of(o), ",") {
			if value = terminal.Clean(value); value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	slices.Sort(values)
	return values
}

func (a *auditing) run(c *cobra.Command) error {
	if err := a.parse(device.Now(a.paths.Root)); err != nil {
		return terminal.ExitWith(terminal.ExitUsage, err)
	}
	if a.cluster {
		return device.ShowCluster(c, a.paths, &a.Outputs, "", a.viewCluster)
	}
	if _, err := os.Stat(a.paths.Audit); err != nil && (!a.Watch || !errors.Is(err, fs.ErrNotExist)) {
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("nothing was recorded here: %w", err))
	}
	t := terminal.Of(c.OutOrStdout())
	if a.Watch {
		look := a.watch(t.Live && a.People(), c.ErrOrStderr())
		return a.Outputs.Follow(c.Context(), t, terminal.Watch{Look: look, Every: terminal.WatchEvery, Events: true})
	}
	l := a.look(device.Now(a.paths.Root))
	a.remark(c.ErrOrStderr(), l)
	return cmp.Or(a.Outputs.Print(t, a.view(l)), l.err)
}

func (a *auditing) parse(now time.Time) error {
	var errs []error
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", a.since, &a.filter.Since}, {"--until", a.until, &a.filter.Until}} {
		if at.text == "" {
			continue
		}
		var err error
		if *at.to, err = audit.ParseTime(at.text, now); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at.flag, err))
		}
	}
	if a.limit < 0 {
		errs = append(errs, fmt.Errorf("--limit %d: want 0 or more", a.limit))
	}
	return errors.Join(errs...)
}

type auditLook struct {
	Operations []types.Operation
	Problems   audit.Problems
	Remarks    []string // what is missing in the operations and why, a sentence each

	now     time.Time
	earlier int    // of those that were found, not shown
	all     int    // that there are
	foreign string // who else cordoned this node, "" for nobody
	err     error
}

// look reads what there is and takes what is wanted, the newest last.
func (a *auditing) look(now time.Time) auditLook {
	all, problems, err := audit.Read(a.paths.Audit)
	l := auditLook{
		Operations: []types.Operation{}, Problems: problems, Remarks: audit.Remarks(problems, err),
		now: now, all: len(all), foreign: a.foreignCordon(),
	}
	if err != nil {
		l.err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("a part of the audit trail cannot be read"))
	}
	for _, o := range all {
		if a.filter.Wants(o) {
			l.Operations = append(l.Operations, o)
		}
	}
	l.Operations = terminal.Selected(&a.Outputs, l.Operations)
	if most := a.limit; most > 0 && len(l.Operations) > most && (a.People() || a.limited) {
		l.earlier = len(l.Operations) - most
		l.Operations = l.Operations[l.earlier:]
	}
	return l
}

// foreignCordon says who else cordoned this node: what others do is not on our
// record, but a user who looks for a cordon has to see it all the same.
func (a *auditing) foreignCordon() string {
	if len(a.filter.Components)+len(a.filter.By) > 0 || a.filter.Target != "" || len(a.filter.Ops) > 0 && !slices.Contains(a.filter.Ops, "cordon") {
		return ""
	}
	for _, file := range []string{a.paths.PersistentFile(device.Self, "KubeNodeConditions"), a.paths.TopicFile(device.Self, "KubeNodeConditions")} {
		row, _, err := device.ReadRecord[types.KubeNodeConditions](file)
		if err != nil {
			continue
		}
		for _, c := range row.Conditions {
			if c.Type == types.StateCordon && c.Status == types.ConditionFalse {
				return c.Message
			}
		}
	}
	return ""
}

func auditTable(operations []types.Operation, now time.Time, times bool) terminal.Table {
	when := terminal.Column{Title: "AGE"}
	if times {
		when.Title = "TIME"
	}
	t := terminal.Table{Columns: []terminal.Column{
		when,
		{Title: "OP"},
		{Title: "TARGET", Fair: 16, Middle: "~"},
		{Title: "BY", Keep: 3},
		{Title: "COMPONENT", Keep: 2},
		{Title: "OUTCOME"},
		{Title: "TOOK", Keep: 1, Right: true},
		{Title: "WHY/ERROR"},
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
		return terminal.ShortAge(o.At, now)
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

func (a *auditing) view(l auditLook) terminal.View {
	var names []string
	for _, o := range l.Operations {
		names = append(names, o.ID)
	}
	return terminal.View{Data: documentOf(l), Names: names, Err: l.err, Draw: func(s *terminal.Screen) {
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

func (l auditLook) nothing() []string {
	line := "No operation was recorded."
	if l.all > 0 {
		line = "No operation matches, of " + phrase.Counted(l.all, "operation") + "."
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
		last.now = device.Now(a.paths.Root)
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
				v.Events = append(v.Events, terminal.Event{Text: auditLine(o), Data: operation(o)})
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
