// Package appscmd is zedkube apps, logs and vmiDetach.
package appscmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// NewAppsCommand shows the applications, or all that is known of one.
func NewAppsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	cluster := false
	var node string
	var problem bool
	c := out.WatchFlag(terminal.List[overview.App](&out, &cobra.Command{
		Use:   "apps [APP] [--cluster] [--node NODE] [--problem] [--watch]",
		Short: "Show the applications: where and since when each runs, its repairs, console and ports",
		Long: "Show the applications of this device, or everything known about APP: its UUID or a prefix of it, its name, or its\n" +
			"name in Kubernetes. It reads files only. Pods are known on the node that reports for the cluster.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			wanted := func(list []overview.App) []overview.App {
				return terminal.Selected(&out, slices.DeleteFunc(slices.Clone(list), func(a overview.App) bool {
					return node != "" && a.Node != terminal.Named("node", node) || problem && !hasProblem(a)
				}))
			}
			if cluster {
				return device.ShowCluster(c, o.Paths(), &out, "", func(v device.ClusterView) terminal.View { return viewCluster(v, args, wanted) })
			}
			if len(args) > 0 { // a name that means nothing is said once, and ends it
				if _, err := chosenApp(overview.Read(o.Root, time.Now()), args[0]); err != nil {
					return err
				}
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(context.Context) terminal.View {
				seen := overview.Read(o.Root, time.Now())
				if len(args) == 0 {
					seen.Apps.List = wanted(seen.Apps.List)
				}
				return viewApps(seen, args)
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(appWords(o, false)),
	}, "app", AppsTable(overview.Overview{}, true)))
	device.ClusterFlag(c, &out, &cluster, "show applications", clusterAppsTable(clusterAppsView{}))
	c.Flags().StringVar(&node, "node", "", "only the applications that run on this node")
	c.Flags().BoolVar(&problem, "problem", false, "only those that do not run though they should, or are being repaired")
	terminal.CompletedFrom(c, "node", device.NodeNames(o))
	return c
}

// hasProblem reports an application that is not as it should be.
func hasProblem(a overview.App) bool {
	state := AppState(a)
	return state != "Running" && state != "Off" || a.Repair != nil && a.Repair.Phase != types.RepairWell
}

// appWords gives the names of the applications to the shell, each with its UUID, or the reverse.
func appWords(o *device.Options, uuids bool) func(context.Context) []string {
	return func(context.Context) (words []string) {
		for _, a := range overview.Read(o.Root, time.Now()).Apps.List {
			word, explained := terminal.Clean(a.Name), a.UUID
			if uuids {
				word, explained = explained, word
			}
			words = append(words, cobra.CompletionWithDesc(word, explained))
		}
		return words
	}
}

func chosenApp(o overview.Overview, name string) (overview.App, error) {
	name = terminal.Named("app", name)
	return choose(o.Apps.List, name, strings.EqualFold, func(a overview.App) (id, display, kube string) { return a.UUID, a.Name, a.KubeName })
}

// choose finds the one of apps with this UUID, beginning of a UUID, name (as same
// compares it) or name in Kubernetes.
func choose[T any](apps []T, name string, same func(a, b string) bool, names func(T) (id, display, kube string)) (found T, err error) {
	var none T
	n := 0
	list := "; this device knows none"
	for i, a := range apps {
		id, display, kube := names(a)
		if i == 0 {
			list = "; this device knows"
		}
		list += fmt.Sprintf("\n  %s  %s", id, terminal.Clean(display))
		switch {
		case strings.EqualFold(name, id):
			return a, nil
		case name != "" && strings.HasPrefix(id, strings.ToLower(name)), same(name, display), name == kube:
			found = a
			n++
		}
	}
	switch n {
	case 1:
		return found, nil
	case 0:
		return none, fmt.Errorf("no application is called %q%s", terminal.Clean(name), list)
	}
	return none, fmt.Errorf("%d applications are called %q%s", n, terminal.Clean(name), list)
}

type appsView struct {
	ReadAt time.Time
	Items  []overview.App
	Apps   overview.Apps // what Items was before
}

func viewApps(o overview.Overview, only []string) terminal.View {
	whole := len(only) > 0
	if whole {
		app, err := chosenApp(o, only[0])
		if err != nil {
			return terminal.View{Data: appsView{ReadAt: o.ReadAt}, Err: err, Ended: true}
		}
		o.Apps.List = []overview.App{app}
	}
	steady := overview.Steady(o)
	s := terminal.View{
		Data: appsView{o.ReadAt, o.Apps.List, o.Apps}, Steady: steady.Apps,
		Draw: func(s *terminal.Screen) { putApps(s, o, whole) },
	}
	for _, a := range o.Apps.List {
		text := AppState(a) + " on " + terminal.OrNone(terminal.Clean(a.Node))
		if a.Repair != nil && a.Repair.Phase != types.RepairWell {
			text += "; " + terminal.Clean(string(a.Repair.Phase)+" "+string(a.Repair.Act)) + ": " + terminal.Clean(a.Repair.Reason)
		}
		s.Names = append(s.Names, a.UUID)
		s.Rows = append(s.Rows, terminal.Row{Key: terminal.Clean(a.Name) + " " + a.UUID, Text: text})
	}
	return s
}

