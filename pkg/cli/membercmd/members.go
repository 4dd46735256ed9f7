// Package membercmd is who belongs to the cluster, and which k3s it runs: zedkube
// leave, members and k3s.
package membercmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const membersExitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or failed
  2   the request could not be written, or the API server cannot be queried
  3   refused: the last line gives the reason
  99  unknown command`

// exitRefused is the exit code for what a rule does not allow, whatever the operator says.
const exitRefused = 3

// NewMembersCommand is what "nodes" has for an operator under its name of before.
func NewMembersCommand(o *device.Options) *cobra.Command {
	return terminal.Group("members", "Manage nodes that are no longer members of the cluster",
		"Manage nodes that are no longer members of the cluster. zedkube does this automatically where it is certain; these\n"+
			"commands are for an operator who knows what it cannot know. See docs/operations.md, \"Members and the tie-breaker\".\n\n"+membersExitCodes,
		NewForgetCommand(o), NewRemoveCommand(o))
}

// NewForgetCommand takes the stamp off a node that runs no zedkube of this
// kind any more.
func NewForgetCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "forget NODE",
		Short: "Remove the stamp of a node that runs EVE's own zedkube again",
		Long: "Remove the stamp of a node that runs EVE's own zedkube again: after it was rolled back to its previous image, or EVE\n" +
			"fell back to it. Its Node then no longer says that a zedkube of this kind runs there. Refused while the stamp is\n" +
			"fresh: an agent writes it every " + types.StampEvery.String() + ", and it is stale once the agent of this node has not seen it change for\n" +
			types.StampFresh.String() + ". An agent that is running writes it again. See docs/eve-image.md, \"Back\".\n\n" + membersExitCodes,
		Example: "  zedkube nodes forget press-line-3",
		Args:    terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			f := forgetting{name: args[0]}
			asked := &device.NodesAsked{Paths: p}
			defer asked.Close()
			seen, err := asked.OfAgent(c.Context())
			if err != nil {
				return terminal.ExitWith(exitRefused, fmt.Errorf("refused: only an agent that has been running for a while knows how old a stamp is: %w", err))
			}
			f.seen = seen
			ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube nodes forget "+args[0])
			return out.RunAction(c, func(w io.Writer) error {
				f.out = w
				return device.WithAPI(ctx, p, func(kube *kubeapi.Client) error { return f.run(ctx, kube) })
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
	})
}

type stampTaker interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	ForgetStamp(ctx context.Context, node types.Node) error
}

type forgetting struct {
	name string
	seen overview.Nodes // by the agent of this node
	out  io.Writer
}

func (f forgetting) run(ctx context.Context, kube stampTaker) error {
	nodes, err := kube.FreshNodes(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(nodes, func(n types.Node) bool { return n.Name == f.name })
	switch {
	case i < 0:
		return fmt.Errorf("the cluster has no node %s: zedkube nodes", terminal.Clean(f.name))
	case nodes[i].Agent == nil:
		fmt.Fprintf(f.out, "Node %s has no stamp.\n", f.name)
		return nil
	}
	if why := f.fresh(nodes[i]); why != "" {
		return refused(why)
	}
	if err := kube.ForgetStamp(ctx, nodes[i]); err != nil {
		return err
	}
	fmt.Fprintf(f.out, "The stamp of node %s was removed: the other nodes now treat it as one that runs EVE's own zedkube.\n", f.name)
	return nil
}

// fresh says why the stamp of a node may not be taken off, "" where it may.
func (f forgetting) fresh(n types.Node) string {
	i := slices.IndexFunc(f.seen.List, func(c overview.ClusterNode) bool { return c.Name == n.Name })
	switch {
	case i < 0:
		return "the agent of this node does not know node " + n.Name + " yet"
	case !f.seen.List[i].AgentStale || !f.seen.List[i].AgentAt.Equal(n.StampedAt):
		return fmt.Sprintf("the stamp of node %s is fresh, or has not been watched from here for %s: its zedkube runs, or did a moment ago", n.Name, types.StampFresh)
	}
	return ""
}
