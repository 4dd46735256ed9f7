// Package membercmd is who belongs to the cluster, and which k3s it runs: zedkube
// leave, members and k3s.
package membercmd

import (
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// membersExitCodes are those of the commands below "zedkube members".
const membersExitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or it failed
  2   it could not be written, or the API server cannot be asked
  3   refused: the last line gives the reason
  99  unknown command`

// exitMemberRefused is for what a rule does not allow, whatever the operator says.
const exitMemberRefused = 3

// NewMembersCommand is the parent of what an operator may do about the other
// members of the cluster.
func NewMembersCommand(o *device.Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "members",
		Short: "Act on nodes that are no longer members of the cluster",
		Long: "Act on nodes that are no longer members of the cluster. zedkube does this by itself where it is certain; these\n" +
			"commands are for an operator who knows what it cannot know. See docs/operations.md, \"Members and the tie-breaker\".\n\n" + membersExitCodes,
		Args: terminal.NoCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(membersCommands(o)...)
	return c
}

// membersCommands are the commands below "zedkube members".
func membersCommands(o *device.Options) []*cobra.Command {
	return []*cobra.Command{newMembersForgetCommand(o), newMembersRemoveCommand(o)}
}
