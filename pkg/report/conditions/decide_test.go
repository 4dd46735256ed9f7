package conditions

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

var t0 = time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)

var (
	ownID   = uuid.MustParse("b3e2f1a0-0000-4000-8000-000000000001")
	otherID = uuid.MustParse("b3e2f1a0-0000-4000-8000-000000000002")
	thirdID = uuid.MustParse("b3e2f1a0-0000-4000-8000-000000000003")
)

const day = 24 * time.Hour

func node(name string, id uuid.UUID) types.Node {
	return types.Node{Name: name, UUID: id.String(), ControlPlane: true, Etcd: true, KubeletVersion: "v1.34.2+k3s1", CNI: "flannel vxlan"}
}

func lasts(d time.Duration) types.Certificate {
	return types.Certificate{Subject: "x", NotBefore: t0.Add(-day), NotAfter: t0.Add(d)}
}

// healthy is a member of three of which all is well.
func healthy() facts {
	f := facts{
		now: t0, uptime: time.Hour, connected: true, watched: true, complete: true, named: true, seen: true, elects: true, reported: true,
		credentials: types.Credentials{Client: lasts(100 * day), CA: lasts(1000 * day), Server: lasts(200 * day), Version: "v1.34.2+k3s1", ClockKnown: true, InstalledAt: t0.Add(-day)},
		certs: types.K3sCertificates{
			Leaves:      []types.K3sCertificate{{Name: "kubelet", Subject: "n1", NotBefore: t0.Add(-day), NotAfter: t0.Add(300 * day)}},
			Authorities: []types.K3sCertificate{{Name: "server-ca", Subject: "k3s-server-ca", NotAfter: t0.Add(3650 * day)}},
		},
		clocks: map[string]types.NodeClock{"n2": {Node: "n2"}, "n3": {Node: "n3", Ahead: -20 * time.Second}},
		nodes:  map[string]types.Node{"n1": node("n1", ownID), "n2": node("n2", otherID), "n3": node("n3", thirdID)},
		api:    types.APIStatus{Synced: true},
		info:   types.EdgeNodeInfo{DeviceName: "N1", DeviceID: ownID},
		membership: types.ClusterMembership{
			State:  types.MembershipMember,
			Config: &types.EdgeNodeClusterConfig{MasterNodeIDs: []uuid.UUID{ownID, otherID, thirdID}},
		},
		leader: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, LeaderIdentity: "n1", IsStatsLeader: true},
		health: types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{{Name: "Nodes", Known: true}, {Name: "Storage", Absent: true}}},
		pods: map[string]types.Pod{
			"a": {Part: types.PartKubeVirt, Version: "v1.6.0"}, "b": {Part: types.PartLonghorn, Version: "v1.9.1"},
			"c": {Part: types.PartMultus, Version: "v4.1.4"}, "d": {Name: "web"},
		},
	}
	f.own = f.nodes["n1"]
	return f
}

// change changes a node of the facts.
func (f *facts) change(name string, change func(*types.Node)) {
	n := f.nodes[name]
	change(&n)
	f.nodes = maps.Clone(f.nodes)
	f.nodes[name] = n
	if name == "n1" {
		f.own = n
	}
}

func cordoned(managers ...string) func(*types.Node) {
	return func(n *types.Node) {
		n.Unschedulable = true
		for _, m := range managers {
			n.Writers = append(n.Writers, types.FieldWriter{Field: types.FieldCordon, Manager: m, At: t0})
		}
	}
}

func TestAHealthyNodeHasEveryConditionTrue(t *testing.T) {
	a := decide(healthy())
	for i, want := range types.NodeStateTypes() {
		if s := a.conditions.Conditions[i]; s.Type != want || s.Status != types.ConditionTrue || !s.Since.Equal(t0) || s.Reason == "" || s.Message == "" {
			t.Errorf("%s: %+v", want, s)
		}
	}
	c := a.conditions
	if c.Kubernetes != "v1.34.2+k3s1" || c.KubeVirt != "v1.6.0" || c.Longhorn != "v1.9.1" || c.CNI != "flannel vxlan, multus v4.1.4" ||
		!c.InstalledAt.Equal(t0.Add(-day)) || len(c.Certificates) != 5 || c.Certificates[0].Name != "client" {
		t.Errorf("%+v", c)
	}
}

