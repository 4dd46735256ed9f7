package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/operate/joinplan"
)

// newLeavePlanCommand says what a leave would wait for, and changes nothing.
func newLeavePlanCommand(o *options) *cobra.Command {
	var out outputs
	var check, without bool
	c := &cobra.Command{
		Use:   "plan [--check] [--without-cluster]",
		Short: "Show what a leave would wait for and what would be lost; changes nothing",
		Long: "Show what this node's leave would wait for, in order; which data and applications are here alone; what would be left\n" +
			"of etcd, and what stays behind. It changes nothing: it reads, and tries each eviction as a dry run.\n\n" + planExitCodes,
		Args: words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.parse(); err != nil {
				return err
			}
			return out.show(c.Context(), terminalOf(c.OutOrStdout()), time.Second, func(ctx context.Context) shown {
				if without {
					return planWithout(ctx, o.paths(), check)
				}
				return planLeave(ctx, o.paths(), check)
			})
		},
	}
	out.flag(c)
	c.Flags().BoolVar(&check, "check", false, "exit with code 3 where something blocks")
	c.Flags().BoolVar(&without, "without-cluster", false, "of a leave without the cluster, by what this node can tell by itself")
	return c
}

func planLeave(ctx context.Context, p paths, check bool) shown {
	facts := lookAtLeave(ctx, p, time.Now().UTC())
	if ctx.Err() != nil {
		return shown{lines: func(int, bool) []string { return nil }, err: exitWith(exitUsage, errors.New("interrupted"))}
	}
	plan := joinplan.Leave(facts)
	s := shown{data: plan, lines: func(width int, colour bool) []string { return leaveLines(plan, width, colour) }}
	switch {
	case check && plan.Verdict == joinplan.Blocks:
		s.err = exitWith(exitPlanBlocks, errors.New("something blocks the leave"))
	case facts.Nodes == nil:
		s.err = exitWith(exitNotPublished, errors.New("the plan is made of files alone: "+clean(facts.NoNodes)))
	}
	return s
}

// leaveLines is the plan as a screen.
func leaveLines(p joinplan.LeavePlan, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	of := "this node"
	if p.Node != "" {
		of = clean(p.Node)
	}
	s.put(0, bold, "Plan of a leave of "+of+", nothing is changed")
	s.field("verdict", verdictLook(p.Verdict), clean(p.Summary))
	s.field("asked at", plain, p.Made.UTC().Format("2006-01-02 15:04:05Z"))
	for _, unknown := range p.Unknown {
		s.field("unknown", red, clean(unknown))
	}
	for _, part := range []struct {
		title string
		found []joinplan.Finding
	}{{"What it would wait for, in order", p.Steps}, {"Volumes with data here", p.Volumes}, {"Applications that count on this node", p.Apps}} {
		if len(part.found) == 0 {
			continue
		}
		s.gap()
		s.put(0, bold, part.title)
		putFindings(s, part.found[:min(len(part.found), shownItems)])
		putMore(s, len(part.found), 0)
	}
	if p.GiveUp != nil {
		putGiveUp(s, *p.GiveUp)
	}
	s.gap()
	s.put(0, bold, "What stays behind")
	for _, what := range p.Stays {
		s.put(2, plain, clean(what))
	}
	return s.lines
}

// putGiveUp shows what has to be given up, and how.
func putGiveUp(s *screen, g joinplan.GiveUp) {
	s.gap()
	s.put(0, bold, "What would have to be given up")
	for _, line := range giveUpLines(g) {
		s.put(2, red, line)
	}
	if !g.Given.IsZero() {
		s.put(2, plain, "It is given up, by consent of "+g.Given.UTC().Format("2006-01-02 15:04:05Z")+". Take it back: zedkube leave --cancel")
		return
	}
	s.put(2, plain, "At a terminal: zedkube leave --give-up-data")
	s.put(2, plain, "In a script:   zedkube leave --give-up-data --digest "+g.Digest)
}
