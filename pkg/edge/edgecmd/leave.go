package edgecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/types"
)

// cleanedWithin is how long Kubernetes and cloudcore have to remove what belongs to a Node that is gone.
const cleanedWithin = 20 * time.Second

// leaving is what somebody has typed, and what there is.
type leaving struct {
	acting
	name   string
	lost   bool
	within time.Duration

	kube  Cluster
	node  object.Object   // nil for none
	asked join.Asked      // what the record had of the name
	pods  []object.Object // to be moved
	stays int             // pods of DaemonSets and of the device itself
}

func (c *commands) leave() *cobra.Command {
	l := &leaving{}
	cmd := &cobra.Command{
		Use:   "leave NAME [--lost] [--yes | --dry-run]",
		Short: "Let an edge node leave the cluster",
		Long: "Let an edge node leave the cluster. The plan names the pods that run there. The Node is cordoned and emptied; then it waits until\n" +
			"leave.sh has run on the device and the Node is not Ready any more, and deletes it. With --lost the device is not waited for, and\n" +
			"its name is refused until it is asked to join again. In either case no device can register under the name any more.",
		Example: "  zedkube-edge leave camera-7 --dry-run\n  zedkube-edge leave camera-7 --lost --yes",
		Args:    terminal.Words(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			l.on(cmd)
			l.name = args[0]
			if l.kube, err = c.dial(); err != nil {
				return err
			}
			return c.letLeave(cmd.Context(), l)
		},
	}
	cmd.Flags().BoolVar(&l.lost, "lost", false, "the device is lost: delete its Node at once, and refuse its name")
	cmd.Flags().DurationVar(&l.within, "timeout", 5*time.Minute, "how long to wait for the pods, and for leave.sh")
	l.flags(cmd)
	return cmd
}

func (c *commands) letLeave(ctx context.Context, l *leaving) error {
	seen, record, _, err := lookFor(ctx, l.kube, l.name)
	if err != nil {
		return err
	}
	given, asked := record.Asked[l.name]
	l.node, l.asked = seen[l.ref()], given
	switch {
	case l.node != nil && !cloud.MayLeave(l.node, l.asked):
		return refused(fmt.Errorf("%s is a member of the cluster", l.name))
	case l.node == nil && !asked:
		return refused(fmt.Errorf("there is no edge node %s, and none was asked to join under this name", l.name))
	}
	if err := l.findPods(ctx); err != nil {
		return err
	}
	l.plan()
	if on, err := l.confirm(ctx); err != nil || !on {
		return err
	}
	o := types.Operation{Op: "leave edge", Target: auditNodes, Why: "zedkube edge leave " + l.name}
	if l.lost {
		o.Why += " --lost"
	}
	return c.audited(o, func() error {
		if l.node != nil && !l.lost {
			if err := l.empty(ctx); err != nil {
				return err
			}
		}
		return l.remove(ctx)
	})
}

func (l *leaving) ref() object.Ref { return object.Ref{Kind: object.Node, Name: l.name} }

func (l *leaving) ready() bool { return l.node.Condition("Ready") == "True" }

func (l *leaving) findPods(ctx context.Context) error {
	all, err := l.kube.List(ctx, cloud.View{Ref: object.Ref{Kind: object.Pod}, Field: "spec.nodeName=" + l.name})
	if err != nil {
		return err
	}
	l.pods, l.stays = nil, 0
	for _, pod := range all {
		owned := slices.ContainsFunc(pod.List("metadata", "ownerReferences"), func(o object.Object) bool { return o.Text("kind") == "DaemonSet" || o.Text("kind") == "Node" })
		switch {
		case pod.Text("spec", "nodeName") != l.name:
		case owned:
			l.stays++
		default:
			l.pods = append(l.pods, pod)
		}
	}
	return nil
}

func (l *leaving) plan() {
	l.say("Edge node %s is to leave.", l.name)
	if l.node == nil {
		l.say("  it has not registered: nobody can register under this name any more")
	}
	for _, pod := range l.pods {
		l.say("  %s", pod.Ref(object.Pod))
	}
	switch {
	case l.lost:
		l.say("As lost: its Node is deleted at once, and its pods (%d) with it, which may go on on the device. The name is refused until", len(l.pods))
		l.say("zedkube-edge join %s asks again. Its certificate cannot be revoked: it stays good for cloudcore, which can write nothing under this name.", l.name)
	case l.node != nil && l.ready():
		l.say("It is cordoned and drained. Pods to evict: %d; of DaemonSets, which end with it: %d. Then run on the device, as root:", len(l.pods), l.stays)
		l.say("  sh /usr/local/lib/zedkube-edge/leave.sh")
	case l.node != nil:
		l.say("It is not Ready, so nobody answers there: its Node is deleted. On the device, as root: sh /usr/local/lib/zedkube-edge/leave.sh")
	}
}

