package cmdtest

import (
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// Emptying is a drain in the middle of everything.
func Emptying() *types.NodeDrainProgress {
	return &types.NodeDrainProgress{
		Phase: types.PhaseEmptying, Reason: "1 pod will not go by itself: eve-kube-app/cam-0; waits for 1 pod: eve-kube-app/plc-0; 3 more in the way", Since: Ago(130 * time.Second),
		Requesters: []string{"DEVICEOP", "OPERATOR"}, Attempt: 2, Attempts: 5,
		Started: Ago(5 * time.Hour), Deadline: Ago(-19 * time.Hour),
		Pods: types.DrainPods{Total: 30, Evicted: 24, Terminating: 4, Waiting: 2},
		Blockers: []types.DrainBlocker{
			{
				Pod: "eve-kube-app/cam-0", Node: "node-2", Since: Ago(4 * time.Hour), Cause: "budget", Outlook: types.OutlookNever,
				Why:    "PodDisruptionBudget eve-kube-app/cam wants 1 of 1 pods healthy and allows 0 disruptions",
				Remedy: "kubectl -n eve-kube-app edit pdb cam, or run a second replica",
			},
			{
				Pod: "eve-kube-app/plc-0", Node: "node-2", Since: Ago(20 * time.Second), Cause: "grace", Outlook: types.OutlookSlow,
				Why: "it is given 60 s to end",
			},
		},
		BlockersOmitted: 3,
		Volumes: []types.DrainVolume{{
			Name: "pvc-4711", Claim: "eve-kube-app/cam-data", Since: Ago(time.Minute), Why: "Its last healthy replica is on this node. One is being rebuilt on node node-3, 42 %.", Replicas: 3, Healthy: 1,
			LastHere: true, Rebuilding: "node-3", Percent: 42, ETA: 200, Outlook: types.OutlookSlow,
		}},
		Stranded: []string{"eve-kube-app/dongle"},
		Lock:     types.DrainLockView{Holder: "node-2", Mine: true, Since: Ago(5 * time.Hour)}, Cordon: "zedkube",
	}
}

// Troubled is a node with a problem of most kinds, and hostile names.
func Troubled() overview.Overview {
	told := func(file string, d time.Duration) overview.Source { return overview.Source{File: file, At: Ago(d)} }
	restarts := uint32(6)
	app := func(n byte, name string) overview.App {
		id := uuid.UUID{n, n, n, n}.String()
		return overview.App{Name: name, UUID: id, KubeName: "x-" + id[:5] + "-0", VM: true, Activate: true, Designated: true, Affinity: "Preferred"}
	}
	runs, down, off := app(0xaa, "plc"), app(0xbb, "Camera_9"), app(0xcc, "scale\x1b[31m\u202eX")
	runs.State, runs.Here, runs.Node, runs.Since, runs.Restarts, runs.Ports = "RunningState", true, "node-2", Ago(26*time.Hour), &restarts, []string{"8022->22/tcp"}
	runs.Console = &types.AppConsoleStatus{Open: true, VNCPort: 5907, Since: Ago(time.Minute)}
	runs.Pods = []types.KubePodInfo{{Name: "plc-0", Status: types.KubePodRunning, NodeName: "node-2", RestartCount: 6, RestartTimestamp: types.TextTime(Ago(time.Minute)), Reason: "CrashLoopBackOff"}}
	down.State, down.Since = "NotRunningState", Ago(20*time.Minute)
	down.Repair = &types.AppRepairStatus{
		Phase: types.RepairRefused, Act: types.ActFailover, Reason: "Volume cam-data has no whole replica on another node.", Since: Ago(20 * time.Minute), Lost: "node-3",
		Evidence: []string{"The device of node node-3 answers none of [node-1 node-2]."},
		Steps:    []types.RepairStep{{At: Ago(19 * time.Minute), Act: types.ActMove, Step: "Its affinity now names node-2.", Failed: "refused"}},
	}
	down.Console = &types.AppConsoleStatus{Why: "its virtual machine has not started", Since: Ago(20 * time.Minute)}
	off.State, off.Activate, off.Designated, off.Affinity, off.Since = "NotRunningState", false, false, "Required", Ago(300*24*time.Hour)
	o := overview.Overview{
		ReadAt: Now,
		Node:   overview.Node{Source: told("/run/zedagent/EdgeNodeInfo/global.json", time.Hour), Name: "node-2", UUID: uuid.NameSpaceOID.String()},
		Agent:  overview.Agent{Runs: true, PID: 4711, Seen: Ago(4 * time.Second)},
		API:    overview.API{Kubeconfig: told("/run/.kube/k3s/k3s.yaml", time.Hour), Answers: types.ConditionTrue},
		Cluster: overview.Cluster{
			Source: told("/run/zedkube/EdgeNodeClusterStatus/global.json", 3*24*time.Hour), Name: "plant-7", ID: uuid.NameSpaceURL.String(), Interface: "eth1", Address: "10.0.0.2/24",
			AddressReady: true, Role: "server", JoinServer: "10.0.0.1", Wanted: true,
			Membership: overview.Membership{Source: told("/persist/status/zedkube/ClusterMembership/global.json", time.Hour), State: types.MembershipDoubtful, Reason: "no peer has received the current list of masters yet", InvalidSince: Ago(time.Hour)},
			Members:    overview.Members{Source: told("/run/zedkube/ClusterMembers/global.json", time.Minute), Masters: []string{"a", "b", "c"}, TieBreaker: "node-4"},
			Object: overview.Object{
				Source: told("/persist/status/zedkube/ClusterObject/global.json", time.Minute), Phase: types.ClusterDegraded, Since: Ago(5 * time.Hour), Why: "1 of 4 nodes are not Ready: node-3.",
				Conditions: []types.ClusterCondition{{Type: types.ComponentsUpdated, Status: types.ConditionFalse, Reason: types.ComponentUpdateFailed, Message: "The update of kubevirt failed: no \x1bimage.", LastTransitionTime: Ago(time.Hour)}},
			},
		},
		Drain:   overview.Drain{Source: told("/run/zedkube/NodeDrainProgress/global.json", time.Second), Progress: Emptying(), Status: "DRAINRETRYING", RequestedBy: "DEVICEOP"},
		Lease:   overview.Lease{Source: told("/run/zedkube/KubeLeaderElectInfo/global.json", time.Hour), Leader: "node-1", Takes: true, Running: true, Since: Ago(50 * time.Hour)},
		Report:  overview.Report{Source: told("/run/zedkube/KubeReportHealth/global.json", time.Minute), Sections: []types.ReportSection{{Name: types.SectionServices, Known: true}, {Name: types.SectionIngresses, Known: true, StaleSince: Ago(15 * time.Minute), Why: "ingresses is forbidden"}}},
		Storage: overview.Storage{Source: overview.Source{File: "/run/zedkube/KubeStorageStatus/global.json"}, Health: "Degraded", Since: Ago(10 * time.Minute), Volumes: []overview.Volume{{Name: "cam-data", Robustness: "Degraded", Replicas: 2, Online: 1, Healthy: 1, Here: true, Rebuilding: 42}}},
		Apps:    overview.Apps{Source: told("/run/zedagent/AppInstanceConfig", time.Hour), List: []overview.App{down, runs, off}},
		Nodes:   TroubledNodes(),
		Conditions: overview.Conditions{
			Source: told("/persist/status/zedkube/KubeNodeConditions/global.json", time.Minute), Kubernetes: "v1.34.2+k3s1", CDI: "v1.57.1", Longhorn: "v1.9.0",
			List: []types.NodeStateCondition{
				{Type: types.StateClientCertificate, Status: types.ConditionFalse, Since: Ago(time.Hour), Message: "The client certificate ends in 9 days.", ExpiresAt: Ago(-9 * 24 * time.Hour)},
				{Type: types.StateCordon, Status: types.ConditionTrue},
				{Type: types.StateLeader, Status: types.ConditionUnknown},
			},
			Certificates: []types.NodeCertificate{{Name: "client", NotAfter: Ago(-9 * 24 * time.Hour)}},
		},
		Change: &types.KubeLifecycle{Phase: types.LifecycleStuck, From: "v1.34.2+k3s1", To: "v1.34.4+k3s1", Reason: "The kubelet\x1b does not start.", Since: Ago(time.Hour)},
		Disks:  []overview.Disk{{Path: "/run", Size: 2 << 30, Free: 1 << 30}, {Path: "/persist", Size: 100 << 30, Free: 3 << 30}},
	}
	o.Problems = health.Problems(o)
	return o
}

// TroubledNodes are those of its cluster.
func TroubledNodes() overview.Nodes {
	node := func(n, status string, since time.Duration) overview.ClusterNode {
		return overview.ClusterNode{Name: "node-" + n, Own: n == "2", Status: status, Since: Ago(since), Roles: []string{"control-plane", "etcd"}, Address: "10.0.0." + n, Kubelet: "v1.34.2+k3s1", Agent: "v0.9.0", AgentAt: Ago(time.Minute), Created: Ago(200 * 24 * time.Hour)}
	}
	ready, own, lost := node("1", "Ready", 26*time.Hour), node("2", "Ready", 90*time.Second), node("3", "NotReachable", 5*time.Hour)
	ready.Pressures = []string{"DiskPressure"}
	own.Cordoned, own.CordonedBy, own.CordonWhy, own.CordonSince, own.Drain = true, "zedkube", "the device reboots", Ago(time.Hour), "draining"
	lost.Lost, lost.Roles = "its device answers none of node-1, node-2", []string{"worker"}
	odd := node("4", "Ready", time.Hour)
	odd.Name, odd.Drain, odd.Agent, odd.Kubelet, odd.Address = "n\x1b]0;x", "dra\x1b[2Jned", "\u202ev", "v1\n\nv2", "10.\x1b0"
	return overview.Nodes{Source: overview.Source{At: Ago(2 * time.Second)}, From: "the agent of this node", List: []overview.ClusterNode{ready, own, lost, odd}}
}

// TroubledCluster is what the nodes of that cluster tell: node-1 asks.
func TroubledCluster() []clusterview.Row {
	o := Troubled()
	told := clusterview.ViewOf(o)
	told.Zedkube = "v0.9.0"
	told.Operations = []types.Operation{{ID: "2", At: Ago(time.Minute), Op: "cordon", Target: "node/node-2", By: "OPERATOR", Outcome: types.OperationOK, Why: "new\x1b disk", Took: time.Millisecond}}
	told.Cut = []string{"12 operations"}
	well := clusterview.View{At: Now, Phase: types.ClusterProvisioned, Since: Ago(time.Hour), Drain: overview.Drain{Progress: &types.NodeDrainProgress{Phase: types.PhaseIdle, Since: Ago(time.Hour)}}}
	past := well
	past.At = Ago(5 * time.Minute)
	past.Operations = []types.Operation{{ID: "1", At: Ago(time.Hour), Op: "evict", Target: "pod/eve-kube-app/cam", By: "DEVICEOP", Outcome: types.OperationRefused, Error: "no budget"}}
	list := TroubledNodes().List
	for i := range list {
		list[i].Own = i == 0
	}
	eve := list[2]
	eve.Name, eve.Status, eve.Drain, eve.Agent = "node-5", "Ready", "draining", ""
	return []clusterview.Row{
		{Name: "node-1", Own: true, State: clusterview.Answered, HeardAt: Now, View: &well, Node: list[0]},
		{Name: "n\x1b]0;x", State: clusterview.Failed, Why: "ask peer: HTTP 403 \x1bForbidden", Node: list[3]},
		{Name: "node-2", State: clusterview.Answered, HeardAt: Ago(2 * time.Second), View: &told, Node: list[1]},
		{Name: "node-3", State: clusterview.Silent, Why: "no answer in 3 s", HeardAt: Ago(5 * time.Minute), View: &past, Node: list[2]},
		{Name: "node-4", State: clusterview.Asking, Node: list[0]},
		{Name: "node-5", State: clusterview.NotAsked, Why: "no zedkube that tells of itself is known to run there", Node: eve},
	}
}

// OwnInfo is the device of node-2.
var OwnInfo = types.EdgeNodeInfo{DeviceName: "Node_2", DeviceID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")}

// ThreeNodes are node-1 to node-3; ours is the second.
func ThreeNodes() []types.Node {
	return []types.Node{
		{Name: "node-1", UUID: "1", Ready: types.ConditionUnknown},
		{Name: "node-2", UUID: OwnInfo.DeviceID.String(), Ready: types.ConditionTrue},
		{Name: "node-3", UUID: "3", Ready: types.ConditionTrue},
	}
}
