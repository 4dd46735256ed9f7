package statusserver

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

var (
	noon  = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	other = uuid.MustParse("11111111-2222-4333-8444-555566667777")
)

func TestJoinerIsToldWhyHeMustWait(t *testing.T) {
	silent := func(f *facts) { f.api = types.APIStatus{SilentSince: noon.Add(-time.Minute), Reason: "refused"} }
	worker := func(f *facts) { f.status.IsWorkerNode = true }
	rows := map[string]struct {
		f      facts
		asked  uuid.UUID
		reason string
		phase  string
		three  string // ClusterReady, NodeReady, ControlPlaneReady
		ready  bool
		stated string // part of the sentence, where it matters
	}{
		"a working server":                     {f: working(), reason: "Ready", phase: "Provisioned", three: "True True True", ready: true},
		"asked for its own cluster":            {f: working(), asked: uuid.MustParse(clusterID), reason: "Ready", phase: "Provisioned", three: "True True True", ready: true},
		"asked for another cluster":            {f: working(), asked: other, reason: "OtherCluster", phase: "Provisioned", three: "True True True", stated: other.String()},
		"another cluster, while it is silent":  {f: working(silent), asked: other, reason: "OtherCluster", phase: "Unknown", three: "Unknown Unknown Unknown"},
		"no cluster":                           {f: working(func(f *facts) { f.status.ClusterID.UUID = uuid.Nil }), asked: other, reason: "NoCluster", phase: "Provisioning", three: "False True True"},
		"no kubeconfig":                        {f: working(silent, func(f *facts) { f.api.NoKubeconfig = true }), reason: "NoKubeconfig", phase: "Provisioning", three: "False Unknown Unknown"},
		"nothing heard of the API server":      {f: working(func(f *facts) { f.api, f.heard = types.APIStatus{}, false }), reason: "APIUnknown", phase: "Unknown", three: "Unknown Unknown Unknown"},
		"the API server is silent":             {f: working(silent), reason: "APISilent", phase: "Unknown", three: "Unknown Unknown Unknown", stated: "since 2026-05-03T11:59:00Z"},
		"lists still being read":               {f: working(func(f *facts) { f.api.Synced = false }), reason: "TablesNotWhole", phase: "Unknown", three: "Unknown Unknown Unknown"},
		"the device is not known yet":          {f: working(func(f *facts) { f.info = types.EdgeNodeInfo{} }), reason: "DeviceUnknown", phase: "Unknown", three: "Unknown Unknown Unknown"},
		"no Node yet":                          {f: working(func(f *facts) { delete(f.nodes, "n1") }), reason: "NodeUnknown", phase: "Provisioning", three: "False Unknown Unknown", stated: "no Node n1"},
		"its name belongs to another device":   {f: working(own(func(n *types.Node) { n.UUID = "other" })), reason: "NodeUnknown", phase: "Provisioning", three: "False Unknown Unknown", stated: "another device"},
		"no control-plane label yet":           {f: working(own(func(n *types.Node) { n.ControlPlane, n.Etcd = false, false })), reason: "NoControlPlane", phase: "Provisioning", three: "False True False"},
		"no etcd label yet":                    {f: working(own(func(n *types.Node) { n.Etcd = false })), reason: "NoEtcd", phase: "Provisioning", three: "False True False"},
		"the Node is not ready":                {f: working(own(func(n *types.Node) { n.Ready = types.ConditionFalse })), reason: "Ready", phase: "Provisioned", three: "True False True", ready: true},
		"the kubelet does not report":          {f: working(own(func(n *types.Node) { n.Ready = types.ConditionUnknown })), reason: "Ready", phase: "Provisioned", three: "True Unknown True", ready: true},
		"the Node has no conditions yet":       {f: working(own(func(n *types.Node) { n.Ready = "" })), reason: "Ready", phase: "Provisioned", three: "True Unknown True", ready: true},
		"its etcd member is a learner":         {f: working(own(func(n *types.Node) { n.EtcdVoter = types.ConditionFalse })), reason: "Ready", phase: "Provisioned", three: "True True False", ready: true},
		"a worker":                             {f: working(worker, own(func(n *types.Node) { n.ControlPlane, n.Etcd = false, false })), reason: "Worker", phase: "Provisioned", three: "False True False"},
		"a worker that is not ready":           {f: working(worker, own(func(n *types.Node) { *n = types.Node{Name: "n1", UUID: deviceID} })), reason: "Worker", phase: "Provisioning", three: "False Unknown False"},
		"a worker whose API server is silent":  {f: working(worker, silent), reason: "Worker", phase: "Unknown", three: "False Unknown Unknown"},
		"a worker by name that still learns":   {f: working(worker, own(func(n *types.Node) { n.EtcdVoter = types.ConditionFalse })), reason: "Ready", phase: "Provisioned", three: "True True False", ready: true},
		"a worker by name that serves already": {f: working(worker), reason: "Ready", phase: "Provisioned", three: "True True True", ready: true},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			got := describe(r.f, r.asked)
			var three string
			for i, c := range got.Status.Conditions {
				if want := []string{"ClusterReady", "NodeReady", "ControlPlaneReady"}[i]; c.Type != want {
					t.Errorf("condition %d is %s, want %s", i, c.Type, want)
				}
				if c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero() {
					t.Errorf("%s says too little: %+v", c.Type, c)
				}
				three += " " + string(c.Status)
			}
			if got.Reason != r.reason || got.Status.Phase != r.phase || three != " "+r.three || got.State != map[bool]string{true: "ready", false: "waiting"}[r.ready] {
				t.Errorf("got %s %s, %s,%s, want %s %s, %s", got.State, got.Reason, got.Status.Phase, three, r.reason, r.phase, r.three)
			}
			if !strings.Contains(got.Why, r.stated) {
				t.Errorf("got %q, want it to say %q", got.Why, r.stated)
			}
			named := answer(r.f) != ""
			if named != (got.Cluster != "") || named != (got.Status.Conditions[0].Status == types.ConditionTrue) || r.asked == uuid.Nil && named != (got.State == "ready") {
				t.Errorf("plain answer %q, but JSON %+v", answer(r.f), got)
			}
		})
	}
}

