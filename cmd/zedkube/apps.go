package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// newAppsCommand shows the applications, or all that is known of one.
func newAppsCommand(o *options) *cobra.Command {
	var out outputs
	c := &cobra.Command{
		Use:   "apps [APP] [--watch]",
		Short: "Show the applications: where each runs, since when, what is repaired, its console and ports",
		Long: "Show the applications of this device, or all that is known of APP: its UUID or the beginning of it, its name, or its\n" +
			"name in Kubernetes. It reads files only. Restarts and pods are known on the node that reports for the cluster.\n\n" + showExitCodes,
		Args: words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(out.parse(), checkDevice(*o)); err != nil {
				return err
			}
			if len(args) > 0 { // a name that means nothing is said once, and ends it
				if _, err := chosenApp(overview.Read(o.root, time.Now()), args[0]); err != nil {
					return err
				}
			}
			return out.show(c.Context(), terminalOf(c.OutOrStdout()), watchEvery, func(context.Context) shown {
				return shownApps(overview.Read(o.root, time.Now()), args)
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeApps(o, args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	out.flag(c)
	out.watchFlag(c)
	return c
}

// completeApps are the names of the applications, each with its UUID.
func completeApps(o *options, args []string) (names []string) {
	if len(args) > 0 {
		return nil
	}
	for _, a := range overview.Read(o.root, time.Now()).Apps.List {
		names = append(names, cobra.CompletionWithDesc(clean(a.Name), a.UUID))
	}
	return names
}

// completeAppUUIDs are the applications' UUIDs, each with its name.
func completeAppUUIDs(o *options) (ids []string) {
	for _, a := range overview.Read(o.root, time.Now()).Apps.List {
		ids = append(ids, cobra.CompletionWithDesc(a.UUID, clean(a.Name)))
	}
	return ids
}

// chosenApp finds the one application that is called so.
func chosenApp(o overview.Overview, name string) (overview.App, error) {
	var found []overview.App
	var known []string
	for _, a := range o.Apps.List {
		known = append(known, fmt.Sprintf("  %s  %s", a.UUID, clean(a.Name)))
		switch {
		case strings.EqualFold(name, a.UUID):
			return a, nil
		case name != "" && strings.HasPrefix(a.UUID, strings.ToLower(name)), strings.EqualFold(name, a.Name), name == a.KubeName:
			found = append(found, a)
		}
	}
	list := "; this device knows\n" + strings.Join(known, "\n")
	if len(known) == 0 {
		list = "; this device knows none"
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return overview.App{}, fmt.Errorf("no application is called %q%s", clean(name), list)
	}
	return overview.App{}, fmt.Errorf("%d applications are called %q%s", len(found), clean(name), list)
}

// appsView is what apps shows.
type appsView struct {
	ReadAt time.Time
	Apps   overview.Apps
}

func shownApps(o overview.Overview, only []string) shown {
	whole := len(only) > 0
	if whole {
		app, err := chosenApp(o, only[0])
		if err != nil {
			return shown{data: appsView{ReadAt: o.ReadAt}, lines: func(int, bool) []string { return nil }, err: err, ended: true}
		}
		o.Apps.List = []overview.App{app}
	}
	steady := overview.Steady(o)
	s := shown{
		data: appsView{o.ReadAt, o.Apps}, steady: steady.Apps,
		lines: func(width int, colour bool) []string { return appsLines(o, whole, width, colour) },
	}
	for _, a := range o.Apps.List {
		text := appState(a) + " on " + orNone(clean(a.Node))
		if a.Repair != nil && a.Repair.Phase != types.RepairWell {
			text += "; " + clean(string(a.Repair.Phase)+" "+string(a.Repair.Act)) + ": " + clean(a.Repair.Reason)
		}
		s.facts = append(s.facts, fact{clean(a.Name) + " " + a.UUID, text})
	}
	return s
}

func appsLines(o overview.Overview, whole bool, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	if !o.Agent.Runs {
		s.put(0, red, "The agent does not run: "+clean(o.Agent.Why)+". This is what it last said.")
	}
	for _, t := range o.Unreadable {
		if strings.Contains(t.File, "App") {
			s.put(0, yellow, clean(t.Why))
		}
	}
	switch {
	case len(o.Apps.List) == 0:
		s.put(0, plain, "this device has no applications")
	case whole:
		putApp(s, o.Apps.List[0], o.Report.Info.At, o.ReadAt)
	default:
		s.lines = append(s.lines, appsTable(o, true).lines(width, colour)...)
	}
	return s.lines
}

// appsTable is a row for each application; with why each does not run.
func appsTable(o overview.Overview, why bool) table {
	t := table{columns: []column{
		{"APP", 0, false},
		{"STATE", 0, false},
		{"FOR", 7, true},
		{"NODE", 8, false},
		{"DESIGNATED", 3, false},
		{"RESTARTS", 4, true},
		{"REPAIR", 5, false},
		{"CONSOLE", 2, false},
		{"PORTS", 1, false},
		{"WHY", 9, false},
	}}
	for _, a := range o.Apps.List {
		t.rows = append(t.rows, appRow(a, o.ReadAt))
	}
	if !why {
		t.columns = t.columns[:len(t.columns)-1]
	}
	return t
}

func appRow(a overview.App, now time.Time) []cell {
	restarts, repair, reason := cell{}, cell{}, ""
	if a.Restarts != nil {
		restarts.text = fmt.Sprint(*a.Restarts)
	}
	if r := a.Repair; r != nil && r.Phase != types.RepairWell {
		repair = cell{strings.TrimSpace(clean(string(r.Phase) + " " + string(r.Act))), repairLook(r.Phase)}
		reason = clean(r.Reason)
	}
	return []cell{
		{text: clean(a.Name)},
		{appState(a), appLook(a)},
		{text: shortAge(a.Since, now)},
		{text: clean(a.Node)},
		{text: designated(a)},
		restarts,
		repair,
		{text: consoleText(a)},
		{text: clean(strings.Join(a.Ports, ","))},
		{text: reason},
	}
}

// appState is the state of an application in a word.
func appState(a overview.App) string {
	switch {
	case !a.Activate && a.State != types.AppKubeRunning.String():
		return "Off"
	case a.State == types.AppKubeRunning.String():
		return "Running"
	case a.State == types.AppKubeNotRunning.String():
		return "NotRunning"
	}
	return cmp.Or(clean(a.State), "Unknown")
}

func appLook(a overview.App) style {
	switch appState(a) {
	case "Running":
		return green
	case "Off":
		return plain
	case "NotRunning", "NotInCluster":
		return red
	}
	return yellow
}

func repairLook(p types.RepairPhase) style {
	if slices.Contains([]types.RepairPhase{types.RepairRefused, types.RepairGaveUp}, p) {
		return red
	}
	return yellow
}

// designated says whether this is the application's designated node: of
// another one only its own device knows.
func designated(a overview.App) string {
	where := "elsewhere"
	if a.Designated {
		where = "here"
	}
	if a.Affinity == types.AffinityRequired.String() {
		where += ", tied"
	}
	return where
}

func consoleText(a overview.App) string {
	switch {
	case a.Console == nil:
		return ""
	case a.Console.Open:
		return fmt.Sprintf("open %d", a.Console.VNCPort)
	}
	return "closed"
}
