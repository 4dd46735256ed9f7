// Package statuscmd is what is wrong here and what to do about it: zedkube status and
// doctor.
package statuscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// NewStatusCommand shows what a device's files say, what is wrong first.
func NewStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var check bool
	c := &cobra.Command{
		Use:   "status [--check] [--watch]",
		Short: "Show problems and what to do about them, and the state of node, cluster, drain, applications and storage",
		Long: "Show problems of this node, since when and what to do about them; then the state of node, cluster, drain, applications\n" +
			"and storage, each with its age. It reads files; neither the agent nor the API server has to run. An agent\n" +
			"that is running is asked for the nodes if no file has them. With --root it reads a copy of a device's files.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cmp.Or(out.Parse(), device.CheckDevice(*o)); err != nil {
				return err
			}
			a := &device.NodesAsked{Paths: o.Paths()}
			defer a.Close()
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(ctx context.Context) terminal.View {
				return viewStatus(a.Overview(ctx, time.Now()), check)
			})
		},
	}
	out.Flag(c)
	out.WatchFlag(c)
	c.Flags().BoolVar(&check, "check", false, "exit with code 3 if there is a problem")
	return c
}

// viewStatus is an overview as status shows it.
func viewStatus(o overview.Overview, check bool) terminal.View {
	s := terminal.View{
		Data: o, Steady: overview.Steady(o), Rows: statusRows(o),
		Draw: func(s *terminal.Screen) { putStatus(s, o) },
	}
	if n := len(o.Problems); check && n > 0 {
		s.Err = terminal.ExitWith(terminal.ExitFound, errors.New(problemsText(n)))
	}
	return s
}

func problemsText(n int) string {
	switch n {
	case 0:
		return "no problem, as far as this node knows"
	case 1:
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", n)
}

// statusRows are the lines of status --watch in a pipe: problems as they come
// and go, and the state of what changes by nature.
func statusRows(o overview.Overview) (rows []terminal.Row) {
	add := func(key, text string) { rows = append(rows, terminal.Row{Key: key, Text: text}) }
	for _, p := range o.Problems {
		add("problem "+terminal.Clean(p.Rule+" "+p.Subject), terminal.Clean(p.Evidence))
	}
	if len(o.Problems) == 0 {
		add("problems", "none")
	}
	if p := o.Drain.Progress; p != nil {
		_, text := draincmd.PhaseText(*p)
		add("drain", text)
	}
	if o.Lease.Known() {
		add("leader", terminal.OrNone(terminal.Clean(o.Lease.Leader)))
	}
	for _, n := range o.Nodes.List {
		add("node "+terminal.Clean(n.Name), nodescmd.NodeState(n))
	}
	for _, a := range o.Apps.List {
		add("app "+terminal.Clean(a.Name), appscmd.AppState(a)+" on "+terminal.OrNone(terminal.Clean(a.Node)))
	}
	return rows
}
