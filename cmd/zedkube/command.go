package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newCommand is the command line: without a subcommand it runs the agent, as
// EVE's start script expects.
func newCommand() *cobra.Command {
	var o options
	run := func(c *cobra.Command, _ []string) error { return runAgent(c.Context(), o) }
	root := &cobra.Command{
		Use:           "zedkube",
		Short:         "The agent between an EVE device and its Kubernetes cluster",
		Args:          noCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          run,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.root, "root", "", "directory that prefixes every path, so that several nodes fit on one machine")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default <root>/run/.kube/k3s/k3s.yaml)")
	root.AddCommand(
		newUpdateStatusCommand(&o),
		&cobra.Command{Use: "run", Short: "Run the agent (the same as no command)", Args: cobra.NoArgs, RunE: run},
		&cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), version)
			return err
		}},
	)
	return root
}
