package membercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/members"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

const (
	// dialPatience is for one round of connections, which are tried at once.
	dialPatience = 3 * time.Second
	// rightWithin is how long the right to repair is waited for: longer than what a
	// process that was killed has left behind counts, and than most repairs take.
	rightWithin = 30 * time.Second
	// removeWithin bounds the whole removal, all its waiting included.
	removeWithin = 2 * time.Minute
)

// NewRemoveCommand removes a node whose device is gone.
func NewRemoveCommand(o *device.Options) *cobra.Command {
	r := removing{try: reach.Try}
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "remove [--give-up-volume VOLUME]... [--yes] NODE",
		Short: "Remove from the cluster a node whose device is gone for good",
		Long: "Remove from the cluster a node whose device is gone for good: its Node is deleted, and its etcd member with it.\n" +
			"A device that comes back afterwards has to be set up again. Refused, whatever flags are given, while the Node is\n" +
			"Ready, while its kubelet reports or the device answers a connection, if etcd would lose its quorum, and while\n" +
			"another node drains. Volumes whose last healthy replica is there are lost: each has to be named.\n\n" + membersExitCodes,
		Example: "  zedkube nodes remove press-line-3\n" +
			"  zedkube nodes remove press-line-3 --yes --give-up-volume pvc-5f0e11c7",
		Args: terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			r.name, r.info, r.in, r.record = args[0], info, c.InOrStdin(), device.CommandRecord(p)
			if m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership")); err == nil && m.Config != nil {
				r.masters = m.Config.MasterNodeIDs
			}
			// Also when the terminal goes away the lock is given back.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			ctx = types.Because(types.ActAs(ctx, "command"), "OPERATOR", "zedkube nodes remove "+args[0])
			return out.RunAction(c, func(w io.Writer) error {
				r.out, r.asks = w, out.People()
				kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, r.record) // until an answer is typed, and longer
				if err != nil {
					return terminal.ExitWith(terminal.ExitNotPublished, err)
				}
				defer done()
				return device.APIError(r.run(ctx, kube))
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
	}
	out.Flag(c)
	c.Flags().StringSliceVar(&r.giveUp, "give-up-volume", nil, "this volume, whose last healthy replica is on the node, may be lost; repeat for each")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask for confirmation; what is refused stays refused")
	return c
}

type memberCluster interface {
	members.Remover
	Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error
	Storage(ctx context.Context, node string) (types.Storage, error)
}

type removing struct {
	name    string
	giveUp  []string
	yes     bool
	asks    bool // somebody reads what is printed, and may be asked
	info    types.EdgeNodeInfo
	masters []uuid.UUID // as the controller named them last; nil for unknown
	record  types.OperationLog
	try     func(ctx context.Context, from, to netip.Addr, ports []int) []types.ReachPort
	in      io.Reader
	out     io.Writer

	kube    memberCluster
	renewed time.Time // of the node's Lease at the first look
	lost    []string  // volumes that go with the node, as the last look saw them
}

func (r *removing) run(ctx context.Context, kube memberCluster) error {
	r.kube = kube
	nodes, own, err := device.NodesAndOwn(ctx, kube, r.info)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(nodes, func(n types.Node) bool { return n.Name == r.name })
	if i < 0 {
		return fmt.Errorf("the cluster has no member %s: zedkube nodes", terminal.Clean(r.name))
	}
	target := nodes[i]
	r.renewed = target.RenewedAt
	if target.Name == own.Name {
		return refused("this command runs on that node itself: use zedkube leave")
	}
	if why, err := r.judge(ctx, target, own, nodes); err != nil || why != "" {
		return errors.Join(err, refused(why))
	}
	r.explain(target, nodes)
	if err := r.confirm(ctx); err != nil {
		return err
	}
	return r.remove(ctx, own, target)
}

// refused is the error for what a rule does not allow; nil without a reason.
func refused(why string) error {
	if why == "" {
		return nil
	}
	return terminal.ExitWith(exitRefused, errors.New("refused: "+terminal.Clean(why)))
}

