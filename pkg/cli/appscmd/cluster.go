package appscmd

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// clusterApp is an application as one node tells of it.
type clusterApp struct {
	overview.App
	ToldBy string // name of the node
	row    clusterview.Row
}

// clusterApps are the applications of all nodes, each as the node on which it is scheduled
// tells, or else as any that has it configured. Where two nodes say that it is theirs, both
// are listed.
func clusterApps(v device.ClusterView) []clusterApp {
	all, here := []clusterApp{}, map[string]bool{}
	for _, r := range v.Nodes {
		if r.View == nil {
			continue
		}
		for _, a := range r.View.Apps {
			all = append(all, clusterApp{a, r.Name, r})
			here[a.UUID] = here[a.UUID] || a.Here
		}
	}
	rank := func(a clusterApp) int {
		if a.row.State == clusterview.Answered {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b clusterApp) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID), rank(a)-rank(b))
	})
	shown := map[string]bool{}
	return slices.DeleteFunc(all, func(a clusterApp) bool {
		if here[a.UUID] {
			return !a.Here
		}
		was := shown[a.UUID]
		shown[a.UUID] = true
		return was
	})
}

type clusterAppsView struct {
	ReadAt time.Time
	Items  []clusterApp
	Nodes  []clusterview.Row // without what they tell
}

func viewCluster(v device.ClusterView, only []string, wanted func([]overview.App) []overview.App) terminal.View {
	d := clusterAppsView{ReadAt: v.ReadAt, Items: clusterApps(v)}
	var s terminal.View
	if len(only) > 0 {
		app, err := choose(d.Items, terminal.Named("app", only[0]), strings.EqualFold, func(a clusterApp) (id, display, kube string) { return a.UUID, a.Name, a.KubeName })
		d.Items = slices.DeleteFunc(d.Items, func(a clusterApp) bool { return a.UUID != app.UUID })
		s.Err = err
	} else {
		d.Items = slices.DeleteFunc(d.Items, func(a clusterApp) bool { return len(wanted([]overview.App{a.App})) == 0 })
	}
	for _, r := range v.Nodes {
		r.View = nil
		d.Nodes = append(d.Nodes, r)
	}
	s.Data, s.Steady = d, []any{d.Nodes, d.Items}
	s.Draw = func(s *terminal.Screen) {
		if len(d.Items) > 0 {
			clusterAppsTable(d).Draw(s)
		} else if !slices.ContainsFunc(v.Nodes, func(r clusterview.Row) bool { return r.State == clusterview.Asking }) {
			s.Put(0, terminal.Plain, "no node that has answered has applications")
		}
		device.PutUnanswered(s, v)
	}
	for _, a := range d.Items {
		s.Names = append(s.Names, a.UUID)
		s.Rows = append(s.Rows, terminal.Row{Key: terminal.Clean(a.Name) + " " + a.UUID + " " + terminal.Clean(a.ToldBy), Text: device.Was(a.row, AppState(a.App)) + " on " + terminal.OrNone(terminal.Clean(a.Node))})
	}
	return s
}

func clusterAppsTable(d clusterAppsView) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "APP"},
		{Title: "STATE"},
		{Title: "FOR", Keep: 7, Right: true},
		{Title: "NODE", Keep: 9},
		{Title: "REPAIR", Keep: 5},
		{Title: "TOLD BY", Keep: 6},
		{Title: "ANSWERED", Keep: 8},
		{Title: "WHY", Keep: 4},
	}}
	for _, a := range d.Items {
		whole := appRow(a.App, a.row.Ago(d.ReadAt)) // name, state, for, node, designated, restarts, repair, console, ports, why
		whole[1].Text = device.Was(a.row, whole[1].Text)
		answered := terminal.ShortAge(a.row.HeardAt, d.ReadAt) + " ago"
		t.Rows = append(t.Rows, []terminal.Cell{whole[0], whole[1], whole[2], whole[3], whole[6], {Text: terminal.Clean(a.ToldBy)}, {Text: answered}, whole[9]})
	}
	return t
}