func TestTimesOfChangesAreStableAndHonest(t *testing.T) {
	f := working(func(f *facts) { f.now = noon }, own(func(n *types.Node) { n.ReadySince = noon.Add(-time.Hour) }))
	step := func(after time.Duration, change ...func(*facts)) statusJSON {
		f.now = f.now.Add(after)
		for _, c := range change {
			c(&f)
		}
		f.marks = decide(f).marks
		return describe(f, uuid.Nil)
	}
	want := func(got statusJSON, state string, since ...time.Time) {
		t.Helper()
		all := []time.Time{got.Since}
		for _, c := range got.Status.Conditions {
			all = append(all, c.LastTransitionTime)
		}
		for i := range since {
			if !all[i].Equal(since[i]) || got.State != state {
				t.Errorf("time %d: %s since %s, want %s since %s", i, got.State, all[i], state, since[i])
			}
		}
	}
	hourAgo, lost := noon.Add(-time.Hour), noon.Add(2*time.Minute)
	want(step(0), "ready", noon, noon, hourAgo, noon)
	want(step(time.Minute), "ready", noon, noon, hourAgo, noon)
	want(step(time.Minute, func(f *facts) { f.api.SilentSince = noon.Add(time.Minute) }), "waiting", lost, lost, lost, lost)
	want(step(time.Minute, func(f *facts) { f.api.Reason = "something else" }), "waiting", lost, lost, lost, lost)
	back := f.now.Add(time.Minute)
	want(step(time.Minute, func(f *facts) { f.api.SilentSince = time.Time{} }), "ready", back, back, hourAgo, back)
	// The reason changes, the state does not.
	gone := f.now.Add(time.Minute)
	want(step(time.Minute, own(func(n *types.Node) { n.Etcd = false })), "waiting", gone, gone, hourAgo, gone)
	want(step(time.Minute, own(func(n *types.Node) { n.ControlPlane = false })), "waiting", gone, gone, hourAgo, gone)
	// The Node was not ready for a moment that nobody here saw.
	flapped := f.now.Add(30 * time.Second)
	want(step(time.Minute, own(func(n *types.Node) { n.ReadySince = flapped })), "waiting", gone, gone, flapped, gone)
	// A clock of the cluster that runs ahead does not make a time in the future.
	ahead := f.now.Add(time.Minute)
	want(step(time.Minute, own(func(n *types.Node) { n.Ready, n.ReadySince = types.ConditionFalse, f.now.Add(time.Hour) })), "waiting", gone, gone, ahead, gone)
}

