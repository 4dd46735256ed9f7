package draincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func newDrainRequestCommand(o *device.Options) *cobra.Command {
	var reason string
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "request [--reason TEXT]",
		Short: "Request a drain of this node, without a reboot afterwards",
		Long: "Request a drain of this node. It stays schedulable until its turn comes, then it is cordoned and drained,\n" +
			"and stays cordoned until the request is withdrawn or the device reboots.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return requestDrain(w, o.Paths(), reason, time.Now()) })
		},
	}
	out.Flag(c)
	c.Flags().StringVar(&reason, "reason", "", "the reason, which is recorded")
	return c
}

// requestDrain leaves the request for the agent. One that stands is kept, so
// that asking twice is asking once, unless its drain has failed.
func requestDrain(out io.Writer, p device.Paths, reason string, now time.Time) error {
	if err := checkMember(p); err != nil {
		return err
	}
	topic, err := device.OperatorTopic[types.NodeDrainRequest](p)
	if err != nil {
		return err
	}
	record := readDrain(p, now)
	existing, exists := topic.Get(types.Global)
	if exists && !(record.failed() && !record.requestedAgain()) {
		fmt.Fprintf(out, "There is already a request, made at %s. It stays in effect.\n", terminal.Stamp(existing.RequestedAt, now))
	} else {
		request := types.NodeDrainRequest{RequestedAt: now.UTC(), RequestedBy: types.DrainRequesterNone, Context: reason}
		if err := topic.Publish(types.Global, request); err != nil {
			return err
		}
		fmt.Fprintln(out, "A drain of this node has been requested.")
	}
	if !record.Agent.Runs {
		fmt.Fprintf(out, "The agent is not running (%s): the drain starts once it is running.\n", terminal.Clean(record.Agent.Why))
	}
	fmt.Fprint(out, "To watch it:    zedkube drain status --watch\nTo withdraw it: zedkube drain cancel\n")
	return nil
}

// checkMember refuses a drain where there is nothing to drain: a request that
// stays there would surprise the user when the device joins a cluster later.
func checkMember(p device.Paths) error {
	if err := device.CheckDevice(p); err != nil {
		return err
	}
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	if err == nil && (m.State == types.MembershipNever || m.State == types.MembershipLeft) {
		return errors.New("this device is not a member of a cluster: there is nothing to drain, and nothing was requested")
	}
	return nil // a file that is not there says nothing
}

func newDrainCancelCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "cancel",
		Short: `Withdraw the request of "zedkube drain request"`,
		Long:  "Withdraw the request of \"zedkube drain request\". Requests of EVE's agents stay in effect.\n\n" + exitCodes,
		Args:  terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return cancelDrain(w, o.Paths(), time.Now()) })
		},
	})
}

func cancelDrain(out io.Writer, p device.Paths, now time.Time) error {
	removed, err := device.Withdraw[types.NodeDrainRequest](p, "NodeDrainRequest")
	if err != nil {
		return err
	}
	record := readDrain(p, now)
	if removed {
		fmt.Fprintln(out, "The operator's request has been withdrawn.")
	} else {
		fmt.Fprintln(out, "There is no operator's request.")
	}
	var others []string
	if record.Progress != nil {
		others = slices.DeleteFunc(slices.Clone(record.Progress.Requesters), func(r string) bool { return r == "OPERATOR" })
	}
	switch {
	case len(others) > 0:
		fmt.Fprintf(out, "The drain continues: %s still requests it.\n", strings.ToUpper(terminal.Listed(others)))
	case removed && record.Progress != nil && record.Progress.Cordon == "kept":
		fmt.Fprintln(out, "Its cordon is kept, as you asked. To make the node schedulable again: zedkube uncordon "+terminal.Clean(record.Node))
	case removed && record.Agent.Runs:
		fmt.Fprintln(out, "The node becomes schedulable again as soon as the API server answers: zedkube drain status")
	case removed:
		fmt.Fprintf(out, "The agent is not running (%s): the node becomes schedulable again once it is running.\n", terminal.Clean(record.Agent.Why))
	}
	return nil
}

