package main

import "github.com/spf13/cobra"

// newDoctorCommand examines the preconditions of a healthy node.
func newDoctorCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [--only NAME]",
		Short: "Examine what a healthy node needs: verdict, evidence, remedy",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, args []string) error { return nil },
	}
	return c
}
