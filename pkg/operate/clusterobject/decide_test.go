package clusterobject

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

var (
	noon      = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	clusterID = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	device    = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
)

func server(name, uuid string) types.Node {
	return types.Node{Name: name, UUID: uuid, Ready: types.ConditionTrue, ControlPlane: true, Etcd: true, KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.90.7.2" + name[len(name)-1:]}
}

// single is a device that runs Kubernetes of its own.
func single(change ...func(*facts)) facts {
	own := server("n2", device.String())
	own.Etcd = false
	f := facts{
		now: noon, known: true, membership: types.ClusterMembership{State: types.MembershipNever}, info: types.EdgeNodeInfo{DeviceName: "n2", DeviceID: device},
		nodes: map[string]types.Node{"n2": own}, own: own, seen: true, watched: true, api: types.APIStatus{Synced: true},
		conditions: types.KubeNodeConditions{Kubernetes: "v1.34.2+k3s1", KubeVirt: "v1.6.0", Conditions: []types.NodeStateCondition{
			{Type: types.StateVersion, Status: types.ConditionTrue, Reason: "AllTheSame", Message: "Every node runs v1.34.2+k3s1."},
			{Type: types.StateLabels, Status: types.ConditionTrue, Reason: "InPlace", Message: "Labels."},
		}},
		cdi: "v1.57.1", version: "1.0",
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// joinedServer is a server of a cluster of three.
func joinedServer(change ...func(*facts)) facts {
	f := single()
	f.nodes = map[string]types.Node{"n1": server("n1", ""), "n2": server("n2", device.String()), "n3": server("n3", "")}
	f.own = f.nodes["n2"]
	config := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterName: "press-line", ClusterID: types.UUIDandVersion{UUID: clusterID}, ClusterInterface: "ethernet0",
		ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 90, 7, 22), Mask: net.CIDRMask(24, 32)}, JoinServerIP: net.IPv4(10, 90, 7, 21),
		ClusterType: types.ClusterTypeReplicatedStorage, LBInterfaces: []types.LBInterface{{Interface: "ethernet1", IPPrefix: "192.168.1.24/29"}},
	}
	f.membership = types.ClusterMembership{State: types.MembershipMember, Config: &config}
	f.cluster = types.EdgeNodeClusterStatus{ClusterIPIsReady: true, JoinServerIP: config.JoinServerIP, ClusterIPPrefix: config.ClusterIPPrefix}
	for _, c := range change {
		c(&f)
	}
	return f
}

func silent(f *facts) {
	f.api = types.APIStatus{SilentSince: noon.Add(-time.Minute), Reason: "connection refused"}
}

func before(f *facts) { // the join: the API server is that of this device alone
	f.nodes = single().nodes
	f.own = f.nodes["n2"]
	f.own.InternalIP = "192.168.0.7"
}

func kubeInit(k types.KubeInitStatus) func(*facts) {
	return func(f *facts) { f.kubeInit, f.hasKubeInit = k, true }
}

func leaving(f *facts) {
	f.membership.State, f.membership.Reason = types.MembershipLeaving, "a peer says so."
}

func update(c types.KubeComp, s types.KubeCompUpdateStatus) func(*facts) {
	return func(f *facts) {
		f.update = types.KubeClusterUpdateStatus{Component: c, Status: s, DestinationKubeUpdateVersion: 3, ErrorDescription: types.ErrorDescription{Error: "no space"}}
	}
}

func notYet(f *facts) {
	f.nodes, f.seen, f.conditions = nil, false, types.KubeNodeConditions{}
	f.api = types.APIStatus{SilentSince: noon, NoKubeconfig: true}
}

func workloads(p types.WorkloadsPhase, waits ...string) func(*facts) {
	return func(f *facts) {
		f.workloads = types.WorkloadsStatus{Phase: p, By: "n3", Reason: "new switch", Waits: waits}
	}
}

func lifecycle(p types.KubeLifecyclePhase) func(*facts) {
	return func(f *facts) {
		differs(f)
		f.lifecycle = types.KubeLifecycle{Phase: p, Reason: "k3s changes from v1.34.2+k3s1 to v1.34.4+k3s1: it starts."}
	}
}

// changes is what the stamp of a node says.
func changes(name string, step types.K3sStep, to string) func(*facts) {
	return func(f *facts) {
		n := f.nodes[name]
		n.Agent, n.K3s = &types.AgentStamp{}, &types.K3sStamp{Step: step, To: to}
		f.nodes[name] = n
	}
}

