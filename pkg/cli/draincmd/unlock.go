package draincmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// newUnlockCommand frees the lock of a node that is off on purpose.
func newUnlockCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "unlock HOLDER",
		Short: "Release the drain lock of another node that is powered off on purpose",
		Long: "Release the drain lock of another node. The lock prevents that a second node goes down before the\n" +
			"holder is back with its data: release it only for a node that is powered off on purpose. The name of the holder\n" +
			"is the confirmation; \"zedkube drain status\" shows it.\n\n" + exitCodes,
		Args: terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			u := unlocking{holder: args[0], info: info, record: readDrain(p, time.Now()), warn: c.ErrOrStderr()}
			if err := u.refuseOwn(info.NodeName()); err != nil {
				return err
			}
			ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube drain unlock "+args[0])
			return out.RunAction(c, func(w io.Writer) error {
				u.out = w
				return device.WithAPI(ctx, p, func(kube *kubeapi.Client) error { return u.run(ctx, kube) })
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(func(ctx context.Context) []string { return device.CompleteNodes(ctx, o, nil) }),
	}
	out.Flag(c)
	return c
}

// lockBreaker is what unlock does to the cluster.
type lockBreaker interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	DrainLock(ctx context.Context) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
	Event(ctx context.Context, e types.Event) error
}

// unlocking is one call of the command.
type unlocking struct {
	holder    string
	info      types.EdgeNodeInfo
	record    drainRecord
	out, warn io.Writer
}

// refuseOwn keeps an operator from pulling the lock from under the drain that
// runs here: to cancel it gives the lock back in good order.
func (u unlocking) refuseOwn(own string) error {
	p := u.record.Progress
	if p == nil || !u.record.Agent.Runs || u.holder != own {
		return nil
	}
	if u.record.underWay() || p.Phase == types.PhaseComplete {
		return fmt.Errorf("node %s is this node and its drain holds the lock: withdraw the request instead, with \"zedkube drain cancel\"", own)
	}
	return nil
}

func (u unlocking) run(ctx context.Context, kube lockBreaker) error {
	lock, err := kube.DrainLock(ctx)
	if err != nil {
		return err
	}
	if lock.Holder == "" {
		fmt.Fprintln(u.out, "No node holds the drain lock.")
		return nil
	}
	if lock.Holder != u.holder {
		return fmt.Errorf("the drain lock is held by %s, not by %s: nothing was changed", terminal.Clean(lock.Holder), terminal.Clean(u.holder))
	}
	nodes, own, err := device.NodesAndOwn(ctx, kube, u.info)
	if err != nil {
		return err
	}
	if err := u.refuseOwn(own.Name); err != nil {
		return err
	}
	if err := kube.FreeDrainLock(ctx, lock); err != nil {
		return err
	}
	fmt.Fprintf(u.out, "The drain lock of %s was released. It was held since %s.\n", lock.Holder, terminal.Stamp(lock.Since, u.record.ReadAt))
	u.tell(ctx, kube, lock, nodes, own)
	return nil
}

// tell leaves an Event for those who wonder later, and warns of what the
// operator may not know.
func (u unlocking) tell(ctx context.Context, kube lockBreaker, lock types.DrainLock, nodes []types.Node, own types.Node) {
	about := own.Name
	for _, n := range nodes {
		if n.Name != lock.Holder {
			continue
		}
		about = n.Name
		if n.Ready == types.ConditionTrue {
			fmt.Fprintf(u.warn, "Warning: %s is Ready. If its drain continues, two nodes may be down at the same time.\n", n.Name)
		}
	}
	event := types.Event{
		Node: about, Warning: true, Reason: "DrainLockFreed",
		Message: fmt.Sprintf("an operator freed the drain lock of node %s by \"zedkube drain unlock\" on node %s", lock.Holder, own.Name),
	}
	if err := kube.Event(ctx, event); err != nil {
		fmt.Fprintln(u.warn, "The Event about it could not be written:", err)
	}
}