// newKeepCordonCommand hands the cordon of a drain to the operator.
func newKeepCordonCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "keep-cordon",
		Short: "Keep this node unschedulable after its drain",
		Long: "Keep this node unschedulable after its drain, even after a reboot.\n" +
			"\"zedkube uncordon\" undoes this, and so does the start of the next drain.\n\n" + exitCodes,
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
	})
}

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
	if !own.CordonedForDrain() {
		return fmt.Errorf("node %s is cordoned because workloads are disabled, until zedkube workloads enable: cordon it after that", own.Name)
	}
	if err := kube.KeepCordon(ctx, own.Name); err != nil {
		return err
	}
	fmt.Fprintf(out, "The cordon of %s is kept. To make the node schedulable again: zedkube uncordon %s\n", own.Name, own.Name)
	return nil
}

// newUnlockCommand frees the lock of a node that is off on purpose.
func newUnlockCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "unlock HOLDER",
		Short: "Release the drain lock of another node that is powered off on purpose",
		Long: "Release the drain lock of another node. The lock keeps a second node from going down before the\n" +
			"holder is back with its data: release it only for a node that is powered off on purpose. The name of the holder\n" +
			"is the confirmation; \"zedkube drain status\" shows it. A node that changes or restarts k3s holds this lock as well, also\n" +
			"while that is stuck: look there first, with \"zedkube k3s status\".\n\n" + exitCodes,
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
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
	})
}

type lockBreaker interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	DrainLock(ctx context.Context) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
	Event(ctx context.Context, e types.Event) error
}

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
	if p == nil || !u.agentLives() || u.holder != own {
		return nil
	}
	if u.record.underWay() || p.Phase == types.PhaseComplete {
		how := "zedkube drain cancel"
		if slices.Contains(p.Requesters, types.RequestedByK3s) && !slices.Contains(p.Requesters, "OPERATOR") {
			how = "zedkube k3s hold"
		}
		return fmt.Errorf("node %s is this node and its drain holds the lock: withdraw the request instead, with \"%s\"", own, how)
	}
	return nil
}

// agentLives goes by the heartbeat as well: an agent that is restarted at this moment
// goes on with its drain, and on a full /run it has no pid file.
func (u unlocking) agentLives() bool {
	r := u.record
	return r.Agent.Runs || !r.Agent.Seen.IsZero() && r.ReadAt.Sub(r.Agent.Seen).Abs() <= overview.SilentAgent
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
	if lock.Holder == own.Name && changesK3s(own) && u.agentLives() {
		return fmt.Errorf("node %s is this node and changes k3s to %s under the lock: see zedkube k3s status, or take the change back with \"zedkube k3s rollback\"", own.Name, terminal.Clean(own.K3s.To))
	}
	if err := kube.FreeDrainLock(ctx, lock); err != nil {
		return err
	}
	fmt.Fprintf(u.out, "The drain lock of %s was released. It was held since %s.\n", lock.Holder, terminal.Stamp(lock.Since, u.record.ReadAt))
	u.tell(ctx, kube, lock, nodes, own)
	return nil
}

// changesK3s reports whether a change or restart of k3s was under way on the node, as its stamp
// last said.
func changesK3s(n types.Node) bool { return n.K3s != nil && n.K3s.Step != types.K3sStepNone }

// tell leaves an Event for those who wonder later, and warns of what the
// operator may not know.
func (u unlocking) tell(ctx context.Context, kube lockBreaker, lock types.DrainLock, nodes []types.Node, own types.Node) {
	about := own.Name
	for _, n := range nodes {
		if n.Name != lock.Holder {
			continue
		}
		about = n.Name
		switch {
		case changesK3s(n):
			fmt.Fprintf(u.warn, "Warning: %s changes k3s to %s, which goes on there without the lock: two servers may be down at the same time. No other node begins a change meanwhile, unless that one is proved off.\n", n.Name, terminal.Clean(n.K3s.To))
		case n.Ready == types.ConditionTrue:
			fmt.Fprintf(u.warn, "Warning: %s is Ready. If its drain continues, two nodes may be down at the same time.\n", n.Name)
		}
	}
	event := types.Event{
		Node: about, Warning: true, Reason: "DrainLockFreed",
		Message: fmt.Sprintf("an operator released the drain lock of node %s by \"zedkube drain unlock\" on node %s", lock.Holder, own.Name),
	}
	if err := kube.Event(ctx, event); err != nil {
		fmt.Fprintln(u.warn, "The Event for this could not be written:", err)
	}
}