func TestNodeReadyIsAsOldAsTheNodeTells(t *testing.T) {
	f := working(func(f *facts) { f.now, f.api.Synced = noon, false })
	f.marks = decide(f).marks // the agent starts and does not see its Node yet
	f.now = noon.Add(time.Second)
	f.api.Synced = true
	own(func(n *types.Node) { n.ReadySince = noon.Add(-time.Hour) })(&f)
	if c := describe(f, uuid.Nil).Status.Conditions[1]; c.Status != types.ConditionTrue || !c.LastTransitionTime.Equal(noon.Add(-time.Hour)) {
		t.Errorf("a Node that was Ready before the agent started: got %+v", c)
	}
}

func TestRequestsAloneMoveNoTime(t *testing.T) {
	f := working(func(f *facts) { f.now = noon })
	f.marks = decide(f).marks
	f.now = noon.Add(time.Minute)
	own(func(n *types.Node) { n.Etcd = false })(&f)
	if got := describe(f, uuid.Nil); !got.Since.Equal(f.now) {
		t.Errorf("a change that no step has seen is told as of %s", got.Since)
	}
	if m := f.marks[markState]; m.value != "ready" || !m.since.Equal(noon) {
		t.Errorf("the request changed the marks: %+v", m)
	}
	if got := describe(f, other); got.Reason != "OtherCluster" || !got.Since.Equal(f.now) {
		t.Errorf("who asks for another cluster while this one waits reads %+v", got)
	}
}

func TestWhoAsksForAnotherClusterLearnsSinceWhenThisOneIsIts(t *testing.T) {
	f := working(own(func(n *types.Node) { n.Etcd = false }))
	f.marks = decide(f).marks
	f.now = noon.Add(time.Hour)
	own(func(n *types.Node) { n.Etcd = true })(&f)
	f.marks = decide(f).marks
	if got := describe(f, uuid.Nil); got.State != "ready" || !got.Since.Equal(f.now) {
		t.Errorf("got %+v", got)
	}
	if got := describe(f, other); got.State != "waiting" || !got.Since.Equal(noon) || got.Cluster != clusterID {
		t.Errorf("got %+v", got)
	}
}

func TestJSONIsForWhoAsksForIt(t *testing.T) {
	rows := map[string]struct {
		accept []string
		want   bool
	}{
		"nothing, as joining nodes":      {},
		"anything, as curl":              {accept: []string{"*/*"}},
		"JSON":                           {accept: []string{"application/json"}, want: true},
		"JSON in capitals, or anything":  {accept: []string{"Application/JSON, */*;q=0.1"}, want: true},
		"JSON in a second header":        {accept: []string{"text/html", "application/json;q=0.9"}, want: true},
		"plain text rather than JSON":    {accept: []string{"text/plain, application/json;q=0.5"}},
		"JSON rather than plain text":    {accept: []string{"text/plain;q=0.5, application/json"}, want: true},
		"no JSON at all":                 {accept: []string{"application/json;q=0, */*"}},
		"a quality that is no number":    {accept: []string{"application/json;q=much"}},
		"a quality that is not a number": {accept: []string{"application/json;q=NaN"}},
		"a subtype of another kind":      {accept: []string{"application/vnd.api+json"}},
		"garbage":                        {accept: []string{";;,,q=1,/,\x00"}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := wantsJSON(r.accept); got != r.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
