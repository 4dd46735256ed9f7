package draincmd

import (
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
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
			"It changes nothing: it only reads, and tries each eviction as a dry run.\n\n" + exitCodes,
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
	}
	out.Flag(c)
	return c
}
