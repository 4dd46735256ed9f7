package apps

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// Off its designated node an application that its node does not claim is to be
// inactive there.
func TestAMachineThatRestartsStaysClaimedByItsNode(t *testing.T) {
	const before, after = name + "x7k2p", name + "abcde"
	ran := status(types.AppKubeRunning, here, isVMI, console(before))
	rows := map[string]struct {
		config types.AppInstanceConfig
		last   types.ENClusterAppStatus
		set    func(*types.AppSet)
		pods   []types.Pod
		since  time.Duration
		want   types.ENClusterAppStatus
	}{
		"its launcher ends":                 {pods: []types.Pod{launcher(before, dying)}, want: status(types.AppKubeNotRunning, here, isVMI)},
		"its launcher is gone":              {want: status(types.AppKubeNotRunning, here, isVMI)},
		"the next launcher has no node yet": {pods: []types.Pod{launcher(after, pending, on(""))}, want: status(types.AppKubeNotRunning, here, isVMI, console(after))},
		"it goes on so": {
			last: status(types.AppKubeNotRunning, here, isVMI), pods: []types.Pod{launcher(after, pending, on(""))}, since: restarts - 1,
			want: status(types.AppKubeNotRunning, here, isVMI, console(after)),
		},
		"for too long":                        {pods: []types.Pod{launcher(after, pending, on(""))}, since: restarts, want: status(types.AppKubeNotRunning, isVMI, console(after))},
		"nothing of it is there for too long": {since: restarts, want: status(types.AppKubeNotInCluster, isVMI)},
		"it starts on another node":           {pods: []types.Pod{launcher(after, pending, on("n2"))}, want: status(types.AppKubeNotRunning, isVMI, console(after))},
		"it starts here":                      {pods: []types.Pod{launcher(after, pending)}, want: status(types.AppKubeNotRunning, here, isVMI, console(after))},
		"its set is gone":                     {set: func(s *types.AppSet) { *s = types.AppSet{} }, want: status(types.AppKubeNotInCluster, isVMI)},
		"its set is being deleted":            {set: func(s *types.AppSet) { s.Deleted = now }, want: status(types.AppKubeNotInCluster, isVMI)},
		"it was purged":                       {last: status(types.AppKubeRunning, here, isVMI, console("my-app-b3e2f-0x7k2p")), want: status(types.AppKubeNotInCluster, isVMI)},
		"it was elsewhere":                    {last: status(types.AppKubeRunning, isVMI, console(before)), want: status(types.AppKubeNotInCluster, isVMI)},
		"a container restarts in its pod":     {config: config(container), last: status(types.AppKubeRunning, here), want: status(types.AppKubeNotInCluster)},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			if r.config.DisplayName == "" {
				r.config = config(vm)
			}
			if r.last == (types.ENClusterAppStatus{}) {
				r.last = ran
			}
			set := types.AppSet{Kind: types.KindVMIReplicaSet, Name: name, UID: "set", Wanted: 1}
			if r.set != nil {
				r.set(&set)
			}
			f := facts{
				now: now, uptime: up, self: types.Node{Name: "n1"}, pods: r.pods, configs: map[string]types.AppInstanceConfig{appID: r.config},
				statuses: map[string]types.ENClusterAppStatus{appID: r.last}, sets: map[string]types.AppSet{set.Key(): set},
				memory: memory{since: map[string]time.Duration{"restarts/" + appID: up - r.since}},
			}
			got := decide(f)
			if d := cmp.Diff(r.want, got.publish[appID]); d != "" {
				t.Error("want -, got +\n" + d)
			}
			if holds := r.want.ScheduledOnThisNode && len(r.pods) > 0 && r.pods[0].NodeName == ""; holds && got.again != restarts-r.since {
				t.Errorf("it looks again in %s", got.again)
			}
		})
	}
}