func foreign(name string) func(*facts) {
	return func(f *facts) {
		n := f.nodes[name]
		n.StampStale = true
		f.nodes[name] = n
	}
}

func restarts(f *facts) { f.lifecycle.Kind = types.K3sRestart }

func differs(f *facts) {
	f.k3s = types.K3sVersionStatus{Version: "v1.34.4+k3s1", Running: "v1.34.2+k3s1"}
}

func initialized(f *facts) {
	kubeInit(types.KubeInitStatus{State: "RUNNING", AllComponentsInitialized: true})(f)
}

func deploying(f *facts) { kubeInit(types.KubeInitStatus{State: "DEPLOYING"})(f) }

func crashed(f *facts) {
	kubeInit(types.KubeInitStatus{State: "BACKOFF", LastError: "k3s-crashed"})(f)
}

// unheard is an agent that has just started: nothing is known yet of the API server, and of kube-init.
func unheard(f *facts) {
	f.watched, f.nodes, f.seen = false, nil, false
}

func TestThePhaseAndWhy(t *testing.T) {
	for name, row := range map[string]struct {
		f     facts
		phase types.ClusterPhase
		why   string
	}{
		"a single node":                      {single(), types.ClusterProvisioned, "with 1 node Ready"},
		"a cluster":                          {joinedServer(), types.ClusterProvisioned, "with 3 nodes Ready"},
		"no Kubernetes yet":                  {single(notYet), types.ClusterNotInitialized, "There is no usable kubeconfig"},
		"kube-init installs":                 {single(notYet, kubeInit(types.KubeInitStatus{State: "INSTALLING"})), types.ClusterProvisioning, "in state INSTALLING"},
		"kube-init cannot install":           {single(notYet, kubeInit(types.KubeInitStatus{State: "BACKOFF", LastError: "curl: 6"})), types.ClusterFailed, "curl: 6"},
		"kube-init is not done":              {single(kubeInit(types.KubeInitStatus{State: "DEPLOYING"})), types.ClusterProvisioning, "DEPLOYING"},
		"an error of the past":               {single(kubeInit(types.KubeInitStatus{State: "RUNNING", AllComponentsInitialized: true, LastError: "curl: 6"})), types.ClusterDegraded, "curl: 6"},
		"before the join":                    {joinedServer(before), types.ClusterProvisioning, "that of this device alone"},
		"the address is missing":             {joinedServer(before, func(f *facts) { f.cluster.ClusterIPIsReady = false }), types.ClusterProvisioning, "address in the cluster's network"},
		"the token cannot be decrypted":      {joinedServer(before, func(f *facts) { f.cluster.Error.Error = "no key" }), types.ClusterFailed, "no key"},
		"the server is silent":               {joinedServer(before, func(f *facts) { f.dialled = dialled{"10.90.7.21:12346", errors.New("refused")} }), types.ClusterProvisioning, "does not answer: refused"},
		"the server answers":                 {joinedServer(before, func(f *facts) { f.dialled = dialled{"10.90.7.21:12346", nil} }), types.ClusterProvisioning, "that of this device alone"},
		"kube-init joins":                    {joinedServer(kubeInit(types.KubeInitStatus{State: "CLUSTER_TRANSITION", Membership: types.KubeMembershipJoining, TransitionStep: "provision-config"})), types.ClusterProvisioning, "at step provision-config"},
		"the join fails":                     {joinedServer(kubeInit(types.KubeInitStatus{Membership: types.KubeMembershipJoining, LastError: "no registration"})), types.ClusterFailed, "no registration"},
		"the join watchdog":                  {joinedServer(kubeInit(types.KubeInitStatus{Membership: types.KubeMembershipJoining, JoinWatchdogActive: true})), types.ClusterProvisioning, "reboots the device, three times at most"},
		"k3s is dead":                        {single(silent), types.ClusterDegraded, "connection refused"},
		"k3s is dead in a cluster":           {joinedServer(silent, published(joinedServer())), types.ClusterDegraded, "connection refused"},
		"k3s cannot start":                   {single(silent, kubeInit(types.KubeInitStatus{State: "BACKOFF", AllComponentsInitialized: true, LastError: "k3s-crashed"})), types.ClusterFailed, "k3s-crashed"},
		"a node is down":                     {joinedServer(down("n3")), types.ClusterDegraded, "1 of 3 servers are not Ready: n3."},
		"a worker is down":                   {joinedServer(func(f *facts) { f.nodes["w1"] = types.Node{Name: "w1", Ready: types.ConditionUnknown} }), types.ClusterDegraded, "1 of 4 nodes are not Ready: w1."},
		"this node is not Ready":             {single(func(f *facts) { f.own.Ready = types.ConditionFalse }), types.ClusterDegraded, "This node is not Ready"},
		"the Node is gone":                   {joinedServer(func(f *facts) { delete(f.nodes, "n2"); f.seen = false }), types.ClusterProvisioning, "no Node of this device"},
		"a component is updated":             {joinedServer(update(types.KubeCompKubevirt, types.KubeCompUpdateInProgress)), types.ClusterUpgrading, "kubevirt, in_progress"},
		"the update of a component failed":   {joinedServer(update(types.KubeCompLonghorn, types.KubeCompUpdateFailed)), types.ClusterDegraded, "The update of longhorn to KubeVersion 3 failed (failed): no space. It is not retried, and no later component is updated"},
		"its download failed":                {joinedServer(update(types.KubeCompLonghorn, types.KubeCompUpdateDownloadFailed)), types.ClusterDegraded, "download_failed"},
		"updates are done":                   {joinedServer(update(types.KubeCompLonghorn, types.KubeCompUpdateCompleted)), types.ClusterProvisioned, ""},
		"k3s changes":                        {joinedServer(lifecycle(types.LifecycleChanges)), types.ClusterUpgrading, "from v1.34.2+k3s1 to v1.34.4+k3s1"},
		"k3s changes and is down for it":     {joinedServer(silent, published(joinedServer()), lifecycle(types.LifecycleChanges)), types.ClusterUpgrading, "to v1.34.4+k3s1"},
		"k3s returns to its version":         {joinedServer(lifecycle(types.LifecycleReturns)), types.ClusterUpgrading, "to v1.34.4+k3s1"},
		"another node changes k3s":           {joinedServer(down("n1"), changes("n1", types.K3sStepChange, "v1.35.4+k3s1")), types.ClusterUpgrading, "Node n1 changes k3s from v1.34.2+k3s1 to v1.35.4+k3s1."},
		"another node returns":               {joinedServer(changes("n1", types.K3sStepReturn, "v1.34.2+k3s1")), types.ClusterUpgrading, "Node n1 returns from k3s v1.34.2+k3s1."},
		"another node restarts k3s":          {joinedServer(down("n1"), changes("n1", types.K3sStepChange, "v1.34.2+k3s1")), types.ClusterDegraded, "not Ready: n1."},
		"a node that changed and is gone":    {joinedServer(down("n1"), changes("n1", types.K3sStepChange, "v1.35.4+k3s1"), foreign("n1")), types.ClusterDegraded, "not Ready: n1."},
		"a change elsewhere, as last heard":  {joinedServer(published(joinedServer()), changes("n1", types.K3sStepChange, "v1.35.4+k3s1"), silent), types.ClusterDegraded, "connection refused"},
		"this node restarts k3s then":        {joinedServer(published(joinedServer()), changes("n1", types.K3sStepChange, "v1.35.4+k3s1"), lifecycle(types.LifecycleChanges), restarts, silent), types.ClusterDegraded, "connection refused"},
		"k3s is stuck on this node alone":    {joinedServer(changes("n2", types.K3sStepChange, "v1.35.4+k3s1"), lifecycle(types.LifecycleStuck)), types.ClusterDegraded, "to v1.34.4+k3s1"},
		"k3s is stuck":                       {joinedServer(lifecycle(types.LifecycleStuck)), types.ClusterDegraded, "to v1.34.4+k3s1"},
		"k3s is stuck and dead":              {joinedServer(silent, published(joinedServer()), lifecycle(types.LifecycleStuck)), types.ClusterDegraded, "connection refused"},
		"a version that never comes":         {joinedServer(differs, down("n3")), types.ClusterDegraded, "1 of 3 servers are not Ready: n3."},
		"an update while k3s is dead":        {joinedServer(silent, published(joinedServer()), update(types.KubeCompKubevirt, types.KubeCompUpdateInProgress)), types.ClusterDegraded, "connection refused"},
		"a member after a boot":              {joinedServer(published(joinedServer(initialized)), deploying), types.ClusterDegraded, "in state DEPLOYING"},
		"a member after a boot, disabled":    {joinedServer(published(joinedServer(initialized, workloads(types.WorkloadsDisabled))), deploying), types.ClusterDegraded, "in state DEPLOYING"},
		"a single node after a boot":         {single(published(single(initialized)), deploying), types.ClusterDegraded, "in state DEPLOYING"},
		"an installation goes on":            {single(published(single(deploying)), deploying), types.ClusterProvisioning, "in state DEPLOYING"},
		"an installation, agent restarted":   {single(unheard, published(single(deploying))), types.ClusterProvisioning, "in state DEPLOYING"},
		"a failure before anything is known": {single(unheard, published(single(silent, crashed))), types.ClusterFailed, "k3s-crashed"},
		"no server is listed":                {single(func(f *facts) { f.nodes = map[string]types.Node{"n2": {Name: "n2", Ready: types.ConditionTrue}} }), types.ClusterDegraded, "lists no server."},
		"workloads are being disabled":       {joinedServer(workloads(types.WorkloadsDisabling, "Volume pvc-1 is still attached.", "Another.")), types.ClusterDisabled, "are being disabled, as asked for on n3: new switch. Volume pvc-1 is still attached."},
		"workloads are disabled":             {joinedServer(workloads(types.WorkloadsDisabled)), types.ClusterDisabled, "The workloads of the cluster are disabled, as asked for on n3: new switch."},
		"workloads are being enabled":        {single(workloads(types.WorkloadsEnabling)), types.ClusterDisabled, "are being enabled again"},
		"workloads are enabled":              {joinedServer(func(f *facts) { f.workloads.Phase = types.WorkloadsEnabled }), types.ClusterProvisioned, ""},
		"disabled, and a node is off":        {joinedServer(workloads(types.WorkloadsDisabled), down("n3")), types.ClusterDisabled, "are disabled"},
		"disabled, and the site is off":      {joinedServer(published(joinedServer()), silent, workloads(types.WorkloadsDisabled)), types.ClusterDisabled, "are disabled"},
		"disabled, and k3s changes":          {joinedServer(workloads(types.WorkloadsDisabled), lifecycle(types.LifecycleChanges)), types.ClusterUpgrading, ""},
		"disabled, and this node leaves":     {joinedServer(workloads(types.WorkloadsDisabled), leaving), types.ClusterLeaving, ""},
		"the configuration is not valid":     {joinedServer(func(f *facts) { f.membership.State = types.MembershipDoubtful }), types.ClusterDegraded, "not valid"},
		"leaving":                            {joinedServer(leaving), types.ClusterLeaving, "a peer says so."},
		"leaving with k3s dead":              {joinedServer(leaving, silent), types.ClusterLeaving, "a peer says so."},
		"the kube container undoes the join": {single(kubeInit(types.KubeInitStatus{Membership: types.KubeMembershipRestoring, State: "CLUSTER_TRANSITION"})), types.ClusterLeaving, "single node again"},
		"nothing is known":                   {facts{now: noon}, types.ClusterNotInitialized, "not been observed yet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := decide(row.f).Status
			if s.Phase != row.phase || !strings.Contains(s.Description, row.why) || !strings.HasSuffix(s.Description, ".") {
				t.Errorf("%s: %q, want %s: %q", s.Phase, s.Description, row.phase, row.why)
			}
		})
	}
}

