// Package plan is what the plans of a drain, a join and a leave share: the look ahead at
// the cluster, which changes nothing, findings on a screen, and exit codes.
package plan

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

// ExitCodes are those of all plans.
const ExitCodes = `Exit codes:
  0   the plan was made, whatever it says
  1   wrong usage, interrupted, or failed
  2   no node could be queried: the plan is based on the files of this device alone
  3   with --check: something blocks
  99  unknown command`

// clusterReader is what a plan asks of the cluster. None of it changes anything.
type clusterReader interface {
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
func LookAhead(ctx context.Context, kube clusterReader, info types.EdgeNodeInfo) (drain.PlanInput, error) {
	p := drain.PlanInput{Now: time.Now().UTC()}
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
		p.Unknown = append(p.Unknown, fmt.Sprintf("the evictions of %d of %d pods were not tried", hidden, len(p.Pods)))
	}
	return p, ctx.Err()
}

// tryEvictions asks what the API server would answer to each eviction, as dry
// runs, and returns the refusals by pod.
func tryEvictions(ctx context.Context, kube clusterReader, pods []types.Pod) map[string]error {
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

// PutFinding is one thing that was looked at, with its remedy.
func PutFinding(s *terminal.Screen, f joinplan.Finding) {
	s.Hang(fmt.Sprintf("  %-9s", f.Verdict), 11, VerdictLook(f.Verdict), terminal.Clean(f.What))
	if f.Remedy != "" {
		s.Put(11, terminal.Plain, "-> "+terminal.Clean(f.Remedy))
	}
}

// VerdictLook is how a verdict is shown.
func VerdictLook(v joinplan.Verdict) terminal.Style {
	return map[joinplan.Verdict]terminal.Style{joinplan.Blocks: terminal.Red, joinplan.Warn: terminal.Yellow, joinplan.OK: terminal.Green, joinplan.Unknown: terminal.Yellow}[v]
}
