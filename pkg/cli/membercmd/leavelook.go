package membercmd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

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
	f.Unknown = foresee(ctx, p, info, &f)
	f.Consent = standingConsent(p, f.Membership)
	f.Loss, f.LossOf = lossOf(p, f)
	return f
}

// onlyHere is what the leave would lose, by the rules of the drain.
func onlyHere(f joinplan.LeaveFacts) []types.LeaveVolume {
	return drain.OnlyHere(*f.Storage, f.Nodes, f.Node, f.Now)
}

// foresee asks the cluster, as the plan of a drain does.
func foresee(ctx context.Context, p device.Paths, info types.EdgeNodeInfo, f *joinplan.LeaveFacts) (unknown []string) {
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
			f.NoNodes = "the cluster does not say."
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
func appsHere(dir string) (out []joinplan.LocalApp) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries[:min(len(entries), mostApps)] {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		c, _, err := device.ReadRecord[types.AppInstanceConfig](filepath.Join(dir, e.Name()))
		if err != nil || !c.IsDesignatedNodeID {
			continue
		}
		out = append(out, joinplan.LocalApp{Name: c.DisplayName, Only: c.AffinityType == types.AffinityRequired, Adapters: len(c.IoAdapterList)})
	}
	slices.SortFunc(out, func(a, b joinplan.LocalApp) int { return strings.Compare(a.Name, b.Name) })
	return out
}
