package joinplan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func replica(node string, healthy bool) types.Replica {
	r := types.Replica{Node: node}
	if healthy {
		r.HealthyAt = noon
	}
	return r
}

// ready is a node that can leave four others.
func ready(change ...func(*LeaveFacts)) LeaveFacts {
	good := types.ConfigGetSuccess
	f := LeaveFacts{
		Now: noon, Node: "n1", Device: device, Interval: time.Minute, Fetched: &good,
		Membership: &types.ClusterMembership{State: types.MembershipDoubtful, InvalidSince: noon.Add(-2 * time.Minute), Config: &types.EdgeNodeClusterConfig{}},
		Drain:      &DrainAhead{Verdict: "nothing is in the way: 2 pods would go", Pods: 2},
		Storage: &types.Storage{Longhorn: true, Volumes: []types.Volume{
			{Name: "pvc-1", Claim: "app/data", Wanted: 2, Replicas: []types.Replica{replica("n1", true), replica("n2", true), replica("n3", true)}},
			{Name: "pvc-2", Wanted: 1, Replicas: []types.Replica{replica("n3", true)}},
		}},
	}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		f.Nodes = append(f.Nodes, types.Node{
			Name: name, Etcd: true, Ready: types.ConditionTrue, Agent: &types.AgentStamp{Masters: []uuid.UUID{cluster}},
		})
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func TestANodeThatCanLeaveIsToldInWhichOrder(t *testing.T) {
	p := Leave(ready())
	if p.Verdict != OK || p.Summary != "It can leave, and nothing is lost." {
		t.Errorf("%s %q", p.Verdict, p.Summary)
	}
	var order []string
	for _, s := range p.Steps {
		order = append(order, s.Check)
	}
	if got := strings.Join(order, " "); got != "configuration decision drain quorum end" {
		t.Error(got)
	}
	said(t, p.Steps, "decision", OK, "5 intervals of 1m0s: 3m0s more")
	if len(p.Volumes) != 1 || len(p.Stays) != 3 {
		t.Errorf("%+v", p)
	}
}

func TestWhatIsInTheWayOfALeave(t *testing.T) {
	volume := func(change func(*types.Volume)) func(*LeaveFacts) {
		return func(f *LeaveFacts) { change(&f.Storage.Volumes[0]) }
	}
	down := func(nodes ...int) func(*LeaveFacts) {
		return func(f *LeaveFacts) {
			for _, i := range nodes {
				f.Nodes[i].Ready = types.ConditionFalse
			}
		}
	}
	last := volume(func(v *types.Volume) { v.Replicas = v.Replicas[:1] })
	for name, c := range map[string]struct {
		change func(*LeaveFacts)
		check  string
		want   Verdict
		says   string
	}{
		"in no cluster":    {func(f *LeaveFacts) { f.Membership.State = types.MembershipNever }, "configuration", Blocks, "nothing to leave"},
		"it has left":      {func(f *LeaveFacts) { f.Membership.State = types.MembershipLeft }, "configuration", Blocks, "nothing to leave"},
		"still a member":   {func(f *LeaveFacts) { f.Membership.State = types.MembershipMember }, "configuration", Warn, "still configures this device as a member"},
		"nothing is known": {func(f *LeaveFacts) { f.Membership = nil }, "configuration", Unknown, "no ClusterMembership"},
		"a worker":         {func(f *LeaveFacts) { f.Membership.Config.IsWorkerNode = true }, "decision", Warn, "when that is requested here"},
		"a peer vetoes":    {func(f *LeaveFacts) { f.Nodes[1].Agent.Masters = []uuid.UUID{device} }, "decision", Warn, "Node n2 has been configured with this device as a master"},
		"a peer may veto": {func(f *LeaveFacts) {
			f.Nodes[1].Agent.Masters, f.Nodes[1].StampUnconfirmed = []uuid.UUID{device}, true
		}, "decision", Warn, "whether its zedkube still runs is not known"},
		"a peer that was one of ours": {func(f *LeaveFacts) {
			f.Nodes = f.Nodes[:2]
			f.Nodes[1].Agent.Masters, f.Nodes[1].StampStale = []uuid.UUID{device}, true
		}, "decision", Warn, "an hour must pass"},
		"no controller":        {func(f *LeaveFacts) { bad := types.ConfigGetFail; f.Fetched = &bad }, "decision", Warn, "starts over"},
		"nobody has been told": {func(f *LeaveFacts) { f.Nodes = f.Nodes[:1] }, "decision", Warn, "an hour must pass"},
		"a drain that hangs": {func(f *LeaveFacts) {
			f.Drain.Outlook, f.Drain.Verdict = types.OutlookNever, "it would not end by itself"
		}, "drain", Blocks, "would not end by itself"},
		"a slow drain":        {func(f *LeaveFacts) { f.Drain.Outlook = types.OutlookSlow }, "drain", Warn, "of 2 pods"},
		"no drain":            {func(f *LeaveFacts) { f.Drain = nil }, "drain", Unknown, "is unknown"},
		"the only member":     {func(f *LeaveFacts) { f.Nodes = f.Nodes[:1] }, "quorum", Blocks, "without it the cluster ceases to exist"},
		"one of two":          {func(f *LeaveFacts) { f.Nodes = f.Nodes[:2] }, "quorum", Warn, "1 member left, and none may be lost"},
		"one of three":        {func(f *LeaveFacts) { f.Nodes = f.Nodes[:3] }, "quorum", Warn, "2 members left, and none may be lost"},
		"one of five":         {func(f *LeaveFacts) { f.Nodes = append(f.Nodes, f.Nodes[3]) }, "quorum", Warn, "4 members left, an even number, of which 1 may be lost"},
		"two others are down": {down(1, 2), "quorum", Blocks, "1 of 4 etcd members would be Ready, which is no quorum: n2, n3 are not"},
		"as the drain counts": {down(1), "quorum", Blocks, "2 of 4 etcd members would be Ready, which is no quorum: n2 is not"},
		"one is down already": {func(f *LeaveFacts) {
			f.Nodes = append(f.Nodes, f.Nodes[3], f.Nodes[3])
			down(1)(f)
		}, "quorum", OK, "5 members left, of which 1 may"},
		"a learner stays":                  {func(f *LeaveFacts) { f.Nodes[3].EtcdVoter = types.ConditionFalse }, "quorum", Warn, "2 members left, and none may be lost"},
		"no member of etcd":                {func(f *LeaveFacts) { f.Nodes[0].Etcd = false }, "quorum", OK, "no member of etcd"},
		"the last replica":                 {last, "volumes", Blocks, "pvc-1 (app/data): the last healthy replica is here, and the leave waits"},
		"a policy is nothing to go by":     {func(f *LeaveFacts) { last(f); f.Storage.Policy = types.DrainPolicyAlwaysAllow }, "volumes", Blocks, "whatever node-drain-policy says"},
		"a replica on a node that is down": {func(f *LeaveFacts) { f.Loss = &types.LeaveConsent{Volumes: []types.LeaveVolume{{Name: "pvc-1"}}} }, "volumes", Blocks, "no node that is Ready has another healthy replica"},
		"the last replica, given up": {func(f *LeaveFacts) {
			last(f)
			f.Storage.Volumes[0].UID = "u1"
			f.Consent = &types.LeaveConsent{Given: noon, Volumes: []types.LeaveVolume{{UID: "u1"}}}
		}, "volumes", Warn, "is given up, by consent of 20"},
		"the only member, by consent": {func(f *LeaveFacts) { f.Nodes = f.Nodes[:1]; f.Consent = &types.LeaveConsent{Ends: true} }, "quorum", Warn, "as consented"},
		"no replica is whole":         {volume(func(v *types.Volume) { v.Replicas = []types.Replica{replica("n1", false)} }), "volumes", Warn, "no replica is healthy"},
		"a rebuild":                   {volume(func(v *types.Volume) { v.Wanted, v.Replicas = 2, v.Replicas[:2] }), "volumes", OK, "1 of 2 healthy replicas are here, a new one is created elsewhere"},
		"too few other nodes":         {volume(func(v *types.Volume) { v.Wanted = 4 }), "volumes", Warn, "it is to have 4 replicas, and there would be only 3 other nodes"},
		"volumes not to be had": {
			func(f *LeaveFacts) { f.Storage, f.NoNodes = nil, "the cluster does not say." }, "volumes", Unknown,
			"the cluster does not say.",
		},
		"an app that must run here": {func(f *LeaveFacts) {
			f.Apps = []types.AppInstanceConfig{{DisplayName: "cam", AffinityType: types.AffinityRequired}}
		}, "apps", Blocks, "cam must not run elsewhere"},
		"an app with a device": {func(f *LeaveFacts) {
			f.Apps = []types.AppInstanceConfig{{DisplayName: "plc", IoAdapterList: make([]types.IoAdapter, 1)}}
		}, "apps", Warn, "has 1 device of this machine"},
		"an app designated here": {func(f *LeaveFacts) { f.Apps = []types.AppInstanceConfig{{DisplayName: "web"}} }, "apps", Warn, "does not fail back"},
		"a pod that is stranded": {func(f *LeaveFacts) { f.Drain.Stranded = []string{"app/dongle"} }, "apps", Warn, "app/dongle can run only here"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Leave(ready(c.change))
			switch c.check {
			case "volumes":
				said(t, p.Volumes, c.check, c.want, c.says)
			case "apps":
				said(t, p.Apps, c.check, c.want, c.says)
			default:
				said(t, p.Steps, c.check, c.want, c.says)
			}
			if c.want == Blocks && p.Verdict != Blocks {
				t.Errorf("the plan is %s: %s", p.Verdict, p.Summary)
			}
		})
	}
}