func published(by facts) func(*facts) { return func(f *facts) { f.published = decide(by) } }

func down(name string) func(*facts) {
	return func(f *facts) {
		n := f.nodes[name]
		n.Ready = types.ConditionUnknown
		f.nodes[name] = n
	}
}

// said are the conditions of an object in words.
func said(o types.ClusterObject) string {
	var words []string
	for _, c := range o.Status.Conditions {
		words = append(words, string(c.Type)+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(words, " ")
}

func TestTheConditions(t *testing.T) {
	worker := func(f *facts) {
		config := *f.membership.Config
		config.IsWorkerNode = true
		f.membership.Config, f.own.Etcd = &config, false
	}
	learner := func(f *facts) { f.own.EtcdVoter = types.ConditionFalse }
	const ready = "ControlPlaneReady=True/ServersReady NodeReady=True/Ready ClusterReady=True/NodesReady"
	for name, row := range map[string]struct {
		f    facts
		want string
	}{
		"a single node": {single(), ready + " VersionAsExpected=True/AllTheSame"},
		"a server": {joinedServer(), ready + " VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
			" PeersReachable=True/PeersReady Joined=True/Joined Voter=True/Votes Labelled=True/InPlace Settled=True/Settled"},
		"a worker has no vote": {joinedServer(worker), ready + " VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
			" PeersReachable=True/PeersReady Joined=True/Joined Labelled=True/InPlace Settled=True/Settled"},
		"a learner": {joinedServer(learner), ready + " VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
			" PeersReachable=True/PeersReady Joined=True/Joined Voter=False/Learner Labelled=True/InPlace Settled=False/Voter"},
		"the others are down": {joinedServer(down("n1"), down("n3")), "ControlPlaneReady=False/ServersNotReady NodeReady=True/Ready ClusterReady=False/ServersNotReady" +
			" VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
			" PeersReachable=False/PeersNotReady Joined=True/Joined Voter=True/Votes Labelled=True/InPlace Settled=False/PeersReachable"},
		"with kube-init and an update": {
			single(kubeInit(types.KubeInitStatus{State: "RUNNING", AllComponentsInitialized: true}), update(types.KubeCompCdi, types.KubeCompUpdateDownload)),
			ready + " KubeContainerReady=True/Initialized ComponentsUpdated=False/Updating VersionAsExpected=True/AllTheSame",
		},
		"a server with k3s dead keeps what it was": {
			joinedServer(silent, published(joinedServer())),
			"ControlPlaneReady=False/APIServerUnreachable NodeReady=Unknown/APIServerUnreachable ClusterReady=False/APIServerUnreachable" +
				" VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
				" PeersReachable=True/PeersReady Joined=True/Joined Voter=True/Votes Labelled=True/InPlace Settled=True/Settled",
		},
		"before anything is known": {facts{now: noon}, "ControlPlaneReady=Unknown/NotSeenYet NodeReady=Unknown/NotSeenYet ClusterReady=Unknown/NotSeenYet" +
			" VersionAsExpected=Unknown/NotSeenYet"},
		"no node is listed": {single(func(f *facts) { f.nodes, f.seen = nil, false }), "ControlPlaneReady=Unknown/NoServers NodeReady=False/NoNode ClusterReady=Unknown/NoServers" +
			" VersionAsExpected=True/AllTheSame"},
		"the bootstrap node alone": {joinedServer(before, func(f *facts) { f.cluster.BootstrapNode, f.own.InternalIP = true, "10.90.7.22" }), ready +
			" VersionAsExpected=True/AllTheSame Declared=True/Configured AddressReady=True/Ready" +
			" PeersReachable=True/Bootstrap Joined=True/Joined Voter=False/NoMember Labelled=True/InPlace Settled=False/Voter"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(strings.Fields(row.want), strings.Fields(said(decide(row.f)))); d != "" {
				t.Errorf("want -, got +\n%s", d)
			}
		})
	}
}

// TestASilenceChangesNothingOfTheJoin is about a member of long ago: the API server is silent, or has not
// listed its nodes yet, and what was tried before the join is still known.
func TestASilenceChangesNothingOfTheJoin(t *testing.T) {
	bootstrap := func(f *facts) { f.cluster.BootstrapNode = true }
	unlisted := func(f *facts) { f.api.Synced, f.nodes, f.seen = false, nil, false }
	failed := func(f *facts) { f.dialled = dialled{"10.90.7.21:12346", errors.New("refused")} }
	answered := func(f *facts) { f.dialled = dialled{"10.90.7.21:12346", nil} }
	for name, row := range map[string]struct{ was, f facts }{
		"silent":                            {joinedServer(), joinedServer(silent)},
		"silent, which answered once":       {joinedServer(), joinedServer(silent, answered)},
		"silent, others were down":          {joinedServer(down("n1"), down("n3")), joinedServer(silent, answered)},
		"not listed":                        {joinedServer(), joinedServer(unlisted)},
		"silent, then not listed":           {joinedServer(silent, published(joinedServer())), joinedServer(unlisted)},
		"not listed, which did not answer":  {joinedServer(), joinedServer(unlisted, failed)},
		"the agent has just started":        {joinedServer(), joinedServer(unheard)},
		"the bootstrap node, others down":   {joinedServer(bootstrap, down("n1"), down("n3")), joinedServer(bootstrap, silent)},
		"the bootstrap node, not listed":    {joinedServer(bootstrap), joinedServer(bootstrap, unlisted)},
		"silent, with kube-init not yet up": {joinedServer(crashed), joinedServer(silent)},
	} {
		t.Run(name, func(t *testing.T) {
			was := decide(row.was)
			row.f.published, row.f.now = was, noon.Add(time.Hour)
			now := decide(row.f).Status
			for _, kind := range []types.ClusterConditionType{types.ClusterPeersReachable, types.ClusterJoined, types.ClusterVoter, types.ClusterSettled, types.KubeContainerReady} {
				if d := cmp.Diff(was.Status.Of(kind), now.Of(kind)); d != "" {
					t.Errorf("was -, is +\n%s", d)
				}
			}
		})
	}
}

// TestAMemberThatIsConfiguredForAnotherClusterHasNotJoinedItYet is about a change from one cluster to
// another without a leave between them.
func TestAMemberThatIsConfiguredForAnotherClusterHasNotJoinedItYet(t *testing.T) {
	other := uuid.MustParse("00000000-1111-4222-8333-444444444444")
	const former, there = "10.90.7.22", "10.55.0.2"
	movedTo := func(id uuid.UUID, is string) func(*facts) {
		return func(f *facts) {
			config := *f.membership.Config
			config.ClusterID.UUID, config.ClusterIPPrefix = id, &net.IPNet{IP: net.ParseIP(there), Mask: net.CIDRMask(24, 32)}
			f.membership.Config, f.own.InternalIP = &config, is
		}
	}
	moved := func(is string, change ...func(*facts)) facts {
		return joinedServer(append([]func(*facts){published(joinedServer(leaving)), movedTo(other, is)}, change...)...)
	}
	gone := func(f *facts) { // somebody deletes its Node in the former cluster, where k3s makes it again
		delete(f.nodes, "n2")
		f.own, f.seen = types.Node{}, false
	}
	in := func(id uuid.UUID) func(*facts) {
		return kubeInit(types.KubeInitStatus{AllComponentsInitialized: true, Membership: types.KubeMembershipMember, ClusterID: id.String()})
	}
	for name, row := range map[string]struct {
		f      facts
		joined string
		phase  types.ClusterPhase
	}{
		"nothing answers":                           {moved(former, silent), "Unknown/Moved", types.ClusterProvisioning},
		"nothing answers for long":                  {moved(former, silent, published(moved(former, silent))), "Unknown/Moved", types.ClusterProvisioning},
		"the former cluster answers":                {moved(former), "False/FormerCluster", types.ClusterProvisioning},
		"the former cluster answers for long":       {moved(former, published(moved(former))), "False/FormerCluster", types.ClusterProvisioning},
		"its Node is not in the former one":         {moved(former, gone, published(moved(former))), "False/FormerCluster", types.ClusterProvisioning},
		"its Node was not, and is again":            {moved(former, published(moved(former, gone, published(moved(former))))), "False/FormerCluster", types.ClusterProvisioning},
		"the kube container is in the former one":   {moved(there, in(clusterID)), "False/FormerCluster", types.ClusterProvisioning},
		"the kube container is in the new one":      {moved(former, in(other)), "True/Joined", types.ClusterProvisioned},
		"the device is alone again":                 {moved(former, before, published(moved(former))), "False/OwnCluster", types.ClusterProvisioning},
		"the new cluster answers":                   {moved(there, published(moved(former))), "True/Joined", types.ClusterProvisioned},
		"the same cluster gives it another address": {joinedServer(published(joinedServer()), movedTo(clusterID, former)), "True/Joined", types.ClusterProvisioned},
		"the former cluster had no other node":      {moved(former, func(f *facts) { f.nodes = map[string]types.Node{"n2": f.own} }), "False/OwnCluster", types.ClusterProvisioning},
	} {
		t.Run(name, func(t *testing.T) {
			row.f.now = noon.Add(time.Hour)
			s := decide(row.f).Status
			c := s.Of(types.ClusterJoined)
			if got := string(c.Status) + "/" + c.Reason; got != row.joined || s.Phase != row.phase || s.AtStake != nil {
				t.Errorf("Joined is %s, and it is %s, want %s and %s: %s", got, s.Phase, row.joined, row.phase, said(types.ClusterObject{Status: s}))
			}
			if settled := s.Of(types.ClusterSettled).Status; (settled == types.ConditionTrue) != (c.Status == types.ConditionTrue) {
				t.Errorf("Settled is %s", settled)
			}
			if p := s.Of(types.ClusterPeersReachable).Reason; c.Reason == reasonFormer && p != "NotTried" {
				t.Errorf("PeersReachable is of the former cluster: %s", p)
			}
		})
	}
}

func TestWithoutKubeInitItsConditionEndsOnceK3sAnswers(t *testing.T) {
	if c := decide(single(published(single(crashed)))).Status.Of(types.KubeContainerReady); c.Type != "" {
		t.Errorf("%+v", c)
	}
}

func TestTheTimeOfAConditionIsThatOfItsLastChange(t *testing.T) {
	first := decide(joinedServer())
	later := joinedServer(down("n3"), published(joinedServer()))
	later.now = noon.Add(time.Hour)
	second := decide(later)
	for kind, want := range map[types.ClusterConditionType]time.Time{
		types.NodeReady: noon, types.ClusterJoined: noon, types.ControlPlaneReady: later.now, types.ClusterReady: later.now,
	} {
		if got := second.Status.Of(kind).LastTransitionTime; !got.Equal(want) {
			t.Errorf("%s since %s, want %s", kind, got, want)
		}
	}
	if first.Status.Since != noon || second.Status.Since != later.now {
		t.Errorf("phases since %s and %s", first.Status.Since, second.Status.Since)
	}
}

func TestTheSpecIsWhatTheControllerDeclares(t *testing.T) {
	f := joinedServer(func(f *facts) {
		f.k3s.Wanted, f.asked, f.override.CertSANs = "v1.35.0+k3s1", true, []string{"a.example.org"}
	})
	want := types.ClusterSpec{
		Version: "v1.35.0+k3s1", ClusterType: "k3s", Role: "server", Leave: true, Storage: "ReplicatedStorage", APIServer: types.ClusterAPIServer{CertSANs: []string{"a.example.org"}},
		Networking: types.ClusterNetworking{
			Interface: "ethernet0", Address: "10.90.7.22/24", JoinServer: "10.90.7.21",
			LoadBalancers: []types.ClusterLBRange{{Interface: "ethernet1", Prefix: "192.168.1.24/29"}},
		},
	}
	o := decide(f)
	if d := cmp.Diff(want, o.Spec); d != "" {
		t.Error(d)
	}
	if o.Metadata != (types.ClusterMetadata{Name: "press-line", UID: clusterID.String()}) {
		t.Errorf("%+v", o.Metadata)
	}
	if o := decide(single()); o.Metadata != (types.ClusterMetadata{Name: "n2"}) || o.Spec.Role != "" {
		t.Errorf("a single node: %+v", o)
	}
	parts := types.ClusterComponents{Kubelet: "v1.34.2+k3s1", KubeVirt: "v1.6.0", CDI: "v1.57.1", Zedkube: "1.0"}
	if d := cmp.Diff(parts, o.Status.Components); d != "" {
		t.Error(d)
	}
	silentLater := single(silent, published(single()), func(f *facts) { f.cdi, f.seen = "", false })
	if s := decide(silentLater).Status; s.Components != parts || s.KubernetesVersion != "v1.34.2+k3s1" {
		t.Errorf("with k3s dead: %+v", s)
	}
}

func TestALeaveSaysWhatIsAtStake(t *testing.T) {
	volumes := []types.LeaveVolume{{UID: "u1", Name: "pvc-1", Claim: "eve-kube-app/a"}}
	want := []types.ClusterVolume{{UID: "u1", Name: "pvc-1", Claim: "eve-kube-app/a"}}
	last := func(f *facts) { f.nodes = map[string]types.Node{"n2": f.own} }
	looked := func(f *facts) { f.journal.Look = &types.StorageLook{Volumes: volumes, Omitted: 3, At: noon} }
	remembered := func(f *facts) {
		f.peers = types.ClusterPeers{Cluster: clusterID, Volumes: volumes, VolumesAt: noon.Add(-time.Hour)}
	}
	without := func(s types.WithoutClusterState) func(*facts) {
		return func(f *facts) {
			f.asked, f.without = true, types.WithoutCluster{State: s, Reason: "nothing answers"}
		}
	}
	for name, row := range map[string]struct {
		f    facts
		want *types.ClusterAtStake
	}{
		"of a member nothing": {joinedServer(looked), nil},
		"what the drain found": {
			joinedServer(leaving, looked, remembered, func(f *facts) { f.progress = types.NodeDrainProgress{Phase: types.PhaseEmptying, Reason: "It waits"} }),
			&types.ClusterAtStake{Drain: "Emptying: It waits.", Volumes: want, OmittedVolumes: 3, VolumesAsOf: noon},
		},
		"what is remembered, of the last node": {
			joinedServer(leaving, remembered, last),
			&types.ClusterAtStake{Volumes: want, VolumesAsOf: noon.Add(-time.Hour), EndsCluster: true},
		},
		"of another cluster nothing is remembered": {
			joinedServer(leaving, remembered, func(f *facts) { f.peers.Cluster = uuid.Nil }),
			&types.ClusterAtStake{Volumes: []types.ClusterVolume{}},
		},
		"with a consent": {joinedServer(leaving, func(f *facts) {
			f.membership.Consent, f.membership.ByOperator = &types.LeaveConsent{Given: noon, Ends: true}, true
		}), &types.ClusterAtStake{ByOperator: true, Volumes: []types.ClusterVolume{}, EndsCluster: true, ConsentGiven: noon}},
		"without the cluster, while it looks": {
			joinedServer(silent, published(joinedServer()), remembered, without(types.WithoutLooking)),
			&types.ClusterAtStake{ByOperator: true, Volumes: want, VolumesAsOf: noon.Add(-time.Hour), EndsCluster: true, WithoutCluster: "nothing answers."},
		},
		"without the cluster, refused": {joinedServer(silent, published(joinedServer()), remembered, without(types.WithoutRefused)), nil},
		"without the cluster, after a restart of the agent": {
			joinedServer(leaving, silent, func(f *facts) { f.membership.Without = &types.WithoutDecision{Cluster: clusterID, At: noon} }),
			&types.ClusterAtStake{ByOperator: true, Volumes: []types.ClusterVolume{}, EndsCluster: true},
		},
		"without the cluster, in the last minute": {
			joinedServer(leaving, silent, published(joinedServer()), remembered, without(types.WithoutProved), func(f *facts) {
				f.membership.ByOperator = true
				f.membership.Without = &types.WithoutDecision{Cluster: clusterID, At: noon, Dead: []string{"n1", "n3"}, Consent: &types.LeaveConsent{Given: noon, Ends: true}}
			}),
			&types.ClusterAtStake{ByOperator: true, Volumes: want, VolumesAsOf: noon.Add(-time.Hour), EndsCluster: true, ConsentGiven: noon, WithoutCluster: "nothing answers."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(row.want, decide(row.f).Status.AtStake); d != "" {
				t.Errorf("want -, got +\n%s", d)
			}
		})
	}
}

func TestTheLargestObjectFitsIntoATopic(t *testing.T) {
	long, name := strings.Repeat("x\xff", 100_000), strings.Repeat("n", 253)
	volume := types.LeaveVolume{UID: uuid.NewString(), Name: name[:63], Claim: name[:63] + "/" + name}
	f := joinedServer(kubeInit(types.KubeInitStatus{State: long, TransitionStep: long, LastError: long, Membership: types.KubeMembershipJoining}), leaving, func(f *facts) {
		f.membership.Reason, f.progress.Reason, f.progress.Phase, f.without.Reason = long, long, types.PhaseEmptying, long
		f.update = types.KubeClusterUpdateStatus{Status: types.KubeCompUpdateFailed, ErrorDescription: types.ErrorDescription{Error: long}}
		f.cluster.Error.Error, f.cluster.ClusterIPIsReady = long, false
		f.membership.Config.LBInterfaces = slices.Repeat([]types.LBInterface{{Interface: "ethernet1", IPPrefix: "192.168.100.124/29"}}, 1000)
		f.override.CertSANs = slices.Repeat([]string{name}, 20)
		f.journal.Look = &types.StorageLook{Volumes: slices.Repeat([]types.LeaveVolume{volume}, types.MaxLeaveVolumes), Omitted: 7}
		for i := range 1000 {
			n := types.Node{Name: fmt.Sprint(name[:240], i), Ready: types.ConditionUnknown, ControlPlane: true}
			f.nodes[n.Name] = n
		}
	})
	o := decide(f)
	log := logrus.New()
	log.SetOutput(io.Discard)
	bus := pubsub.NewBus(t.TempDir(), log)
	topic := pubsub.NewPublication[types.ClusterObject](bus, "zedkube", pubsub.FilesOnly())
	if err := errors.Join(bus.Open(), topic.Publish(types.Global, o)); err != nil {
		t.Error(err)
	}
	if s := o.Status.AtStake; len(s.Volumes)+s.OmittedVolumes != types.MaxLeaveVolumes+7 {
		t.Errorf("%d volumes and %d more", len(s.Volumes), s.OmittedVolumes)
	}
}

func TestApplicationsAreCountedUntilTheAPIServerIsSilent(t *testing.T) {
	two := func(f *facts) { f.apps = map[string]bool{"cam": true, "plc": true} }
	o := decide(joinedServer(leaving, two))
	gone := decide(joinedServer(leaving, silent, published(joinedServer(leaving, two))))
	if a, b := o.Status.AtStake.Applications, gone.Status.AtStake.Applications; a != 2 || b != 2 {
		t.Errorf("%d applications, and %d with k3s dead", a, b)
	}
	if none := decide(joinedServer(leaving, published(joinedServer(leaving, two)))); none.Status.AtStake.Applications != 0 {
		t.Errorf("%d applications after all have gone", none.Status.AtStake.Applications)
	}
}
