package draincmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

func newDrainPlanCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "plan",
		Short: "Show what a drain would do now, and what would block it; changes nothing",
		Long: "Show what a drain of this node would do now, in which order, what would block it and why.\n" +
			"It changes nothing: it only reads, and tries each eviction as a dry run.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			p := o.Paths()
			info, err := device.OwnName(p)
			if err != nil {
				return err
			}
			var forecast drain.Forecast
			err = device.WithAPI(c.Context(), p, func(kube *kubeapi.Client) error {
				ahead, err := plan.LookAhead(c.Context(), kube, info)
				settings, _, _ := device.ReadRecord[types.ConfigItemValueMap](p.TopicFile("zedagent", "ConfigItemValueMap")) // none is the default
				ahead.Timeout = drain.Timeout(settings, p.Hour)
				if err == nil {
					device.JudgeStamps(c.Context(), p, ahead.Nodes)
					forecast = drain.Plan(ahead)
				}
				return err
			})
			if err != nil {
				return err
			}
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: forecast, Draw: func(s *terminal.Screen) { putPlan(s, forecast) }})
		},
	})
}

func putPlan(s *terminal.Screen, f drain.Forecast) {
	s.Put(0, terminal.Bold, "Plan for the drain of "+terminal.Clean(f.Node)+", nothing is changed")
	look := map[types.DrainOutlook]terminal.Style{types.OutlookSlow: terminal.Yellow, types.OutlookNever: terminal.Red, "": terminal.Green}[f.Outlook]
	s.Field("verdict", look, terminal.Clean(f.Verdict))
	s.Field("made at", terminal.Plain, terminal.Timestamp(f.Made))
	for _, unknown := range f.Unknown {
		s.Field("unknown", terminal.Red, terminal.Clean(unknown))
	}
	putPlanGates(s, f)
	putPlanPods(s, f)
	// The blockers and volumes look as they do in the record of a drain.
	putInTheWay(s, types.NodeDrainProgress{Blockers: f.Blockers, Volumes: f.Volumes, Stranded: f.Stranded}, f.Made)
}

// putPlanGates is what has to be had before the first eviction.
func putPlanGates(s *terminal.Screen, f drain.Forecast) {
	lock := lockText(f.Lock, f.Made)
	switch {
	case f.Lock.Waits != "":
		s.Field("lock", terminal.Yellow, strings.TrimPrefix(lock+": ", ": ")+terminal.Clean(f.Lock.Waits))
	case lock != "":
		s.Field("lock", terminal.Plain, lock)
	default:
		s.Field("lock", terminal.Plain, "free")
	}
	if f.Quorum != "" {
		s.Field("quorum", terminal.Red, terminal.Clean(f.Quorum))
	} else {
		s.Field("quorum", terminal.Plain, "kept without this node")
	}
	if f.Cordon == "" {
		s.Field("cordon", terminal.Plain, "would be set")
	} else {
		s.Field("cordon", terminal.Plain, "already set, by "+terminal.Clean(f.Cordon))
	}
	putWarnings(s, f.Warnings)
	if len(f.Peers) > 0 {
		s.Field("peers", terminal.Plain, terminal.Listed(f.Peers))
	} else {
		s.Field("peers", terminal.Yellow, "none is Ready and schedulable: nothing would be evicted")
	}
}

func putPlanPods(s *terminal.Screen, f drain.Forecast) {
	s.Gap()
	switch {
	case len(f.Pods) == 0:
		s.Put(0, terminal.Bold, "No pod would be evicted")
		return
	case !f.Evicts:
		s.Put(0, terminal.Bold, "Pods that would go down with the device")
	default:
		s.Put(0, terminal.Bold, fmt.Sprintf("Pods that would be evicted, in this order, %d at a time", f.Parallel))
	}
	i := 0
	terminal.PutList(s, f.Pods, 0, func(p drain.ForecastPod) {
		i++
		look, text := terminal.Plain, "goes"
		if p.Refused != "" {
			look, text = terminal.Yellow, "refused now"
		}
		s.Put(2, look, fmt.Sprintf("%3d  %s  %s", i, terminal.Clean(p.Pod), text))
	})
}
