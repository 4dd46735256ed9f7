package draincmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// newKeepCordonCommand hands the cordon of a drain to the operator.
func newKeepCordonCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "keep-cordon",
		Short: "Keep this node unschedulable after its drain",
		Long: "Keep this node unschedulable after its drain, also after a reboot.\n" +
			"\"kubectl uncordon\" undoes this, and so does the start of the next drain.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube drain keep-cordon")
			return out.RunAction(c, func(w io.Writer) error {
				return device.WithAPI(ctx, p, func(kube *kubeapi.Client) error { return keepCordon(ctx, w, kube, info) })
			})
		},
	}
	out.Flag(c)
	return c
}

// cordonKeeper is what keep-cordon does to the cluster.
type cordonKeeper interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	KeepCordon(ctx context.Context, node string) error
}

func keepCordon(ctx context.Context, out io.Writer, kube cordonKeeper, info types.EdgeNodeInfo) error {
	_, own, err := device.NodesAndOwn(ctx, kube, info)
	if err != nil {
		return err
	}
	if own.CordonedBy == nil {
		state := "it is not cordoned"
		if own.Unschedulable {
			state = "it was cordoned by somebody else, and that cordon is not removed"
		}
		return fmt.Errorf("node %s was not cordoned by zedkube: %s", own.Name, state)
	}
	if err := kube.KeepCordon(ctx, own.Name); err != nil {
		return err
	}
	fmt.Fprintf(out, "The cordon of %s is kept. To make the node schedulable again: kubectl uncordon %s\n", own.Name, own.Name)
	return nil
}
