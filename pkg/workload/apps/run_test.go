package apps

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestHowAnApplicationRunsIsWhatItsPodsSay(t *testing.T) {
	ran := func(started, finished time.Duration) func(*types.Pod) {
		return func(p *types.Pod) {
			c := types.Container{Name: "c", Now: types.ContainerRun{Started: now.Add(-started)}}
			if finished > 0 {
				c.Now.Finished = now.Add(-finished)
			}
			p.Containers = append(p.Containers, c)
		}
	}
	restarted := func(p *types.Pod) { p.RestartCount = 2 }
	earlier := types.AppRun{Pod: "a", Since: now.Add(-20 * time.Hour), Restarts: 7}
	gone := types.AppRun{Since: now.Add(-2 * time.Hour)}
	for name, c := range map[string]struct {
		pods   []types.Pod
		old    types.AppRun
		unseen bool
		want   types.AppRun
	}{
		"since its pod was made":              {[]types.Pod{pod("a", age(time.Hour))}, types.AppRun{}, false, types.AppRun{Pod: "a", Since: now.Add(-time.Hour)}},
		"since its container started":         {[]types.Pod{pod("a", age(time.Hour), ran(50*time.Minute, 0), restarted)}, types.AppRun{}, false, types.AppRun{Pod: "a", Since: now.Add(-50 * time.Minute), Restarts: 2}},
		"since its container ended":           {[]types.Pod{pod("a", pending, age(time.Hour), ran(50*time.Minute, time.Minute))}, types.AppRun{}, false, types.AppRun{Pod: "a", Since: now.Add(-time.Minute)}},
		"restarts of all pods":                {[]types.Pod{pod("a", age(time.Hour), restarted), pod("b", age(2*time.Hour), restarted)}, types.AppRun{}, false, types.AppRun{Pod: "a", Since: now.Add(-time.Hour), Restarts: 4}},
		"no pod, from now on":                 {nil, earlier, false, types.AppRun{Since: now}},
		"no pod, as before":                   {nil, gone, false, gone},
		"as it was while nothing can be seen": {[]types.Pod{pod("a", age(time.Hour))}, earlier, true, earlier},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{now: now, self: types.Node{Name: "n1"}}
			if c.unseen {
				f.unseenSince = now.Add(-time.Minute)
			}
			if len(c.pods) > 0 && !c.unseen {
				c.want.Pod = c.pods[0].Name
			}
			if got := f.run(app{pods: c.pods}, c.old); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
