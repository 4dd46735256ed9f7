package draincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const exitRefused = 3

// NewUncordonCommand undoes a cordon that no agent undoes by itself.
func NewUncordonCommand(o *device.Options) *cobra.Command {
	u := uncordoning{}
	var out terminal.Outputs
	c := out.Flag(&cobra.Command{
		Use:   "uncordon [NODE] [--yes]",
		Short: "Make a node schedulable again that an operator has cordoned",
		Long: "Make a node schedulable again: this one, or NODE. A cordon that \"zedkube drain keep-cordon\" kept is undone at once. Of one\n" +
			"that was not made by zedkube it says what is known of it, and asks: who made it may still be at work there.\n" +
			"A cordon of a drain, of disabled workloads or of a tie-breaker is refused: it ends with what made it.\n\n" + `Exit codes:
  0   the node is schedulable
  1   wrong usage, interrupted, not confirmed, or failed
  2   the API server cannot be queried
  3   refused: the last line gives the reason
  99  unknown command`,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			u.info, u.in = info, c.InOrStdin()
			why := "zedkube uncordon"
			if len(args) > 0 {
				u.name = terminal.Named("node", args[0])
				why += " " + u.name
			}
			ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", why)
			return out.RunAction(c, func(w io.Writer) error {
				u.out, u.asks = w, out.People()
				kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, device.CommandRecord(p)) // until an answer is typed
				if err != nil {
					return terminal.ExitWith(terminal.ExitNotPublished, err)
				}
				defer done()
				return device.APIError(u.run(ctx, kube, time.Now()))
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
	})
	c.Flags().BoolVar(&u.yes, "yes", false, "do not ask for confirmation; what is refused stays refused")
	return c
}

type uncordoner interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	OperatorUncordon(ctx context.Context, node string) error
}

type uncordoning struct {
	name string // "" for this node
	yes  bool
	asks bool // somebody reads what is printed, and may be asked
	info types.EdgeNodeInfo
	in   io.Reader
	out  io.Writer
}

func (u uncordoning) run(ctx context.Context, kube uncordoner, now time.Time) error {
	nodes, err := kube.FreshNodes(ctx)
	if err != nil {
		return err
	}
	node, err := device.OwnNode(nodes, u.info)
	own := err == nil && cmp.Or(u.name, node.Name) == node.Name
	if u.name != "" {
		i := slices.IndexFunc(nodes, func(n types.Node) bool { return n.Name == u.name })
		if i < 0 {
			return fmt.Errorf("the cluster has no node %s: zedkube nodes", terminal.Clean(u.name))
		}
		node, err = nodes[i], nil
	}
	if err != nil {
		return err
	}
	if !node.Unschedulable {
		fmt.Fprintf(u.out, "Node %s is schedulable.\n", node.Name)
		return nil
	}
	if why := notToUndo(node, own); why != "" {
		return terminal.ExitWith(exitRefused, errors.New("refused: "+why))
	}
	if !node.CordonKept || node.CordonedBy == nil {
		if err := u.confirm(ctx, node, now); err != nil {
			return err
		}
	}
	err = kube.OperatorUncordon(ctx, node.Name)
	if errors.Is(err, types.ErrOwnCordon) {
		return terminal.ExitWith(exitRefused, fmt.Errorf("refused: zedkube has cordoned node %s in the meantime", node.Name))
	}
	if err == nil {
		fmt.Fprintf(u.out, "Node %s is schedulable again.\n", node.Name)
	}
	return err
}

// notToUndo says why the cordon of a node is not for an operator to undo, and what ends it; ""
// where it is.
func notToUndo(n types.Node, own bool) string {
	there := ""
	if !own {
		there = " there"
	}
	switch {
	case n.TieBreaker:
		return fmt.Sprintf("node %s is the tie-breaker, which runs no applications", n.Name)
	case n.CordonedBy == nil || n.CordonedForDrain() && n.CordonKept:
		return ""
	case n.CordonedForDrain():
		return fmt.Sprintf("node %s is cordoned for its drain. See who requests it with \"zedkube drain status\"%s; \"zedkube drain cancel\"%s withdraws an operator's request", n.Name, there, there)
	}
	return fmt.Sprintf("node %s is cordoned because workloads are disabled: zedkube workloads enable", n.Name)
}

// confirm tells what is known of a cordon of others, and asks for the name of the node.
func (u uncordoning) confirm(ctx context.Context, n types.Node, now time.Time) error {
	by, since := "somebody", n.TaintedAt
	for _, w := range n.Writers {
		if w.Field == types.FieldCordon {
			by = terminal.Clean(w.Manager)
		}
	}
	fmt.Fprintf(u.out, "Warning: node %s was not cordoned by zedkube but by %s, %s. They may still be at work there.\n", n.Name, by, terminal.Age(since, now))
	if n.Foreign() {
		fmt.Fprintln(u.out, "Its agent does not use the drain lock: it may be draining.")
	}
	if u.yes {
		return nil
	}
	return terminal.Confirm(ctx, u.in, u.out, u.asks, "To make it schedulable, type the name of the node: ", n.Name)
}
