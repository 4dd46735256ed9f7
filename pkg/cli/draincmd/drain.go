// Package draincmd is zedkube drain: its state, a plan, and what an operator may ask
// for.
package draincmd

import (
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

const exitCodes = `Exit codes:
  0   done; with "status --watch": the drain is complete
  1   wrong usage, interrupted, or it failed
  2   it could not be written, or the API server cannot be asked
  3   "status --watch": the drain failed, or was withdrawn
  99  unknown command`

// NewDrainCommand is the parent of what an operator may say about drains.
func NewDrainCommand(o *device.Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "drain",
		Short: "Drain this node, show its progress and what blocks it",
		Long:  "Drain this node, show its progress and what blocks it.\ndocs/operations.md explains every state and every remedy.\n\n" + exitCodes,
		Args:  terminal.NoCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newDrainStatusCommand(o), newDrainPlanCommand(o), newDrainRequestCommand(o), newDrainCancelCommand(o),
		newKeepCordonCommand(o), newUnlockCommand(o),
	)
	return c
}
