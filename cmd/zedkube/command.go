package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
)

// The exit codes of the commands (docs/wire.md, "Process").
const (
	exitUsage          = 1
	exitNotPublished   = 2 // or the API server cannot be asked
	exitDrainFailed    = 3
	exitJoinTimeout    = 4
	exitJoinWithdrawn  = 5
	exitDetachRefused  = 3
	exitDetachTimeout  = 4
	exitExportDoubtful = 3
	exitUnknownCommand = 99
)

// newCommand is the command line of a version of the program: without a subcommand
// it runs the agent, as EVE's start script expects. Tests add flags that the program
// does not have.
func newCommand(version string, agent func(context.Context, options) error, more ...func(*cobra.Command, *options)) *cobra.Command {
	o := options{version: version, reports: statusserver.ReportsAuto}
	run := func(c *cobra.Command, _ []string) error { return agent(c.Context(), o) }
	root := newRoot(&o,
		newStatusCommand, newNodesCommand, newAppsCommand, newUpdateStatusCommand, newDrainCommand, newMembersCommand, newLeaveCommand,
		newJoinCommand, newWaitJoinCommand, newVMIDetachCommand, newLogsCommand, newTopCommand, newExportCommand, newK3sCommand, newAuditCommand,
		newTopicsCommand, newDoctorCommand, newPageCommand)
	root.RunE = run
	runCommand := &cobra.Command{Use: "run", Short: "Run the agent (the same as no command)", Args: words(0), RunE: run}
	for _, c := range []*cobra.Command{root, runCommand} {
		c.Flags().Var(&o.page, "page", "what is served on 127.0.0.1:12347: nothing (off), the metrics, or the page too, which asks for a token (on, or another port); default metrics, off with --root")
		c.Flags().BoolVar(&o.onCluster, "page-on-cluster", false, "the same on the cluster address, for those who prove that they know the cluster token")
		c.Flags().Var(&o.reports, "reports", "who gets reports on applications without a proof: nodes without a zedkube of this kind until every node has had one (auto), always or never")
		c.Flags().IntVar(&o.logRecord, "log-record", applogs.DefaultMaxRecord, "bytes of a line of an application's log, as written to stderr, beyond which it is split; at most 263168")
	}
	runCommand.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // the agent makes its root
	for _, add := range more {
		add(root, &o)
	}
	whole := func() *cobra.Command { return newCommand(version, agent) }
	root.AddCommand(runCommand, newBundleCommand(&o, whole), newVersionCommand(version), newCompletionCommand())
	return root
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

// exitWith is err with the exit code that the process ends with for it.
func exitWith(code int, err error) error { return exitError{code, err} }

// Unwrap gives the reason.
func (e exitError) Unwrap() error { return e.error }

// exitCode is what the process ends with.
func exitCode(err error) int {
	var e exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	default:
		return 1
	}
}