// putApps are the applications, or all that is known of the only one.
func putApps(s *terminal.Screen, o overview.Overview, whole bool) {
	if !o.Agent.Runs {
		s.Put(0, terminal.Red, "The agent is not running: "+terminal.Clean(o.Agent.Why)+". This is what it last published.")
	}
	for _, t := range o.Unreadable {
		if strings.Contains(t.File, "App") {
			s.Put(0, terminal.Yellow, terminal.Clean(t.Why))
		}
	}
	switch {
	case len(o.Apps.List) == 0:
		s.Put(0, terminal.Plain, "no applications found")
	case whole:
		putApp(s, o.Apps.List[0], o.Report.Info.At, o.ReadAt)
	default:
		AppsTable(o, true).Draw(s)
	}
}

// AppsTable is a row for each application; with why each does not run.
func AppsTable(o overview.Overview, why bool) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "APP", Keep: 0, Right: false},
		{Title: "STATE", Keep: 0, Right: false},
		{Title: "FOR", Keep: 7, Right: true},
		{Title: "NODE", Keep: 8, Right: false},
		{Title: "DESIGNATED", Keep: 3, Right: false},
		{Title: "RESTARTS", Keep: 4, Right: true},
		{Title: "REPAIR", Keep: 5, Right: false},
		{Title: "CONSOLE", Keep: 2, Right: false},
		{Title: "PORTS", Keep: 1, Right: false},
		{Title: "WHY", Keep: 9, Right: false},
	}}
	for _, a := range o.Apps.List {
		t.Rows = append(t.Rows, appRow(a, o.ReadAt))
	}
	if !why {
		t.Columns = t.Columns[:len(t.Columns)-1]
	}
	return t
}

func appRow(a overview.App, now time.Time) []terminal.Cell {
	restarts, repair, reason := terminal.Cell{}, terminal.Cell{}, ""
	if a.Restarts != nil {
		restarts.Text = fmt.Sprint(*a.Restarts)
	}
	if r := a.Repair; r != nil && r.Phase != types.RepairWell {
		repair = terminal.Cell{Text: strings.TrimSpace(terminal.Clean(string(r.Phase) + " " + string(r.Act))), Look: repairLook(r.Phase)}
		reason = terminal.Clean(r.Reason)
	}
	return []terminal.Cell{
		{Text: terminal.Clean(a.Name)},
		{Text: AppState(a), Look: appLook(a)},
		{Text: terminal.ShortAge(a.Since, now)},
		{Text: terminal.Clean(a.Node)},
		{Text: designated(a)},
		restarts,
		repair,
		{Text: consoleText(a)},
		{Text: terminal.Clean(strings.Join(a.Ports, ","))},
		{Text: reason},
	}
}

// AppState is the state of an application in a word.
func AppState(a overview.App) string {
	switch {
	case !a.Activate && a.State != types.AppKubeRunning.String():
		return "Off"
	case a.State == types.AppKubeRunning.String():
		return "Running"
	case a.State == types.AppKubeNotRunning.String():
		return "NotRunning"
	}
	return cmp.Or(terminal.Clean(a.State), "Unknown")
}

func appLook(a overview.App) terminal.Style {
	switch AppState(a) {
	case "Running":
		return terminal.Green
	case "Off":
		return terminal.Plain
	case "NotRunning", "NotInCluster":
		return terminal.Red
	}
	return terminal.Yellow
}

func repairLook(p types.RepairPhase) terminal.Style {
	if slices.Contains([]types.RepairPhase{types.RepairRefused, types.RepairGaveUp}, p) {
		return terminal.Red
	}
	return terminal.Yellow
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
	for _, p := range a.Pods[:min(len(a.Pods), terminal.MostItems)] {
		text := terminal.Clean(p.Name) + " " + p.Status.String() + " on " + terminal.OrNone(terminal.Clean(p.NodeName))
		if p.Reason != "" {
			text += ", " + terminal.Clean(p.Reason)
		}
		if p.RestartCount > 0 {
			text += fmt.Sprintf(", %s, the last %s", phrase.Counted(int(p.RestartCount), "restart"), terminal.Age(p.RestartTimestamp.Time(), now))
		}
		if !report.IsZero() {
			text += "; reported " + terminal.Age(report, now)
		}
		s.Field("pod", terminal.Plain, text)
	}
	for _, v := range a.VMIs[:min(len(a.VMIs), terminal.MostItems)] {
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
		s.Field("lost node", terminal.Yellow, terminal.Clean(r.Lost))
	}
	for _, e := range r.Evidence[:min(len(r.Evidence), terminal.MostItems)] {
		s.Field("seen", terminal.Plain, terminal.Clean(e))
	}
	for _, step := range r.Steps[:min(len(r.Steps), terminal.MostItems)] {
		text := terminal.Stamp(step.At, now) + " " + terminal.Clean(string(step.Act)) + ": " + terminal.Clean(step.Step)
		if step.Failed != "" {
			text += " FAILED: " + terminal.Clean(step.Failed)
		}
		s.Field("step", terminal.Plain, text)
	}
}
