package draincmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

// newDrainPlanCommand says what a drain would do now, and does nothing.
func newDrainPlanCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what a drain would do now, and what would block it; changes nothing",
		Long: "Show what a drain of this node would do now, in which order, what would block it and why.\n" +
			"It changes nothing: it reads, and tries each eviction as a dry run.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Parse(); err != nil {
				return err
			}
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			var forecast drain.Forecast
			err = device.WithAPI(c.Context(), p, func(kube *kubeapi.Client) error {
				ahead, err := LookAhead(c.Context(), kube, info)
				settings, _, _ := device.ReadRecord[types.ConfigItemValueMap](p.TopicFile("zedagent", "ConfigItemValueMap")) // none is the default
				ahead.Timeout = drain.Timeout(settings, p.Hour)
				if err == nil {
					nodescmd.JudgeStamps(c.Context(), p, ahead.Nodes)
					forecast = drain.Plan(ahead)
				}
				return err
			})
			if err != nil {
				return err
			}
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: forecast, Draw: func(s *terminal.Screen) { putPlan(s, forecast) }})
		},
	}
	out.Flag(c)
	return c
}

// foreseer is what a plan asks of the cluster. None of it changes anything.
type foreseer interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	DrainLock(ctx context.Context) (types.DrainLock, error)
	PodsToEvict(ctx context.Context, node string) ([]types.Pod, error)
	Storage(ctx context.Context, node string) (types.Storage, error)
	Situations(ctx context.Context, node string, pods []types.Pod) ([]types.PodSituation, error)
	PlanEvict(ctx context.Context, pod types.Pod) error
}

const (
	// triedPods bounds the evictions that are tried: beyond it the budgets as
	// they are listed have to do.
	triedPods = 500
	triedWith = 8                // at a time, as the drain does
	trialsEnd = 60 * time.Second // for all of them
)

// LookAhead asks the cluster all that a plan needs. Without nodes and pods
// there is no plan; what else cannot be had is said in it.
func LookAhead(ctx context.Context, kube foreseer, info types.EdgeNodeInfo) (drain.Prospect, error) {
	p := drain.Prospect{Now: time.Now().UTC()}
	nodes, own, err := device.NodesAndOwn(ctx, kube, info)
	if p.Nodes = nodes; err != nil {
		return p, err
	}
	p.Own = own.Name
	if p.Pods, err = kube.PodsToEvict(ctx, own.Name); err != nil {
		return p, err
	}
	unknown := func(what string, err error) {
		if err != nil {
			p.Unknown = append(p.Unknown, fmt.Sprintf("%s: %v", what, err))
		}
	}
	p.Lock, err = kube.DrainLock(ctx)
	unknown("the drain lock", err)
	p.Storage, err = kube.Storage(ctx, own.Name)
	unknown("the volumes", err)
	p.Situations, err = kube.Situations(ctx, own.Name, p.Pods)
	unknown("why pods do not move", err)
	p.Refused = tryEvictions(ctx, kube, p.Pods)
	if hidden := len(p.Pods) - triedPods; hidden > 0 {
		p.Unknown = append(p.Unknown, fmt.Sprintf("the evictions of the last %d pods were not tried", hidden))
	}
	return p, ctx.Err()
}

// tryEvictions asks what the API server would answer to each eviction, as dry
// runs, and returns the refusals by pod.
func tryEvictions(ctx context.Context, kube foreseer, pods []types.Pod) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, trialsEnd)
	defer cancel()
	answers := make([]error, min(len(pods), triedPods))
	var trials errgroup.Group
	trials.SetLimit(triedWith)
	for i := range answers {
		trials.Go(func() error {
			answers[i] = kube.PlanEvict(ctx, pods[i])
			return nil // each pod has an answer of its own
		})
	}
	_ = trials.Wait()
	refused := map[string]error{}
	for i, err := range answers {
		if err != nil {
			refused[pods[i].Key()] = err
		}
	}
	return refused
}