// empty cordons the Node, and waits until its pods are gone and it is not Ready.
func (l *leaving) empty(ctx context.Context) error {
	ref := l.ref()
	node, err := l.kube.Get(ctx, ref)
	if err != nil || node == nil {
		return err
	}
	l.node = node
	// Applied and not updated: cloudcore writes the Node every few seconds. The UID keeps one from being made that is gone.
	cordon := object.New(ref).With(object.Map{
		"metadata": object.Map{"name": l.name, "uid": node.UID()}, "spec": object.Map{"unschedulable": true},
	})
	if _, err := l.kube.Apply(ctx, ref, cordon, false); err != nil {
		return err
	}
	if !l.ready() {
		return nil
	}
	if err := eventually(ctx, l.within, func() error { return l.evict(ctx) }); err != nil {
		return err
	}
	l.say("It is empty. On the device, as root: sh /usr/local/lib/zedkube-edge/leave.sh")
	return eventually(ctx, l.within, func() error {
		switch node, err := l.kube.Get(ctx, ref); {
		case err != nil:
			return errPending{err.Error()}
		case node == nil || node.Condition("Ready") != "True":
			return nil
		}
		return errPending{fmt.Sprintf("%s is still Ready: leave.sh has not run. It stays cordoned; the same command goes on from here", l.name)}
	})
}

// evict asks for the eviction of each pod that is there.
func (l *leaving) evict(ctx context.Context) error {
	if err := l.findPods(ctx); err != nil || len(l.pods) == 0 {
		return err
	}
	var why []string
	for _, pod := range l.pods {
		if pod.Text("metadata", "deletionTimestamp") != "" {
			why = append(why, pod.Ref(object.Pod).String()+" is ending")
			continue
		}
		blocked, err := l.kube.Evict(ctx, pod.Ref(object.Pod), pod.UID())
		if err != nil {
			return err
		}
		if blocked == "" {
			blocked = "is ending"
		}
		why = append(why, pod.Ref(object.Pod).String()+" "+blocked)
	}
	return errPending{strings.Join(why, "; ")}
}

// remove takes the name out of the record first, by which the controller closes it, so that the device does not register again.
func (l *leaving) remove(ctx context.Context) error {
	seen, record, at, err := lookFor(ctx, l.kube, l.name)
	if err != nil {
		return err
	}
	// Of one that is not lost the pods are evicted first.
	if now := seen[l.ref()]; !l.lost && now != nil && now.UID() != l.node.UID() {
		return refused(fmt.Errorf("%s has just registered, and nothing was changed: try again", l.name))
	}
	record.Leave(l.name, l.lost, time.Now())
	if err := writeRecord(ctx, l.kube, at, record); err != nil {
		return err
	}
	if l.node != nil {
		if err := l.kube.Delete(ctx, l.ref(), l.node.UID()); err != nil {
			return err
		}
	}
	if err := l.clean(ctx); err != nil {
		return err
	}
	if l.lost {
		l.say("%s is gone, and its name is refused.", l.name)
	} else {
		l.say("%s has left.", l.name)
	}
	return nil
}

// clean sees that what belongs to the Node goes: Kubernetes and cloudcore remove it, and the controller closes the name. What the former
// leave is deleted, and so is a Node that the device has registered again until the name was closed.
func (l *leaving) clean(ctx context.Context) error {
	var left []object.Ref
	var role object.Object
	there := false
	err := eventually(ctx, cleanedWithin, func() (err error) {
		if role, err = l.kube.Get(ctx, cloud.RefRole); err != nil {
			return err
		}
		open := cloud.Admits(role, l.name)
		if !open {
			if there, err = l.deleteAgain(ctx); err != nil {
				return err
			}
		}
		if left, err = l.leftovers(ctx); err != nil || len(left) == 0 && !open && !there {
			return err
		}
		return errPending{"it is still there"}
	})
	if terminal.ExitCode(err) != terminal.ExitFound {
		return err
	}
	var errs []error
	for _, r := range left {
		l.say("Nobody has removed %s, so it is deleted.", r)
		errs = append(errs, l.kube.Delete(ctx, r, ""))
	}
	if there {
		errs = append(errs, terminal.ExitWith(terminal.ExitFound, fmt.Errorf("%s is out of the record, but its Node is still there after %s: see kubectl get node %s -o yaml", l.name, cleanedWithin, l.name)))
	}
	if cloud.Admits(role, l.name) {
		errs = append(errs, terminal.ExitWith(terminal.ExitFound, fmt.Errorf(
			"%s is out of the record, but a device can still register under this name: no controller has changed %s within %s. It does so once it runs: zedkube-edge status", l.name, cloud.RefRole, cleanedWithin)))
	}
	return errors.Join(errs...)
}

// deleteAgain deletes the Node of an edge node, and reports whether there was one.
func (l *leaving) deleteAgain(ctx context.Context) (there bool, err error) {
	node, err := l.kube.Get(ctx, l.ref())
	if err != nil || node == nil {
		return false, err
	}
	if !cloud.MayLeave(node, l.asked) {
		return false, nil // a member has the name by now
	}
	if node.UID() != l.node.UID() {
		l.say("Node %s was registered again before its name was closed, so it is deleted again.", l.name)
	}
	return true, l.kube.Delete(ctx, l.ref(), node.UID())
}

func (l *leaving) leftovers(ctx context.Context) (list []object.Ref, err error) {
	lease := object.Ref{Kind: object.Lease, Namespace: "kube-node-lease", Name: l.name}
	o, err := l.kube.Get(ctx, lease)
	if err != nil {
		return nil, err
	}
	if o != nil {
		list = append(list, lease)
	}
	syncs, err := l.kube.List(ctx, cloud.View{Ref: object.Ref{Kind: object.ObjectSync}})
	if err != nil {
		return nil, err
	}
	for _, o := range syncs {
		// Its name is that of the Node and the UID of what is sent there: a name may be the beginning of another one.
		if at := strings.LastIndexByte(o.Name(), '.'); at > 0 && o.Name()[:at] == l.name {
			list = append(list, o.Ref(object.ObjectSync))
		}
	}
	return list, nil
}
