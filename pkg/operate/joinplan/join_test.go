package joinplan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

var (
	noon    = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	cluster = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	device  = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
	server  = netip.MustParseAddr("10.90.7.20")
)

func all(outcome types.ReachOutcome) (out []types.ReachPort) {
	for _, port := range []int{6443, 2379, 2380, 10250, 12346} {
		out = append(out, types.ReachPort{Port: port, Outcome: outcome})
	}
	return out
}

// fine is a candidate that nothing keeps from joining two others.
func fine(change ...func(*Facts)) Facts {
	f := Facts{
		Role: Candidate, Now: noon,
		Own: Own{
			Node: "press-line-2", Device: device, Cluster: cluster, Masters: []uuid.UUID{device},
			Address: netip.MustParseAddr("10.90.7.21"), Network: netip.MustParsePrefix("10.90.7.21/24"), Label: "shop-lan", Interface: "eth2",
			Ready: true, HasStatus: true, Ports: []types.NetworkPortStatus{{IfName: "eth2", Logicallabel: "shop-lan"}},
			Kernel: []Interface{{Name: "eth2", Prefix: netip.MustParsePrefix("10.90.7.21/24")}},
			Closed: map[int]string{12346: ""}, Version: "1.0", Kubernetes: "v1.34.1+k3s1", KubernetesFrom: "KubeConfig",
		},
		Peers: []Peer{{
			Address: server, Tries: all(types.ReachOpen), Status: Answer{May: true, Reason: "MayJoin", Why: "10.90.7.20 is a working server of cluster x"},
			Node: "press-line-1", Kubernetes: "v1.34.1+k3s1", Heard: []int{2379, 2380, 6443, 10250},
			Reach: &types.Reach{Node: "press-line-1", Zedkube: "1.0", From: "10.90.7.21", Ports: all(types.ReachOpen), Cluster: &types.ReachCluster{
				Nodes: 2, Members: 2, Ready: 2, Kubelets: []string{"v1.34.1+k3s1"}, Name: types.ReachNameFree,
			}},
			Clocks: []Clock{{Source: "the status server", Within: 500 * time.Millisecond}},
		}},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// said wants a finding of this check, verdict and text.
func said(t *testing.T, all []Finding, check string, v Verdict, text string) {
	t.Helper()
	if !slices.ContainsFunc(all, func(f Finding) bool { return f.Check == check && f.Verdict == v && strings.Contains(f.What, text) }) {
		t.Errorf("nothing of %s is %s and says %q in\n%+v", check, v, text, all)
	}
}

func TestNothingIsInTheWayOfACandidateThatIsFine(t *testing.T) {
	p := Join(fine())
	if p.Verdict != OK || p.Summary != "This node can join: nothing is in the way." {
		t.Errorf("%s, %q", p.Verdict, p.Summary)
	}
	for _, f := range p.Findings {
		if f.Verdict != OK || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatIsInTheWayOfACandidate(t *testing.T) {
	reach := func(change func(*Peer)) func(*Facts) { return func(f *Facts) { change(&f.Peers[0]) } }
	own := func(change func(*Own)) func(*Facts) { return func(f *Facts) { change(&f.Own) } }
	seen := func(change func(*types.ReachCluster)) func(*Facts) {
		return func(f *Facts) { change(f.Peers[0].Reach.Cluster) }
	}
	clock := func(ahead time.Duration) func(*Facts) {
		return reach(func(p *Peer) { p.Clocks[0].Ahead = ahead })
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		check  string
		want   Verdict
		says   string
	}{
		"another cluster": {reach(func(p *Peer) {
			p.Status = Answer{Reason: "OtherCluster", Why: "10.90.7.20 is a server of cluster y"}
		}), "cluster", Blocks, "server of cluster y"},
		"a server with another token": {reach(func(p *Peer) {
			p.Status = Answer{Reason: "StatusOtherToken", Why: "10.90.7.20 presents the certificate of another cluster token"}
		}), "cluster", Blocks, "10.90.7.20 presents the certificate of another cluster token."},
		"a server with TLS, and no token here": {reach(func(p *Peer) {
			p.Status = Answer{Reason: "StatusNoToken", Why: "10.90.7.20 speaks TLS, and no token is known"}
		}), "cluster", Unknown, "Whether it may join is not known: 10.90.7.20 speaks TLS"},
		"a server that refuses the bearer":  {reach(func(p *Peer) { p.Status = Answer{Reason: "StatusOtherBearer", Why: "it refuses the bearer"} }), "cluster", Blocks, "it refuses the bearer"},
		"a server that speaks TLS":          {reach(func(p *Peer) { p.ByTLS = true }), "protocol", OK, "with the certificate of this cluster's token"},
		"a server that speaks none":         {reach(func(p *Peer) { p.ByHTTP = true }), "protocol", OK, "an EVE with cluster-status-probe, which asks by TLS alone, cannot join"},
		"a clock before all certificates":   {func(f *Facts) { f.Now = time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC) }, "clock", Blocks, "shows 2025-12-31, and the certificate of the status servers is valid from 2026-01-01"},
		"a server that waits":               {reach(func(p *Peer) { p.Status = Answer{Reason: "NotYet", Why: "no etcd yet"} }), "cluster", Warn, "no etcd yet"},
		"a server that is away":             {reach(func(p *Peer) { p.Status = Answer{Reason: "StatusSilent", Why: "it is silent"} }), "cluster", Blocks, "it is silent"},
		"no cluster is known":               {own(func(o *Own) { o.Cluster = uuid.Nil }), "role", Unknown, "not known which cluster"},
		"the one that starts it":            {own(func(o *Own) { o.Bootstrap = true }), "role", Blocks, "does not join"},
		"no master by the controller":       {own(func(o *Own) { o.Masters = []uuid.UUID{cluster} }), "role", Blocks, "remove it again"},
		"no server is known":                {func(f *Facts) { f.Peers = nil }, "cluster", Unknown, "no node could be queried"},
		"no token":                          {own(func(o *Own) { o.NoToken = "the certificate is missing" }), "token", Blocks, "the certificate is missing"},
		"a name that is none":               {own(func(o *Own) { o.Node = "press line" }), "name", Blocks, "not a valid Node name"},
		"no name":                           {own(func(o *Own) { o.Node = "" }), "name", Unknown, "--"},
		"the name of the server":            {own(func(o *Own) { o.Node = "press-line-1" }), "name", Blocks, "also has the name press-line-1"},
		"the name of another":               {seen(func(c *types.ReachCluster) { c.Name = types.ReachNameTaken }), "name", Blocks, "Another device owns the Node press-line-2"},
		"a Node of its own from before":     {seen(func(c *types.ReachCluster) { c.Name = types.ReachNameOwn }), "name", Warn, "was in this cluster before"},
		"an older name of its own":          {seen(func(c *types.ReachCluster) { c.Name = types.ReachNameOther }), "name", Warn, "had another name"},
		"a word that is none":               {seen(func(c *types.ReachCluster) { c.Name = "perhaps" }), "name", Unknown, `"perhaps"`},
		"nobody can say whether it is free": {reach(func(p *Peer) { p.Reach, p.NoReach = nil, "EVE's own runs there." }), "name", Unknown, "EVE's own runs there"},
		"no interface has the address":      {own(func(o *Own) { o.Kernel = []Interface{} }), "address", Blocks, "nim has not assigned it"},
		"interfaces that cannot be read":    {own(func(o *Own) { o.Kernel = nil }), "address", Unknown, "cannot be read"},
		"the address is elsewhere": {
			own(func(o *Own) { o.Kernel[0].Name = "eth0" }), "address", Blocks,
			"is on interface eth0, not on the cluster interface eth2",
		},
		"a wrong prefix":           {own(func(o *Own) { o.Kernel[0].Prefix = netip.MustParsePrefix("10.90.7.21/16") }), "address", Warn, "as a /16, and configured as a /24"},
		"no port of that label":    {own(func(o *Own) { o.Kernel, o.Label = []Interface{}, "attic" }), "address", Blocks, `no port has the label "attic"`},
		"a port that is invalid":   {own(func(o *Own) { o.Kernel, o.Ports[0].InvalidConfig = []Interface{}, true }), "address", Blocks, "is not valid"},
		"zedkube has said nothing": {own(func(o *Own) { o.Kernel, o.HasStatus = []Interface{}, false }), "address", Blocks, "has not published"},
		"one address for two":      {own(func(o *Own) { o.Address = server }), "address", Blocks, "the same address"},
		"a server over a router":   {own(func(o *Own) { o.Network = netip.MustParsePrefix("10.90.7.21/32") }), "address", Warn, "through a router"},
		"a port that is refused":   {reach(func(p *Peer) { p.Tries[1].Outcome = types.ReachRefused }), "ports", Blocks, "Port 2379 of 10.90.7.20 (etcd's clients) refuses"},
		"a port that is dropped":   {reach(func(p *Peer) { p.Tries[0].Outcome = types.ReachSilent }), "ports", Blocks, "something drops the packets"},
		"no way there":             {reach(func(p *Peer) { p.Tries[0].Outcome = types.ReachUnreachable }), "ports", Blocks, "no route from here"},
		"something else there":     {reach(func(p *Peer) { p.NoTLS = []int{6443} }), "ports", Blocks, "does not speak TLS"},
		"dropped on the way back":  {reach(func(p *Peer) { p.Reach.Ports[3].Outcome = types.ReachSilent }), "ports", Blocks, "does not get through to Port 10250"},
		"refused on the way back":  {reach(func(p *Peer) { p.Reach.Ports[1].Outcome = types.ReachRefused }), "ports", Blocks, "although something listens there"},
		"nobody was listening": {func(f *Facts) {
			f.Own.Silent, f.Peers[0].Heard = "--no-listen.", nil
			for i := range f.Peers[0].Reach.Ports[:4] {
				f.Peers[0].Reach.Ports[i].Outcome = types.ReachRefused
			}
		}, "ports", Unknown, "ports 2379, 2380, 6443 and 10250 are refused, and nothing was listening: --no-listen."},
		"somebody else has the address": {reach(func(p *Peer) { p.Heard = nil }), "ports", Blocks, "not this device"},
		"a translated address":          {reach(func(p *Peer) { p.Reach.From = "10.0.0.1" }), "ports", Warn, `sees this device as "10.0.0.1"`},
		"a clock ten minutes behind":    {clock(10 * time.Minute), "clock", Blocks, "is 10m0s behind that of 10.90.7.20"},
		"a clock of another century":    {clock(-90 * 365 * 24 * time.Hour), "clock", Blocks, "over 10 years ahead of"},
		"a clock 2 s ahead":             {clock(-2 * time.Second), "clock", Warn, "is 2s ahead of that of"},
		"a clock within the second":     {clock(1400 * time.Millisecond), "clock", OK, "agree within"},
		"no clock":                      {reach(func(p *Peer) { p.Clocks = nil }), "clock", Unknown, "could not be read"},
		"two clocks of one machine": {reach(func(p *Peer) {
			p.Clocks = append(p.Clocks, Clock{Source: "the API server", Ahead: time.Minute, Within: time.Second})
		}), "clock", Warn, "one of them is wrong"},
		"no quorum":            {seen(func(c *types.ReachCluster) { c.Members, c.Ready = 2, 1 }), "room", Blocks, "no quorum"},
		"a member is away":     {seen(func(c *types.ReachCluster) { c.Members, c.Ready = 3, 2 }), "room", Warn, "with one more, 3 of 4 have to be, and none may be lost"},
		"a member that learns": {seen(func(c *types.ReachCluster) { c.Learners = 1 }), "room", Warn, "still a learner"},
		"the second member":    {seen(func(c *types.ReachCluster) { c.Members, c.Ready = 1, 1 }), "room", Warn, "2 members, an even number: none may be lost, as with 1"},
		"the fourth member":    {seen(func(c *types.ReachCluster) { c.Members, c.Ready = 3, 3 }), "room", Warn, "4 members, an even number: 1 may be lost, as with 3"},
		"the eighth member":    {seen(func(c *types.ReachCluster) { c.Members, c.Ready = 7, 7 }), "room", Warn, "member 8"},
		"the third member":     {nothing, "room", OK, "3 members, of which 1 may be lost"},
		"a cluster not seen":   {reach(func(p *Peer) { p.Reach.Cluster = nil }), "room", Unknown, "does not know the state of its cluster"},
		"the same version":     {nothing, "version", OK, "as the members do"},
		"no version":           {own(func(o *Own) { o.Kubernetes = "" }), "version", Unknown, "no file on this device names it"},
		"no version at all":    {own(func(o *Own) { o.Kubernetes = "latest" }), "version", Unknown, "not a version of Kubernetes"},
		"a patch apart":        {own(func(o *Own) { o.Kubernetes = "v1.34.4+k3s1" }), "version", OK, "close enough"},
		"a release newer":      {own(func(o *Own) { o.Kubernetes = "v1.35.0+k3s1" }), "version", Warn, "only during an update"},
		"two releases older":   {own(func(o *Own) { o.Kubernetes = "v1.32.0+k3s1" }), "version", Blocks, "too far apart"},
		"a newer worker":       {own(func(o *Own) { o.Worker, o.Kubernetes = true, "v1.35.0" }), "version", Blocks, "must not be newer"},
		"an old worker":        {own(func(o *Own) { o.Worker, o.Kubernetes = true, "v1.31.0" }), "version", OK, "close enough"},
		"a very old worker":    {own(func(o *Own) { o.Worker, o.Kubernetes = true, "v1.30.9" }), "version", Blocks, "too far apart"},
		"a worker needs no room": {
			func(f *Facts) { f.Own.Worker, f.Peers[0].Reach.Cluster.Ready = true, 1 }, "room", OK,
			"no part in etcd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Join(fine(c.change))
			if name == "no name" {
				c.says = "It is not known what its Node will be called"
			}
			said(t, p.Findings, c.check, c.want, c.says)
			if worst, _ := sum(p.Findings); p.Verdict != worst || p.Findings[0].Verdict != worst {
				t.Errorf("the plan is %s, the first finding %s, the worst %s", p.Verdict, p.Findings[0].Verdict, worst)
			}
			for _, f := range p.Findings {
				if !strings.HasSuffix(f.What, ".") && !strings.Contains(f.What, ": ") {
					t.Errorf("no sentence: %q", f.What)
				}
			}
		})
	}
}

func nothing(*Facts) {}

func TestAWorkerIsNotAskedForEtcdsPorts(t *testing.T) {
	f := fine(func(f *Facts) { f.Own.Worker = true })
	for i := 1; i <= 2; i++ {
		f.Peers[0].Tries[i].Outcome, f.Peers[0].Reach.Ports[i].Outcome = types.ReachSilent, types.ReachSilent
	}
	if p := Join(f); p.Verdict != OK {
		t.Errorf("%+v", p)
	}
}

func TestAMemberSaysWhetherThereIsRoomAndWhetherTheCandidateFits(t *testing.T) {
	member := func(change ...func(*Facts)) Facts {
		f := fine(func(f *Facts) {
			f.Role = Member
			f.Own.Masters = []uuid.UUID{device, cluster}
			f.Own.Kubernetes = ""
			f.Nodes = []types.Node{
				{Name: "press-line-1", UUID: device.String(), Etcd: true, Ready: types.ConditionTrue, InternalIP: "10.90.7.21", KubeletVersion: "v1.34.1+k3s1"},
				{Name: "press-line-4", Etcd: true, Ready: types.ConditionTrue, InternalIP: "10.90.7.24", KubeletVersion: "v1.34.1+k3s1", TieBreaker: true},
			}
			p := &f.Peers[0]
			p.Node, p.Tries, p.Status = "press-line-7", all(types.ReachRefused), Answer{Reason: "NotYet", Why: "it waits"}
			p.Tries[4].Outcome = types.ReachOpen
			f.Own.Closed = map[int]string{6443: "", 2379: "", 2380: "", 10250: "", 12346: ""}
		})
		for _, c := range change {
			c(&f)
		}
		return f
	}
	p := Join(member())
	if p.Verdict != OK || p.Node != "press-line-7" || p.Address != "10.90.7.20" {
		t.Errorf("%+v", p)
	}
	said(t, p.Findings, "ports", OK, "From here to 10.90.7.20: port 12346 is reached.")
	said(t, p.Findings, "ports", OK, "From here to 10.90.7.20: ports 6443, 2379, 2380 and 10250 are refused, as long as k3s is not running there.")
	said(t, p.Findings, "masters", OK, "names 2 masters, of which 1 is not here yet: "+cluster.String())
	said(t, p.Findings, "room", OK, "press-line-4 is the tie-breaker")
	for name, c := range map[string]struct {
		change func(*Facts)
		check  string
		want   Verdict
		says   string
	}{
		"every master is here": {func(f *Facts) { f.Own.Masters = f.Own.Masters[:1] }, "masters", Warn, "only a worker can join"},
		"its name is taken":    {func(f *Facts) { f.Peers[0].Node = "press-line-4" }, "name", Blocks, "(10.90.7.24)"},
		"it does not say its name": {
			func(f *Facts) { f.Peers[0].Node = "" }, "name", Unknown,
			"its status server does not say",
		},
		"it is of another cluster": {func(f *Facts) { f.Peers[0].Status = Answer{Reason: "OtherCluster", Why: "it serves y"} }, "cluster", Blocks, "it serves y"},
		"it has another token": {func(f *Facts) {
			f.Peers[0].Status = Answer{Reason: "StatusOtherToken", Why: "its certificate is another"}
		}, "cluster", Blocks, "It is not of this cluster: its certificate is another."},
		"it refuses the bearer": {func(f *Facts) { f.Peers[0].Status = Answer{Reason: "StatusOtherBearer", Why: "it refuses the bearer"} }, "cluster", Unknown, "it refuses the bearer"},
		"it answers by TLS":     {func(f *Facts) { f.Peers[0].ByTLS = true }, "protocol", OK, "answers by TLS"},
		"it is silent":          {func(f *Facts) { f.Peers[0].Tries = all(types.ReachSilent) }, "ports", Blocks, "does not answer from here"},
		"it is too old":         {func(f *Facts) { f.Own.Kubernetes = "v1.30.0" }, "version", Blocks, "too far apart"},
		"the API is silent":     {func(f *Facts) { f.Nodes, f.NoNodes = nil, "it is hung." }, "room", Unknown, "it is hung."},
		"without a candidate":   {func(f *Facts) { f.Peers = nil }, "room", OK, "3 members"},
	} {
		t.Run(name, func(t *testing.T) { said(t, Join(member(c.change)).Findings, c.check, c.want, c.says) })
	}
}

func TestNobodyDeletesANodeBeforeLooking(t *testing.T) {
	for _, answer := range []types.ReachName{types.ReachNameOwn, types.ReachNameOther, types.ReachNameTaken} {
		if _, remedy, _ := nameText("node-1", answer); !strings.Contains(remedy, `docs/operations.md, "Before a Node is deleted"`) {
			t.Errorf("%s: %s", answer, remedy)
		}
	}
}
