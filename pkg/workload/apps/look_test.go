package apps

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestOfThousandsOfPodsThoseOfTheConfiguredAndThoseWhereANodeDoesNotServeCount(t *testing.T) {
	cam := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse("6a1f4a9e-33c1-4a55-8c0e-7f5d0f2f0c38"), Version: "1"}, DisplayName: "cam",
	}
	var pods pubsub.Table[types.Pod]
	add := func(name, node string, change func(*types.Pod)) {
		p := types.Pod{Namespace: "eve-kube-app", Name: name, NodeName: node, App: "other"}
		if change != nil {
			change(&p)
		}
		_ = pods.Publish(p.Key(), p)
	}
	add("another's, where all is well", "n1", nil)
	add("by its name", "n1", func(p *types.Pod) { p.App = cam.KubeName() })
	add("by its owner", "n1", func(p *types.Pod) { p.Owner = types.Owner{Kind: types.KindReplicaSet, Name: cam.KubeName()} })
	add("by its domain", "n1", func(p *types.Pod) { p.AppDomain = "6A1F4A9E-33C1-4A55-8C0E-7F5D0F2F0C38.1.1" })
	add("where nothing is heard", "lost", nil)
	add("where nothing may start", "fenced", nil)
	add("where nothing may start, says somebody", "out", nil)
	add("where there is no node", "deleted", nil)
	add("nowhere yet", "", nil)
	c := &Component{AppPods: &pods}
	got := []string{}
	for _, p := range c.pods(facts{
		configs: map[string]types.AppInstanceConfig{cam.UUIDandVersion.UUID.String(): cam},
		nodes: map[string]types.Node{
			"n1":     {Name: "n1", Ready: types.ConditionTrue},
			"lost":   {Name: "lost", Ready: types.ConditionUnknown},
			"fenced": {Name: "fenced", Ready: types.ConditionTrue, Fence: &types.Fence{}},
			"out":    {Name: "out", Ready: types.ConditionTrue, OutOfService: true},
		},
	}) {
		got = append(got, p.Name)
	}
	slices.Sort(got)
	want := []string{
		"by its domain", "by its name", "by its owner", "nowhere yet", "where nothing is heard", "where nothing may start",
		"where nothing may start, says somebody", "where there is no node",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

// A Lease that is renewed every ten seconds looks unchanged in one answer, however
// long that took to come.
func TestALeaseIsUnrenewedBetweenTwoLooksAndNotDuringOne(t *testing.T) {
	lost := types.Node{Name: "n2", UID: "uid-n2", Ready: types.ConditionUnknown}
	type look struct{ began, came time.Duration }
	rows := map[string]struct {
		looks []look
		want  bool
	}{
		"one slow look":                      {[]look{{0, 25}}, false},
		"one quick look, long ago":           {[]look{{0, 1}}, false},
		"two looks":                          {[]look{{0, 1}, {13, 14}}, true},
		"two looks too close":                {[]look{{0, 1}, {12, 13}}, false},
		"a slow look and a quick one":        {[]look{{0, 20}, {25, 26}}, false},
		"a slow look and one much later":     {[]look{{0, 20}, {32, 33}}, true},
		"three looks, the first of them old": {[]look{{0, 1}, {6, 7}, {13, 14}}, true},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			var l fresh
			for _, k := range r.looks {
				l = l.then(fresh{at: up + k.began*time.Second, came: up + k.came*time.Second, tried: up, nodes: []types.Node{lost}})
			}
			if why := l.unrenewed(lost, true); (why == "") != r.want {
				t.Errorf("it says %q", why)
			}
		})
	}
}
