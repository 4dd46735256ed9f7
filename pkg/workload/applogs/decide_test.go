package applogs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestWhichLogsAreRead(t *testing.T) {
	cfg := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse(appID)}, DisplayName: "web",
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
	}
	runs := types.ContainerRun{ID: "containerd://1"}
	pod := types.Pod{Namespace: "eve-kube-app", Name: "web-1", UID: podID, NodeName: "n1", App: "web-9f27b-0", Containers: []types.Container{
		{Name: "init", Now: runs}, {Name: "c", Now: runs}, {Name: "crashed", Last: runs}, {Name: "waits", Waiting: "PodInitializing"},
	}}
	fine := facts{seen: true, self: types.Node{Name: "n1", InternalIP: "10.0.0.1"}, configs: map[string]types.AppInstanceConfig{appID: cfg}, pods: []types.Pod{pod}}
	all := []string{podID + "/c", podID + "/crashed", podID + "/init"}
	for name, c := range map[string]struct {
		change func(f *facts)
		read   []string
		keep   bool
		forget []string
	}{
		"every container that has a log":            {func(*facts) {}, all, false, nil},
		"not while the API server is silent":        {func(f *facts) { f.seen = false }, nil, true, nil},
		"not while this node is not in the cluster": {func(f *facts) { f.self.Name = "" }, nil, true, nil},
		"not those of another node":                 {func(f *facts) { f.self.Name = "n2" }, nil, false, nil},
		"not those of a pod of nobody's":            {func(f *facts) { f.configs = nil }, nil, false, nil},
		"those of a pod that a purge replaces": {func(f *facts) {
			cfg := cfg
			cfg.PurgeCmd.Counter = 3
			f.configs = map[string]types.AppInstanceConfig{appID: cfg}
		}, all, false, nil},
		"those of a pod whose application was deleted": {func(f *facts) { f.configs = nil; f.known = map[string]checkpoint{podID + "/c": {App: appID}} }, all, false, nil},
		"those of a pod that has a domain's label, too": {func(f *facts) {
			p := f.pods[0]
			p.AppDomain = appID + ".1.1"
			f.pods = []types.Pod{p}
		}, all, false, nil},
		"what is gone for a while is forgotten": {func(f *facts) {
			f.known = map[string]checkpoint{"old/c": {}}
			f.gone = map[string]time.Duration{"old/c": forgetAfter}
		}, all, false, []string{"old/c"}},
		"what is gone is not forgotten at once": {func(f *facts) {
			f.known = map[string]checkpoint{"old/c": {}}
			f.gone = map[string]time.Duration{"old/c": time.Second}
		}, all, false, nil},
		"what is here again is not forgotten, gone or not": {func(f *facts) {
			f.known = map[string]checkpoint{podID + "/c": {}}
			f.gone = map[string]time.Duration{podID + "/c": time.Hour}
		}, all, false, nil},
	} {
		f := fine
		c.change(&f)
		a := decide(f)
		got := map[string]string{}
		for k, w := range a.read {
			got[k] = w.app
		}
		want := map[string]string{}
		for _, k := range c.read {
			want[k] = appID
		}
		if d := cmp.Diff(want, got) + cmp.Diff(c.forget, a.forget); d != "" || a.keep != c.keep {
			t.Errorf("%s: %s, keep %v", name, d, a.keep)
		}
	}
}

func TestWhatIsReadNext(t *testing.T) {
	run := func(id string) types.ContainerRun { return types.ContainerRun{ID: id} }
	for name, c := range map[string]struct {
		now, last string
		restarts  int32
		state     checkpoint
		want      string // "<id of the instance> <flags>"
	}{
		"the first instance":                            {"a", "", 0, checkpoint{}, "a"},
		"nothing before there is one":                   {"", "", 0, checkpoint{}, ""},
		"the one before first":                          {"b", "a", 1, checkpoint{}, "a previous"},
		"on where it was":                               {"a", "", 0, checkpoint{ID: "a", Begun: true}, "a resume"},
		"from its beginning where nothing was read yet": {"a", "", 0, checkpoint{ID: "a"}, "a"},
		"nothing once all is read":                      {"a", "", 0, checkpoint{ID: "a", Begun: true, Whole: true}, ""},
		"the rest of the one before":                    {"b", "a", 1, checkpoint{ID: "a", Begun: true}, "a previous resume"},
		"the present one after the one before":          {"b", "a", 1, checkpoint{ID: "a", Begun: true, Whole: true}, "b"},
		"two instances later, nothing is lost":          {"c", "b", 2, checkpoint{ID: "a", Run: 0, Begun: true, Whole: true}, "b previous"},
		"two instances later, a rest is lost":           {"c", "b", 2, checkpoint{ID: "a", Run: 0, Begun: true}, "b previous torn"},
		"what ran before anybody looked is lost":        {"e", "d", 4, checkpoint{}, "d previous lost"},
		"instances are lost":                            {"e", "d", 4, checkpoint{ID: "a", Run: 0, Begun: true, Whole: true}, "d previous lost"},
	} {
		w := want{container: types.Container{Now: run(c.now), Last: run(c.last), Restarts: c.restarts}}
		r, ok := next(w, c.state)
		got := r.id
		for _, flag := range []struct {
			name string
			on   bool
		}{{" previous", r.previous}, {" resume", r.resume}, {" torn", r.torn}, {" lost", r.lost > 0}} {
			if flag.on {
				got += flag.name
			}
		}
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
