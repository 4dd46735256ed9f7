package membercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/types"
)

func newK3sPlanCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "plan [VERSION]",
		Short: "Show what a change of k3s to another version would be; changes nothing",
		Long: "Show what a change of k3s would be: whether the rules allow it, in which order the nodes change, after which of them the\n" +
			"cluster cannot return, what the change waits for on this node, and what is against it here. Without VERSION it is about the\n" +
			"setting k3s.version. It changes nothing. See docs/operations.md, \"The version of k3s\".\n\n" +
			"Exit codes:\n" +
			"  0   the rules allow it, whatever it waits for\n" +
			"  1   wrong usage, interrupted, or failed\n" +
			"  2   the API server did not answer: the plan knows this node alone\n" +
			"  3   refused\n" +
			"  99  unknown command",
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			if err := device.CheckDevice(p); err != nil {
				return err
			}
			look := newK3sLook(p)
			if len(args) > 0 {
				look.version = args[0]
			}
			plan, apiErr := look.plan(c.Context(), func(ctx context.Context) ([]types.Node, error) { return device.FreshNodes(ctx, p) }, time.Now())
			if plan.To == "" {
				return terminal.ExitWith(terminal.ExitUsage, errors.New("the setting k3s.version names no version: name one"))
			}
			if err := out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: plan, Draw: plan.put}); err != nil {
				return err
			}
			if plan.Refused != "" {
				return terminal.ExitWith(exitRefused, errors.New("refused: "+terminal.Clean(plan.Why)))
			}
			return apiErr
		},
	})
}

// k3sPlan is what a change would be, and what this node says of it.
type k3sPlan struct {
	MadeAt time.Time
	k3supdate.Plan
	Phase         types.KubeLifecyclePhase          // as the agent published it, of this very change; "" for none
	Reason        string                            // a sentence
	Preconditions []types.KubeLifecyclePrecondition // of that
	Against       []string
	Unknown       []string
	Edge          []string `json:",omitempty"` // nodes of KubeEdge and their kubelets, which it does not change
}

// plan looks without changing anything. Its error is the API server's: then it knows this node alone.
func (l k3sLook) plan(ctx context.Context, list func(context.Context) ([]types.Node, error), now time.Time) (p k3sPlan, err error) {
	kept, _, keptErr := device.ReadRecord[types.K3sVersionStatus](l.TopicFile(device.Self, "K3sVersionStatus"))
	l.version = cmp.Or(l.version, kept.Wanted)
	p.MadeAt, p.To, p.From = now.UTC(), l.version, cmp.Or(kept.Running, kept.Version)
	if p.To == "" {
		return p, keptErr
	}
	nodes, err := list(ctx)
	p.Plan = k3supdate.Judge(p.From, p.To, nodes)
	p.Edge = l.edge(ctx)
	s := k3sStatus{Against: []string{}, Unknown: []string{}}
	if p.Refused == "" && p.Kind != types.K3sSame {
		s = l.at(ctx, now)
	}
	if err != nil {
		s.missing(fmt.Errorf("the nodes of the cluster: %w", err))
	}
	p.Against, p.Unknown, p.Preconditions = s.Against, s.Unknown, []types.KubeLifecyclePrecondition{}
	is, _, isErr := device.ReadRecord[types.KubeLifecycle](l.TopicFile(device.Self, "KubeLifecycle"))
	if isErr == nil && is.To == p.To {
		p.Phase, p.Reason, p.Preconditions = is.Phase, is.Reason, append(p.Preconditions, is.Preconditions...)
	}
	return p, err
}

// edge are the nodes of KubeEdge that the agent knows. Without an answer nothing is said of them.
func (l k3sLook) edge(ctx context.Context) (list []string) {
	a := &device.NodesAsked{Paths: l.Paths}
	defer a.Close()
	nodes, _ := a.OfAgent(ctx)
	for _, n := range nodes.Edge {
		list = append(list, n.Name+" with kubelet "+cmp.Or(n.Kubelet, "of an unknown version"))
	}
	return list
}

func (p k3sPlan) put(t *terminal.Screen) {
	t.Put(0, terminal.Bold, "Plan for a change of k3s, nothing is changed")
	t.Field("from", terminal.Plain, terminal.OrNone(terminal.Clean(p.From)))
	t.Field("to", terminal.Plain, terminal.Clean(p.To))
	kind := map[types.K3sChange]string{
		types.K3sSame: "nothing is to change", types.K3sPatch: "patch: k3s restarts on one node after the other",
		types.K3sMinor: "minor: one node after the other is drained, and k3s restarts",
	}
	if p.Refused != "" {
		t.Field("verdict", terminal.Red, "refused, "+string(p.Refused)+": "+terminal.Clean(p.Why))
	} else {
		t.Field("verdict", terminal.Green, "allowed, "+kind[p.Kind])
	}
	if p.Commit != "" && p.Refused == "" && p.Kind != types.K3sSame {
		t.Field("commit", terminal.Yellow, "node "+terminal.Clean(p.Commit)+", the last server: once it has changed, the cluster cannot return")
	}
	if p.Phase != "" {
		t.Field("now", terminal.Plain, string(p.Phase)+": "+terminal.Clean(p.Reason))
	}
	putK3sWaits(t, p.Nodes, p.Preconditions)
	if len(p.Edge) > 0 {
		t.Field("edge nodes", terminal.Yellow, terminal.Clean(phrase.Few(p.Edge, 3))+": this does not change them. Whether KubeEdge works with the new version, its release notes say")
	}
	k3sStatus{Next: p.To, Against: p.Against, Unknown: p.Unknown}.putFindings(t)
}

// putK3sWaits shows the order of the nodes, and what a change or restart of k3s waits for.
func putK3sWaits(t *terminal.Screen, order []types.KubeLifecycleNode, preconditions []types.KubeLifecyclePrecondition) {
	for i, n := range order {
		t.Put(2, terminal.Plain, fmt.Sprintf("%d %s %s %s", i+1, terminal.Clean(n.Name), terminal.Clean(n.Version), n.State))
	}
	for _, c := range preconditions {
		switch {
		case c.Holds:
			t.Put(2, terminal.Green, "holds "+terminal.Clean(c.Name))
		case c.Release:
			t.Put(2, terminal.Yellow, "lacks "+terminal.Clean(c.Name+": "+c.Reason)+" (zedkube k3s release does without)")
		default:
			t.Put(2, terminal.Red, "lacks "+terminal.Clean(c.Name+": "+c.Reason))
		}
	}
}