func TestWithoutTheAPIALeaveCannotBeTold(t *testing.T) {
	p := Leave(ready(func(f *LeaveFacts) { f.Nodes, f.Storage, f.Drain, f.NoNodes = nil, nil, nil, "it is silent." }))
	if p.Verdict != Unknown || !strings.HasPrefix(p.Summary, "The result is unknown") {
		t.Errorf("%s %q", p.Verdict, p.Summary)
	}
	for _, all := range [][]Finding{p.Steps, p.Volumes} {
		for _, f := range all {
			if f.Verdict == Unknown && !strings.Contains(f.What, "it is silent.") {
				t.Errorf("%+v", f)
			}
		}
	}
}

func TestThePlanNamesWhatHasToBeGivenUp(t *testing.T) {
	loss := &types.LeaveConsent{BootID: "b", Cluster: cluster, Volumes: []types.LeaveVolume{{UID: "u1", Name: "pvc-1"}, {UID: "u2", Name: "pvc-2"}}}
	g := Leave(ready(func(f *LeaveFacts) { f.Loss = loss })).GiveUp
	if g == nil || len(g.Volumes) != 2 || g.Digest != loss.Digest() || !g.Given.IsZero() {
		t.Fatalf("it is %+v", g)
	}
	turned := *loss
	turned.Volumes = []types.LeaveVolume{loss.Volumes[1], loss.Volumes[0]}
	turned.Given, turned.Uptime = noon, time.Hour
	if turned.Digest() != g.Digest {
		t.Error("the digest depends on the order, or on the time")
	}
	for name, change := range map[string]func(*types.LeaveConsent){
		"another boot":      func(w *types.LeaveConsent) { w.BootID = "c" },
		"another cluster":   func(w *types.LeaveConsent) { w.Cluster = device },
		"one volume less":   func(w *types.LeaveConsent) { w.Volumes = w.Volumes[:1] },
		"an unknown list":   func(w *types.LeaveConsent) { w.Unknown = true },
		"the cluster's end": func(w *types.LeaveConsent) { w.Ends = true },
	} {
		other := *loss
		if change(&other); other.Digest() == g.Digest {
			t.Errorf("%s has the same digest", name)
		}
	}
	given := *loss
	given.Given = noon
	if g := Leave(ready(func(f *LeaveFacts) { f.Loss, f.Consent = loss, &given })).GiveUp; !g.Given.Equal(noon) {
		t.Errorf("it is given up, and the plan says %+v", g)
	}
	given.Volumes = given.Volumes[:1]
	if g := Leave(ready(func(f *LeaveFacts) { f.Loss, f.Consent = loss, &given })).GiveUp; !g.Given.IsZero() {
		t.Errorf("half of it is given up, and the plan says %+v", g)
	}
	if g := Leave(ready(func(f *LeaveFacts) {})).GiveUp; g != nil {
		t.Errorf("nothing is lost, and the plan says %+v", g)
	}
}
