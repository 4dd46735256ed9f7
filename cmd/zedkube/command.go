package main

import (
	"context"
	"errors"
	"fmt"
	"os"

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
	root := &cobra.Command{
		Use:   "zedkube",
		Short: "The agent between an EVE device and its Kubernetes cluster",
		Long: "The agent between an EVE device and its Kubernetes cluster. Without a command it runs the agent.\n" +
			"What is wrong on this device and what to do about it: zedkube status",
		Args:          noCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          run,
	}
	helpful(root)
	flags := root.PersistentFlags()
	flags.StringVar(&o.root, "root", "", "directory that prefixes every path: of a copy of a device's files, or of one of several nodes on one machine")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default <root>/run/.kube/k3s/k3s.yaml)")
	runCommand := &cobra.Command{Use: "run", Short: "Run the agent (the same as no command)", Args: words(0), RunE: run}
	for _, c := range []*cobra.Command{root, runCommand} {
		c.Flags().Var(&o.page, "page", "what is served on 127.0.0.1:12347: nothing (off), the metrics, or the page too, which asks for a token (on, or another port); default metrics, off with --root")
		c.Flags().BoolVar(&o.onCluster, "page-on-cluster", false, "the same on the cluster address, for those who prove that they know the cluster token")
		c.Flags().Var(&o.reports, "reports", "who gets reports on applications without a proof: nodes without a zedkube of this kind until every node has had one (auto), always or never")
		c.Flags().IntVar(&o.logRecord, "log-record", applogs.DefaultMaxRecord, "bytes of a line of an application's log, as written to stderr, beyond which it is split; at most 263168")
	}
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if c == root || c == runCommand || c.Hidden {
			return nil // the agent makes it
		}
		return checkRoot(o.root)
	}
	for _, add := range more {
		add(root, &o)
	}
	root.AddCommand(
		newStatusCommand(&o), newNodesCommand(&o), newAppsCommand(&o),
		newUpdateStatusCommand(&o), newDrainCommand(&o), newMembersCommand(&o), newLeaveCommand(&o), newJoinCommand(&o), newWaitJoinCommand(&o), newVMIDetachCommand(&o), newLogsCommand(&o), newTopCommand(&o), newExportCommand(&o),
		newK3sCommand(&o), newAuditCommand(&o), newTopicsCommand(&o), newDoctorCommand(&o), newBundleCommand(&o, func() *cobra.Command { return newCommand(version, agent) }), newPageCommand(&o),
		runCommand,
		newVersionCommand(version), newCompletionCommand(),
	)
	return root
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

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

// checkRoot refuses a directory that is none.
func checkRoot(root string) error {
	if root == "" {
		return nil
	}
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return exitError{exitUsage, fmt.Errorf("%w: %w", errNoDevice, err)}
	case !info.IsDir():
		return exitError{exitUsage, fmt.Errorf("%w: %s is no directory", errNoDevice, root)}
	}
	return nil
}
