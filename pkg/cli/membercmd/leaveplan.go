package membercmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

func newLeavePlanCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var check, without bool
	c := &cobra.Command{
		Use:   "plan [--check] [--without-cluster]",
		Short: "Show what a leave would wait for and what would be lost; changes nothing",
		Long: "Show what this node's leave would wait for, in order; which data and applications are only here; what would be left\n" +
			"of etcd, and what stays behind. It changes nothing: it only reads, and tries each eviction as a dry run.\n\n" + plan.ExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), time.Second, func(ctx context.Context) terminal.View {
				if without {
					return planWithout(ctx, o.Paths(), check)
				}
				return planLeave(ctx, o.Paths(), check)
			})
		},
	}
	out.Flag(c)
	c.Flags().BoolVar(&check, "check", false, "exit with code 3 if something blocks")
	c.Flags().BoolVar(&without, "without-cluster", false, "plan a leave without the cluster, from what this node knows by itself")
	return c
}

func planLeave(ctx context.Context, paths device.Paths, check bool) terminal.View {
	facts := lookAtLeave(ctx, paths, device.Now(paths.Root).UTC())
	if ctx.Err() != nil {
		return terminal.View{Err: terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))}
	}
	p := joinplan.Leave(facts)
	s := terminal.View{Data: p, Draw: func(s *terminal.Screen) { putLeavePlan(s, p) }}
	switch {
	case check && p.Verdict == joinplan.Blocks:
		s.Err = terminal.ExitWith(terminal.ExitFound, errors.New("something blocks the leave"))
	case facts.Nodes == nil:
		s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("the plan is based on files alone: "+terminal.Clean(facts.NoNodes)))
	}
	return s
}

func putLeavePlan(s *terminal.Screen, p joinplan.LeavePlan) {
	s.Put(0, terminal.Bold, "Plan for the leave of "+cmp.Or(terminal.Clean(p.Node), "this node")+", nothing is changed")
	s.Field("verdict", plan.VerdictLook(p.Verdict), terminal.Clean(p.Summary))
	s.Field("made at", terminal.Plain, terminal.Timestamp(p.Made))
	for _, unknown := range p.Unknown {
		s.Field("unknown", terminal.Red, terminal.Clean(unknown))
	}
	for _, part := range []struct {
		title string
		found []joinplan.Finding
	}{{"Steps that it would wait for, in order", p.Steps}, {"Volumes with data here", p.Volumes}, {"Applications that depend on this node", p.Apps}} {
		if len(part.found) == 0 {
			continue
		}
		s.Gap()
		s.Put(0, terminal.Bold, part.title)
		terminal.PutList(s, part.found, 0, func(f joinplan.Finding) { plan.PutFinding(s, f) })
	}
	if p.GiveUp != nil {
		putGiveUp(s, *p.GiveUp, "zedkube leave --give-up-data")
	}
	s.Gap()
	s.Put(0, terminal.Bold, "What remains on this device and in the cluster")
	for _, what := range p.Stays {
		s.Put(2, terminal.Plain, terminal.Clean(what))
	}
}

// putGiveUp is what a leave loses, and the command that consents to it.
func putGiveUp(s *terminal.Screen, g joinplan.GiveUp, command string) {
	s.Gap()
	s.Put(0, terminal.Bold, "What would have to be given up")
	for _, line := range giveUpLines(g) {
		s.Put(2, terminal.Red, line)
	}
	if !g.Given.IsZero() {
		s.Put(2, terminal.Plain, "Consent to its loss was given at "+terminal.Timestamp(g.Given)+". To withdraw it: zedkube leave --cancel")
		return
	}
	s.Put(2, terminal.Plain, "At a terminal: "+command)
	s.Put(2, terminal.Plain, "In a script:   "+command+" --digest "+g.Digest)
}

// configInterval is zedagent's own (docs/wire.md, "Settings").
const configInterval = 60 * time.Second

// lookAtLeave asks all that a plan of a leave needs. What cannot be had is said
// in it.
func lookAtLeave(ctx context.Context, p device.Paths, now time.Time) joinplan.LeaveFacts {
	f := joinplan.LeaveFacts{Now: now, Interval: configInterval}
	info, _, err := device.ReadRecord[types.EdgeNodeInfo](p.TopicFile("zedagent", "EdgeNodeInfo"))
	if err == nil {
		f.Node, f.Device = info.NodeName(), info.DeviceID
	}
	if m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership")); err == nil {
		f.Membership = &m
	}
	if s, _, err := device.ReadRecord[types.ConfigItemValueMap](p.TopicFile("zedagent", "ConfigItemValueMap")); err == nil {
		f.Interval = s.Duration(types.SettingConfigInterval, time.Second, configInterval)
	}
	if s, _, err := device.ReadRecord[types.ZedAgentStatus](device.ZedagentStatus(p)); err == nil {
		f.Fetched = &s.ConfigGetStatus
	}
	f.Apps = appsHere(filepath.Join(p.RunDir(), "zedagent", "AppInstanceConfig"))
	if f.Membership != nil && !f.Membership.Belongs() {
		f.NoNodes = "this device is not a member of a cluster."
		return f
	}
	f.Unknown = lookAhead(ctx, p, info, &f)
	f.Consent = standingConsent(p, f.Membership)
	f.Loss, f.LossOf = lossOf(p, f)
	return f
}

// lookAhead asks the cluster, as the plan of a drain does.
func lookAhead(ctx context.Context, p device.Paths, info types.EdgeNodeInfo, f *joinplan.LeaveFacts) (unknown []string) {
	err := device.WithAPI(ctx, p, func(kube *kubeapi.Client) error {
		ahead, err := plan.LookAhead(ctx, kube, info)
		if err != nil {
			return err
		}
		device.JudgeStamps(ctx, p, ahead.Nodes)
		f.Node, f.Nodes, unknown = ahead.Own, ahead.Nodes, ahead.Unknown
		if !slices.ContainsFunc(unknown, func(what string) bool { return strings.HasPrefix(what, "the volumes: ") }) {
			f.Storage = &ahead.Storage
		} else {
			f.NoNodes = "the volumes could not be read."
		}
		plan := drain.Plan(ahead)
		f.Drain = &joinplan.DrainAhead{Verdict: plan.Verdict, Outlook: plan.Outlook, Pods: len(plan.Pods), Stranded: plan.Stranded}
		return nil
	})
	if err != nil {
		f.NoNodes = err.Error() + "."
	}
	return unknown
}

// mostApps bounds the applications that are looked at.
const mostApps = 1000

// appsHere are the applications that the controller designates to this device.
func appsHere(dir string) (out []types.AppInstanceConfig) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries[:min(len(entries), mostApps)] {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		c, _, err := device.ReadRecord[types.AppInstanceConfig](filepath.Join(dir, e.Name()))
		if err == nil && c.IsDesignatedNodeID {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b types.AppInstanceConfig) int { return strings.Compare(a.DisplayName, b.DisplayName) })
	return out
}
