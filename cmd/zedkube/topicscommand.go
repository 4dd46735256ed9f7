package main

import "github.com/spf13/cobra"

// newTopicsCommand shows any topic of any agent.
func newTopicsCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "topics [AGENT/TOPIC[/KEY]]",
		Short: "Show what the agents of this device tell one another",
		Args:  cobra.MaximumNArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return nil },
	}
	return c
}