func TestEveryRule(t *testing.T) {
	const yes, no, unclear = types.ConditionTrue, types.ConditionFalse, types.ConditionUnknown
	for _, row := range []struct {
		rule   string
		of     types.NodeStateType
		change func(*facts)
		status types.ConditionStatus
		says   string // reason and a part of the message, with a blank between
	}{
		{"a certificate is called valid until 14 days before its end", types.StateClientCertificate, func(f *facts) { f.credentials.Client = lasts(14*day + time.Second) }, yes, "InForce expires on 2026-09-05."},
		{"from then on it ends soon", types.StateClientCertificate, func(f *facts) { f.credentials.Client = lasts(14 * day) }, no, "EndsSoon in 14 days."},
		{"on the last day too", types.StateServerCertificate, func(f *facts) { f.credentials.Server = lasts(time.Hour) }, no, "EndsSoon in less than a day."},
		{"one that has ended is not valid", types.StateCACertificate, func(f *facts) { f.credentials.CA = lasts(0) }, no, "Ended expired on 2026-08-22."},
		{"before a certificate begins the clock may be wrong", types.StateClientCertificate, func(f *facts) { f.now = t0.Add(-2 * day) }, unclear, "NotBegun clock"},
		{"a kubeconfig without a client certificate has none that ends", types.StateClientCertificate, func(f *facts) { f.credentials.Client = types.Certificate{} }, unclear, "NoCertificate kubeconfig"},
		{"a server that nobody has spoken to has shown none", types.StateServerCertificate, func(f *facts) { f.credentials.Server = types.Certificate{} }, unclear, "NotSeenYet API server"},
		{"one that proves nothing is not valid", types.StateServerCertificate, func(f *facts) { f.credentials.Server.Unusable = "it is not for the address that the kubeconfig names" }, no, "NotTrusted not for the address"},
		{"the first of k3s' certificates to expire counts", types.StateK3sCertificates, func(f *facts) { f.certs.Leaves[0].NotAfter = t0.Add(14 * day) }, no, "EndsSoon Certificate kubelet of k3s on this node expires on 2026-09-05, in 14 days."},
		{"until two weeks before it is valid", types.StateK3sCertificates, func(f *facts) { f.certs.Leaves[0].NotAfter = t0.Add(15 * day) }, yes, "InForce kubelet"},
		{"by a clock that is doubted nothing expires", types.StateK3sCertificates, func(f *facts) {
			f.certs.Leaves[0].NotAfter, f.certs.ClockDoubt = t0.Add(-day), "It was set."
		}, unclear, "ClockDoubtful It was set."},
		{"of k3s nothing has been read yet", types.StateK3sCertificates, func(f *facts) { f.certs = types.K3sCertificates{} }, unclear, "NotSeenYet k3s"},
		{"without a kubeconfig nothing is known of certificates", types.StateServerCertificate, func(f *facts) { f.connected = false }, unclear, "NoKubeconfig kubeconfig"},

		{"a node of another version is named", types.StateVersion, func(f *facts) { f.change("n3", func(n *types.Node) { n.KubeletVersion = "v1.33.1+k3s1" }) }, no, "NodesDiffer n3 runs v1.33.1+k3s1"},
		{"what the kube container is told is compared", types.StateVersion, func(f *facts) { f.k3s.Version = "v1.35.0+k3s1" }, no, "NotAsWanted configured to run v1.35.0+k3s1"},
		{"that may be what there is", types.StateVersion, func(f *facts) { f.k3s.Version = "v1.34.2+k3s1" }, yes, "AllTheSame every"},
		{"a change that is held is told", types.StateVersion, func(f *facts) { f.k3s = types.K3sVersionStatus{Version: "v1.34.2+k3s1", Held: true, Why: "It waits."} }, no, "ChangeHeld It waits."},
		{"a node that does not say its version is no other version", types.StateVersion, func(f *facts) { f.change("n3", func(n *types.Node) { n.KubeletVersion = "" }) }, yes, "AllTheSame"},
		{"a silent API server hides versions", types.StateVersion, func(f *facts) { f.api.SilentSince, f.api.Reason = t0, "connection refused" }, unclear, "APISilent connection refused"},
		{"a list that is not whole hides them too", types.StateVersion, func(f *facts) { f.complete = false }, unclear, "ClusterNotSeen"},

		{"node-uuid has to be there", types.StateLabels, func(f *facts) { f.change("n1", func(n *types.Node) { n.UUID = "" }) }, no, "LabelsChanged node-uuid is missing"},
		{"node-uuid has to be this device's", types.StateLabels, func(f *facts) {
			f.change("n1", func(n *types.Node) {
				n.UUID, n.Writers = thirdID.String(), []types.FieldWriter{{Field: "node-uuid", Manager: "kubectl-label", At: t0}}
			})
			f.own, f.seen = types.Node{}, false
		}, no, "NodeUUIDChanged by field manager kubectl-label at 2026-08-22 10:00:00Z"},
		{"a node that is in no list has no labels to judge", types.StateLabels, func(f *facts) { f.own, f.seen, f.nodes = types.Node{}, false, nil }, unclear, "NodeNotSeen"},
		{"a master has its role", types.StateLabels, func(f *facts) { f.change("n1", func(n *types.Node) { n.ControlPlane = false }) }, no, "LabelsChanged control-plane is missing"},
		{"the role of older k3s counts", types.StateLabels, func(f *facts) {
			f.change("n1", func(n *types.Node) { n.ControlPlane, n.Master = false, true })
		}, yes, "InPlace"},
		{"a worker has none", types.StateLabels, func(f *facts) {
			f.membership.Config.IsWorkerNode = true
			f.change("n1", func(n *types.Node) { n.ControlPlane, n.Etcd = false, false })
		}, yes, "InPlace"},
		{"etcd's role is expected where others have it", types.StateLabels, func(f *facts) { f.change("n1", func(n *types.Node) { n.Etcd = false }) }, no, "LabelsChanged etcd is missing"},
		{"and not where nobody has", types.StateLabels, func(f *facts) {
			for _, name := range []string{"n1", "n2", "n3"} {
				f.change(name, func(n *types.Node) { n.Etcd = false })
			}
		}, yes, "InPlace"},
		{"the tie-breaker has its label", types.StateLabels, func(f *facts) { f.membership.Config.TieBreakerNodeID.UUID = ownID }, no, "LabelsChanged this is the tie-breaker"},
		{"and nobody else", types.StateLabels, func(f *facts) { f.change("n1", func(n *types.Node) { n.TieBreaker = true }) }, no, "LabelsChanged not the tie-breaker"},
		{"of a device in no cluster only node-uuid is asked", types.StateLabels, func(f *facts) {
			f.membership = types.ClusterMembership{State: types.MembershipNever}
			f.change("n1", func(n *types.Node) { n.ControlPlane, n.TieBreaker = false, true })
		}, yes, "InPlace"},

		{"a cordon of somebody else's is named", types.StateCordon, func(f *facts) { f.change("n1", cordoned("kubectl")) }, no, "CordonedByOther by field manager kubectl at 2026-08-22 10:00:00Z"},
		{"whom nobody knows", types.StateCordon, func(f *facts) { f.change("n1", cordoned()) }, no, "CordonedByOther by whom is unknown"},
		{"who joins a cordon of ours makes it theirs", types.StateCordon, func(f *facts) { f.change("n1", cordoned("zedkube-drain", "kubectl-edit")) }, no, "CordonedByOther than zedkube, by field manager kubectl-edit"},
		{"a cordon of ours is fine", types.StateCordon, func(f *facts) {
			f.change("n1", func(n *types.Node) {
				n.Unschedulable, n.CordonedBy = true, &types.Cordon{By: "zedkube", Reason: "reboot", Since: t0}
			})
		}, yes, "CordonedByZedkube reboot"},
		{"the tie-breaker's too, whoever made it", types.StateCordon, func(f *facts) {
			f.change("n1", func(n *types.Node) { n.Unschedulable, n.TieBreaker = true, true })
		}, yes, "TieBreaker"},
		{"another node's cordon is not this one's", types.StateCordon, func(f *facts) { f.change("n2", cordoned("kubectl")) }, yes, "NotCordoned"},

		{"a master without a Node is missing", types.StateMembers, func(f *facts) { f.nodes = maps.Clone(f.nodes); delete(f.nodes, "n3") }, no, "MemberMissing " + thirdID.String()},
		{"a member that is no master any more is too many", types.StateMembers, func(f *facts) { f.membership.Config.MasterNodeIDs = []uuid.UUID{ownID, otherID} }, no, "MemberNotConfigured node n3"},
		{"a worker is no member of these", types.StateMembers, func(f *facts) {
			f.membership.Config.MasterNodeIDs = []uuid.UUID{ownID, otherID}
			f.change("n3", func(n *types.Node) { n.ControlPlane, n.Etcd = false, false })
		}, yes, "AsConfigured 2 masters"},
		{"no masters named is not: no masters", types.StateMembers, func(f *facts) { f.membership.Config.MasterNodeIDs = nil }, unclear, "MastersNotNamed"},
		{"a single device has no members", types.StateMembers, func(f *facts) { f.membership = types.ClusterMembership{State: types.MembershipNever} }, unclear, "NoCluster"},
		{"one that leaves is not judged", types.StateMembers, func(f *facts) { f.membership.State = types.MembershipLeaving }, unclear, "Leaving"},

		{"clocks 5 minutes apart are not in step", types.StateClock, func(f *facts) { f.clocks["n2"] = types.NodeClock{Node: "n2", Ahead: 5 * time.Minute} }, no, "ClocksApart n2 is 5m0s ahead"},
		{"the API server's clock counts", types.StateClock, func(f *facts) { f.credentials.ClockAhead = -time.Hour }, no, "ClocksApart API server's clock is 1h0m0s behind"},
		{"where all others differ it is the own one", types.StateClock, func(f *facts) {
			f.credentials.ClockKnown = false
			f.clocks = map[string]types.NodeClock{"n2": {Ahead: time.Minute}, "n3": {Ahead: time.Minute}}
		}, no, "OwnClockApart all others"},
		{"half a minute is no difference", types.StateClock, func(f *facts) { f.clocks["n2"] = types.NodeClock{Node: "n2", Ahead: 30 * time.Second} }, yes, "InStep"},
		{"a node that is gone has no clock", types.StateClock, func(f *facts) { f.clocks["n9"] = types.NodeClock{Node: "n9", Ahead: time.Hour} }, yes, "InStep"},
		{"nor has one that is lost", types.StateClock, func(f *facts) {
			f.clocks["n2"] = types.NodeClock{Node: "n2", Ahead: time.Hour}
			f.change("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		}, yes, "InStep"},
		{"one that was apart when the API server fell silent may be right by now", types.StateClock, func(f *facts) {
			f.clocks["n2"] = types.NodeClock{Node: "n2", Ahead: time.Hour}
			f.api.SilentSince, f.api.Reason = t0, "x509: certificate has expired"
		}, unclear, "APISilent certificate has expired"},
		{"who has seen no other clock knows nothing", types.StateClock, func(f *facts) { f.credentials.ClockKnown, f.clocks = false, nil }, unclear, "NoOtherClock"},

		{"another node may lead", types.StateLeader, func(f *facts) { f.leader.IsStatsLeader, f.leader.LeaderIdentity = false, "n2" }, yes, "OtherNode n2"},
		{"nobody leads", types.StateLeader, func(f *facts) { f.leader.IsStatsLeader, f.leader.LeaderIdentity = false, "" }, no, "NoLeader Lease"},
		{"who does not take part cannot tell", types.StateLeader, func(f *facts) { f.leader = types.KubeLeaderElectInfo{} }, unclear, "NotInElection"},
		{"nor who does not see the cluster", types.StateLeader, func(f *facts) {
			f.leader = types.KubeLeaderElectInfo{InLeaderElection: true}
			f.api.SilentSince = t0
		}, unclear, "APISilent"},

		{"a stale section is named", types.StateReport, func(f *facts) {
			f.health.Sections = append(f.health.Sections, types.ReportSection{Name: "AppPods", Known: true, StaleSince: t0, Why: "the API server answers 403"})
		}, no, "Stale AppPods: the API server answers 403."},
		{"one that was never seen is stale", types.StateReport, func(f *facts) {
			f.health.Sections = append(f.health.Sections, types.ReportSection{Name: "AppVMIs"})
		}, no, "Stale AppVMIs."},
		{"nothing is refused", types.StatePermissions, func(*facts) {}, yes, "AsNeeded"},
		{
			"a permission is missing", types.StatePermissions, func(f *facts) { f.credentials.Refused = "list pods in eve-kube-app" },
			no, "Refused to list pods in eve-kube-app. To permit it: kubectl apply -f deploy/rbac.yaml.",
		},
		{"a silent server permits nothing", types.StatePermissions, func(f *facts) {
			f.credentials.Refused, f.api = "list pods", types.APIStatus{SilentSince: t0, Reason: "x"}
		}, unclear, "APISilent"},
		{"a follower reports nothing", types.StateReport, func(f *facts) { f.health.Reports = false }, unclear, "NotReporting"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f := healthy()
			row.change(&f)
			f.pending = map[types.NodeStateType]pending{row.of: {to: row.status}} // it has lasted for an hour
			got, _ := decide(f).conditions.Of(row.of)
			reason, says, _ := strings.Cut(row.says, " ")
			if got.Status != row.status || got.Reason != reason || !strings.Contains(strings.ToLower(got.Message), strings.ToLower(says)) {
				t.Errorf("%s is %s, %s: %s", got.Type, got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestLongTextsFromOutsideStayShort(t *testing.T) {
	f := healthy()
	f.change("n1", cordoned(strings.Repeat("x", 10000), strings.Repeat("\xff", 10000), "a", "b", "c"))
	for i := range 50 {
		name := strings.Repeat("n", 250) + string(rune('a'+i))
		f.nodes[name] = types.Node{Name: name, KubeletVersion: strings.Repeat("v", 1000)}
	}
	f.pending = map[types.NodeStateType]pending{types.StateVersion: {to: types.ConditionFalse}}
	for _, s := range decide(f).conditions.Conditions {
		if len(s.Message) > 2000 || !strings.HasSuffix(s.Message, ".") {
			t.Errorf("%s: %d bytes: %s", s.Type, len(s.Message), s.Message)
		}
	}
}

func TestWhatCannotBeSeenNowStaysAsItWasSeenLast(t *testing.T) {
	f := healthy()
	f.published = decide(f).conditions
	unknownAfter := facts{now: t0.Add(time.Minute), uptime: time.Hour, published: f.published}
	got := decide(unknownAfter).conditions
	for i, was := range f.published.Conditions {
		if got.Conditions[i] != was {
			t.Errorf("%+v was %+v", got.Conditions[i], was)
		}
	}
	if got.Kubernetes != f.published.Kubernetes || got.KubeVirt != f.published.KubeVirt || got.CNI != f.published.CNI || len(got.Certificates) != 5 {
		t.Errorf("facts are %+v", got)
	}
}

func TestTheCertificatesOfK3sAreSeenAlsoWithoutAConnection(t *testing.T) {
	f := healthy()
	f.published = decide(f).conditions
	f.connected = false
	f.certs.Leaves[0].NotAfter = t0.Add(9 * day)
	got := decide(f).conditions.Certificates
	if len(got) != 5 || got[0] != f.published.Certificates[0] || got[3].Name != "k3s" || !got[3].NotAfter.Equal(t0.Add(9*day)) {
		t.Errorf("%+v", got)
	}
	f.published = types.KubeNodeConditions{}
	if got := decide(f).conditions.Certificates; len(got) != 2 || got[0].Name != "k3s" || got[1].Name != "k3s-CA" {
		t.Errorf("there never was a connection: %+v", got)
	}
}
