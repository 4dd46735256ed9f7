package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// exitFound is the exit code of a check that has found a problem.
const exitFound = 3

// showExitCodes are those of the commands that show something.
const showExitCodes = `Exit codes:
  0   it was shown
  1   wrong usage, this is no device, or it could not be printed
  2   there is nothing to show
  3   "status --check": something is wrong
  99  unknown command`

// newStatusCommand shows what a device's files say, what is wrong first.
func newStatusCommand(o *options) *cobra.Command {
	var out outputs
	var check bool
	c := &cobra.Command{
		Use:   "status [--check] [--watch]",
		Short: "Show what is wrong and what to do about it, and how node, cluster, drain, applications and storage are",
		Long: "Show what is wrong with this node, since when and what to do about it; then how node, cluster, drain, applications\n" +
			"and storage are, each with the age of what is known. It reads files; neither agent nor API server need to run. An agent\n" +
			"that runs is asked for the nodes where no file has them. With --root it reads a copy of a device's files.\n\n" + showExitCodes,
		Args: words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cmp.Or(out.parse(), checkDevice(*o)); err != nil {
				return err
			}
			a := &nodesAsked{paths: o.paths()}
			defer a.close()
			return out.show(c.Context(), terminalOf(c.OutOrStdout()), watchEvery, func(ctx context.Context) shown {
				return shownStatus(a.overview(ctx, time.Now()), check)
			})
		},
	}
	out.flag(c)
	out.watchFlag(c)
	c.Flags().BoolVar(&check, "check", false, "end with exit code 3 where something is wrong")
	return c
}

// checkDevice refuses a root that is none.
func checkDevice(o options) error {
	if _, err := os.Stat(o.paths().runDir()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNoDevice, err)
	}
	return nil
}

// shownStatus is an overview as status shows it.
func shownStatus(o overview.Overview, check bool) shown {
	s := shown{
		data: o, steady: overview.Steady(o), facts: statusFacts(o),
		lines: func(width int, colour bool) []string { return statusLines(o, width, colour) },
	}
	if n := len(o.Problems); check && n > 0 {
		s.err = exitWith(exitFound, errors.New(problemsText(n)))
	}
	return s
}

func problemsText(n int) string {
	switch n {
	case 0:
		return "nothing is wrong, as far as this node knows"
	case 1:
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", n)
}

// statusFacts are the lines of status --watch in a pipe: problems as they come
// and go, and the state of what changes by nature.
func statusFacts(o overview.Overview) (facts []fact) {
	add := func(key, text string) { facts = append(facts, fact{key, text}) }
	for _, p := range o.Problems {
		add("problem "+clean(p.Name+" "+p.About), clean(p.What))
	}
	if len(o.Problems) == 0 {
		add("problems", "none")
	}
	if p := o.Drain.Progress; p != nil {
		_, text := phaseText(*p)
		add("drain", text)
	}
	if o.Lease.Known() {
		add("leader", orNone(clean(o.Lease.Leader)))
	}
	for _, n := range o.Nodes.List {
		add("node "+clean(n.Name), nodeState(n))
	}
	for _, a := range o.Apps.List {
		add("app "+clean(a.Name), appState(a)+" on "+orNone(clean(a.Node)))
	}
	return facts
}

// orNone is a text, or the sign that there is none.
func orNone(text string) string { return cmp.Or(text, unknown) }