// judge says why the node is not to be removed, "" for nothing. It is asked again
// under the lock, of nodes of which those that are not alive are not Ready.
func (r *removing) judge(ctx context.Context, target, own types.Node, nodes []types.Node) (string, error) {
	i := slices.IndexFunc(nodes, func(n types.Node) bool { return n.UID == target.UID })
	if i < 0 {
		return "node " + target.Name + " no longer exists, or was replaced by another one", nil
	}
	n := nodes[i]
	switch {
	case n.Ready == types.ConditionTrue:
		return "node " + n.Name + " is Ready: let it leave, with \"zedkube leave\" there", nil
	case !n.RenewedAt.Equal(r.renewed):
		return "the kubelet of node " + n.Name + " has just renewed its Lease", nil
	}
	if lack := types.LacksQuorum(nodes, n.Name); lack != "" {
		return "without node " + n.Name + " " + lack, nil
	}
	if why := r.answers(ctx, n, own, nodes); why != "" {
		return why, nil
	}
	s, err := r.kube.Storage(ctx, n.Name)
	if err != nil {
		return "", err
	}
	var missing []string
	r.lost = nil
	for _, v := range outlook.LostByLeave(s, n.Name, outlook.ReadyNodes(nodes)) {
		r.lost = append(r.lost, v.Name)
		if !slices.Contains(r.giveUp, v.Name) {
			missing = append(missing, fmt.Sprintf("%s (%s)", v.Name, cmp.Or(v.Claim, "no claim")))
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("the last healthy replica of these volumes is on node %s, and would be lost: %s. To give one up: --give-up-volume VOLUME",
			n.Name, strings.Join(missing, ", ")), nil
	}
	return "", nil
}

// answers says where the device answers, or that this one cannot tell: another
// Ready node has to answer it, or its own network may be what is down.
func (r *removing) answers(ctx context.Context, target, own types.Node, nodes []types.Node) string {
	addresses := addressesOf(target)
	if len(addresses) == 0 {
		return "node " + target.Name + " has no address, so it is not known whether its device answers. If it is off for good: kubectl delete node " + target.Name
	}
	for _, to := range addresses {
		if port := r.answering(ctx, to); port != 0 {
			return fmt.Sprintf("the device of node %s answers at %s, port %d", target.Name, to, port)
		}
	}
	others := 0
	for _, n := range nodes {
		if n.Name == own.Name || n.Name == target.Name || n.Ready != types.ConditionTrue {
			continue
		}
		others++
		for _, to := range addressesOf(n) {
			if r.answering(ctx, to) != 0 {
				return ""
			}
		}
	}
	if others > 0 {
		return "no other Ready node answers this one, so it is not known whether node " + target.Name + " does"
	}
	return ""
}

// answering is a port of the device that answers, 0 for none. To be refused is an
// answer: only a machine that is alive sends that.
func (r *removing) answering(ctx context.Context, to netip.Addr) int {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	for _, p := range r.try(ctx, netip.Addr{}, to, reach.Ports()) {
		if p.Outcome == types.ReachOpen || p.Outcome == types.ReachRefused {
			return p.Port
		}
	}
	return 0
}

func addressesOf(n types.Node) (list []netip.Addr) {
	for _, text := range []string{n.InternalIP, n.ExternalIP} {
		if ip, err := netip.ParseAddr(text); err == nil && !slices.Contains(list, ip) {
			list = append(list, ip)
		}
	}
	return list
}

func (r *removing) explain(target types.Node, nodes []types.Node) {
	fmt.Fprintf(r.out, "Node %s (%s) is to be removed. It has not been Ready since %s.\n",
		target.Name, cmp.Or(target.UUID, "its device is unknown"), terminal.Stamp(target.ReadySince, time.Now()))
	if target.Votes() {
		others := types.QuorumOf(slices.DeleteFunc(slices.Clone(nodes), func(n types.Node) bool { return n.UID == target.UID }))
		fmt.Fprintf(r.out, "etcd then has %d voting members left, of which %d are Ready.\n", others.Voters, others.Ready)
	}
	if id, err := uuid.Parse(target.UUID); err == nil && slices.Contains(r.masters, id) {
		fmt.Fprintln(r.out, "Warning: the device is still configured as a master at the controller. Remove it there as well.")
	}
	for _, v := range r.lost {
		fmt.Fprintf(r.out, "Volume %s is lost.\n", v)
	}
}

// confirm asks for the name of the node, unless it was said to go on.
func (r *removing) confirm(ctx context.Context) error {
	if r.yes {
		return nil
	}
	return terminal.Confirm(ctx, r.in, r.out, r.asks, "A device that comes back has to be set up again. To continue, type the name of the node: ", r.name)
}

// remove does it, once it is in the audit.
func (r *removing) remove(ctx context.Context, own, target types.Node) (err error) {
	o := types.Acting(ctx)
	o.Op, o.Target = "remove member", "node/"+target.Name
	if len(r.lost) > 0 {
		o.Why += ", which gives up volumes " + strings.Join(r.lost, ", ")
	}
	end := r.record.Begin(o)
	defer func() { end(outcomeOf(err), err) }()
	removal := members.Removal{
		Remover: r.kube, Own: own, Node: target, Late: true, Reason: "MemberRemoved",
		Judge:   func(ctx context.Context, nodes []types.Node) (string, error) { return r.judge(ctx, target, own, nodes) },
		Message: fmt.Sprintf("an operator removed node %s (%s) by \"zedkube nodes remove\" on node %s", target.Name, target.UUID, own.Name),
	}
	fmt.Fprintln(r.out, "Acquiring the drain lock and checking the nodes once more: up to 20 seconds.")
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	var deleted bool
	var hinders string
	for ends := time.Now().Add(rightWithin); ; {
		err = r.kube.Repair(ctx, own.Name, func(ctx context.Context) (err error) {
			deleted, hinders, err = removal.Do(ctx)
			return err
		})
		if !errors.Is(err, types.ErrHeld) || time.Now().After(ends) {
			break
		}
		select {
		case <-time.After(time.Second):
			continue
		case <-ctx.Done():
		}
		break
	}
	switch {
	case errors.Is(err, types.ErrHeld):
		return refused("another node is repairing the cluster: try again in a minute")
	case err != nil:
		return err
	case !deleted:
		return refused(hinders)
	case hinders != "":
		fmt.Fprintf(r.out, "The Node is being deleted. It disappears when k3s has removed its member from etcd: kubectl get node %s\n", target.Name)
	default:
		fmt.Fprintf(r.out, "Node %s is removed.\n", target.Name)
	}
	return nil
}

func outcomeOf(err error) types.OperationOutcome {
	switch {
	case err == nil:
		return types.OperationOK
	case errors.Is(err, types.ErrNoAnswer):
		return types.OperationUnanswered
	case terminal.ExitCode(err) == exitRefused, errors.Is(err, types.ErrRefused), errors.Is(err, types.ErrConflict):
		return types.OperationRefused
	}
	return types.OperationFailed
}
