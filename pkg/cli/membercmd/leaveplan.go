package membercmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
)

// newLeavePlanCommand says what a leave would wait for, and changes nothing.
func newLeavePlanCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var check, without bool
	c := &cobra.Command{
		Use:   "plan [--check] [--without-cluster]",
		Short: "Show what a leave would wait for and what would be lost; changes nothing",
		Long: "Show what this node's leave would wait for, in order; which data and applications are here alone; what would be left\n" +
			"of etcd, and what stays behind. It changes nothing: it only reads, and tries each eviction as a dry run.\n\n" + plan.ExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Parse(); err != nil {
				return err
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), time.Second, func(ctx context.Context) terminal.View {
				if without {
					return planWithout(ctx, o.Paths(), check)
				}
				return planLeave(ctx, o.Paths(), check)
			})
		},
	}
	out.Flag(c)
	c.Flags().BoolVar(&check, "check", false, "exit with code 3 where something blocks")
	c.Flags().BoolVar(&without, "without-cluster", false, "of a leave without the cluster, by what this node can tell by itself")
	return c
}

func planLeave(ctx context.Context, paths device.Paths, check bool) terminal.View {
	facts := lookAtLeave(ctx, paths, time.Now().UTC())
	if ctx.Err() != nil {
		return terminal.View{Err: terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))}
	}
	p := joinplan.Leave(facts)
	s := terminal.View{Data: p, Draw: func(s *terminal.Screen) { putLeavePlan(s, p) }}
	switch {
	case check && p.Verdict == joinplan.Blocks:
		s.Err = terminal.ExitWith(plan.ExitBlocks, errors.New("something blocks the leave"))
	case facts.Nodes == nil:
		s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("the plan is made of files alone: "+terminal.Clean(facts.NoNodes)))
	}
	return s
}

func putLeavePlan(s *terminal.Screen, p joinplan.LeavePlan) {
	of := "this node"
	if p.Node != "" {
		of = terminal.Clean(p.Node)
	}
	s.Put(0, terminal.Bold, "Plan of a leave of "+of+", nothing is changed")
	s.Field("verdict", plan.VerdictLook(p.Verdict), terminal.Clean(p.Summary))
	s.Field("asked at", terminal.Plain, terminal.Timestamp(p.Made))
	for _, unknown := range p.Unknown {
		s.Field("unknown", terminal.Red, terminal.Clean(unknown))
	}
	for _, part := range []struct {
		title string
		found []joinplan.Finding
	}{{"Steps that it would wait for, in order", p.Steps}, {"Volumes with data here", p.Volumes}, {"Applications that depend on this node", p.Apps}} {
		if len(part.found) == 0 {
			continue
		}
		s.Gap()
		s.Put(0, terminal.Bold, part.title)
		terminal.PutList(s, part.found, 0, func(f joinplan.Finding) { plan.PutFinding(s, f) })
	}
	if p.GiveUp != nil {
		putGiveUp(s, *p.GiveUp)
	}
	s.Gap()
	s.Put(0, terminal.Bold, "What remains on this device and in the cluster")
	for _, what := range p.Stays {
		s.Put(2, terminal.Plain, terminal.Clean(what))
	}
}

// putGiveUp shows what has to be given up, and how.
func putGiveUp(s *terminal.Screen, g joinplan.GiveUp) {
	s.Gap()
	s.Put(0, terminal.Bold, "What would have to be given up")
	for _, line := range giveUpLines(g) {
		s.Put(2, terminal.Red, line)
	}
	if !g.Given.IsZero() {
		s.Put(2, terminal.Plain, "It is given up, by consent of "+terminal.Timestamp(g.Given)+". To withdraw it: zedkube leave --cancel")
		return
	}
	s.Put(2, terminal.Plain, "At a terminal: zedkube leave --give-up-data")
	s.Put(2, terminal.Plain, "In a script:   zedkube leave --give-up-data --digest "+g.Digest)
}
