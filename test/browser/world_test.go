package browser

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/types"
)

// told is a fact that was written at a time.
func told(file string, at time.Time) overview.Source { return overview.Source{File: file, At: at} }

// busyDay is a device in the middle of a drain that will not end by itself.
func busyDay(now time.Time) overview.Overview {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return overview.Overview{
		ReadAt: now,
		Problems: []types.Finding{
			{
				Rule: "DrainNever", Severity: types.SeverityBad, Subject: "eve-kube-app/plc-0", Since: ago(6 * time.Minute), Anchor: "Pods",
				Evidence: "The drain of this node will not end by itself: a PodDisruptionBudget asks for as many healthy pods as there are.",
				Remedy:   "Run one more replica, or: kubectl -n eve-kube-app edit pdb plc",
			},
			{
				Rule: "CertificateEnds", Severity: types.SeverityWarn, Since: ago(26 * time.Hour), Anchor: "Certificates",
				Evidence: "The client certificate of the kubeconfig ends in 12 days.", Remedy: "Restart k3s on this device within 12 days: it makes a new one.",
			},
		},
		Node:    overview.Node{Source: told("/run/zedagent/EdgeNodeInfo/global.json", ago(time.Hour)), Name: "node-2", UUID: "6a6e0e61-7f0c-4f13-9a2c-1f8f9fd0a002", DeviceName: "plant-north-2"},
		Agent:   overview.Agent{Runs: true, PID: 812, Seen: now},
		API:     overview.API{Answers: types.ConditionTrue, Since: ago(9 * time.Hour)},
		Cluster: overview.Cluster{Source: told("/run/zedkube/EdgeNodeClusterStatus/global.json", ago(9*time.Hour)), Name: "plant-north", ID: "c1", Type: "HA", Interface: "eth1", Address: "10.244.244.2/28", AddressReady: true, Role: "server", Membership: overview.Membership{State: "Member"}, Members: overview.Members{TieBreaker: "node-3"}},
		Lease:   overview.Lease{Leader: "node-1", Takes: true, Running: true, Since: ago(3 * time.Hour)},
		Report:  overview.Report{},
		Drain:   overview.Drain{Source: told("/run/zedkube/NodeDrainProgress/global.json", ago(2*time.Second)), Progress: progress(now), Status: "DRAINRETRYING", RequestedBy: "DEVICEOP"},
		Storage: overview.Storage{
			Settings: []overview.StorageSetting{{Name: "DiskReservation", StorageLevel: types.StorageLevel{Wanted: "2147483648", Actual: "2147483648"}}, {Name: "DrainPolicy", StorageLevel: types.StorageLevel{Wanted: "block-for-eviction", Actual: "block-for-eviction"}}},
			Volumes: []overview.Volume{
				{Name: "pvc-7c1d8a3e", State: "attached", Robustness: "healthy", Bytes: 20 << 30, Replicas: 3, Online: 3, Here: true},
				{Name: "pvc-0be1f2aa", State: "attached", Robustness: "degraded", Substate: "rebuilding", Bytes: 100 << 30, Replicas: 3, Online: 2, Here: true, Rebuilding: 42},
			},
		},
		Apps: overview.Apps{List: []overview.App{
			{Name: "cam", UUID: appUUID(1), KubeName: "cam-3f2a1", Activate: true, State: "RunningState", Node: "node-2", Here: true, Designated: true, Restarts: new(uint32), Ports: []string{"TCP/8554"}, Since: ago(40 * time.Hour)},
			{Name: "plc", UUID: appUUID(2), KubeName: "plc-91bb0", VM: true, Activate: true, State: "RunningState", Node: "node-2", Here: true, Restarts: new(uint32), Since: ago(8 * time.Hour)},
			{Name: "historian", UUID: appUUID(3), KubeName: "historian-aa", Activate: true, State: "NotRunningState", Node: "", Since: ago(4 * time.Minute), Repair: &types.AppRepairStatus{Phase: types.RepairWaits, Reason: "its pod waits for a node with 4 GiB of free memory", Since: ago(4 * time.Minute)}},
		}},
		Nodes: overview.Nodes{From: "agent", List: []overview.ClusterNode{
			{Name: "node-1", Status: "Ready", Since: ago(70 * time.Hour), Roles: []string{"control-plane", "etcd"}, Agent: "1.4.0", Kubelet: "v1.34.2+k3s1", Address: "10.244.244.1"},
			{Name: "node-2", Own: true, Status: "Ready", Since: ago(9 * time.Hour), Roles: []string{"control-plane", "etcd"}, Cordoned: true, CordonedBy: "zedkube", CordonWhy: "drain for DEVICEOP", CordonSince: ago(6 * time.Minute), Drain: "draining", Agent: "1.4.0", Kubelet: "v1.34.2+k3s1", Address: "10.244.244.2"},
			{Name: "node-3", Status: "NotReachable", Since: ago(90 * time.Second), Roles: []string{"control-plane", "etcd", "tie-breaker"}, Lost: "2 of 2 witnesses get no answer from it", Agent: "1.4.0", Kubelet: "v1.34.2+k3s1", Address: "10.244.244.3"},
		}},
		Conditions: overview.Conditions{Kubernetes: "v1.34.2+k3s1", Longhorn: "v1.9.1", KubeVirt: "v1.7.3", List: []types.NodeStateCondition{
			{Type: "ClientCertificateValid", Status: types.ConditionFalse, Since: ago(26 * time.Hour), Reason: "EndsSoon", Message: "the client certificate of the kubeconfig ends in 12 days", ExpiresAt: now.Add(12 * 24 * time.Hour)},
			{Type: "CordonOurs", Status: types.ConditionTrue, Since: ago(6 * time.Minute), Reason: "Drain", Message: "cordoned by zedkube"},
			{Type: "ClockInStep", Status: types.ConditionUnknown, Since: ago(9 * time.Hour), Reason: "NotAsked"},
		}},
		Disks: []overview.Disk{{Path: "/persist", Size: 240 << 30, Free: 181 << 30}, {Path: "/run", Size: 3 << 30, Free: 2 << 30}},
	}
}

func appUUID(n int) string { return fmt.Sprintf("11111111-2222-4333-8444-%012d", n) }

// progress is a drain with a pod that will never go and a volume that rebuilds.
func progress(now time.Time) *types.NodeDrainProgress {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return &types.NodeDrainProgress{
		Phase: types.PhaseEmptying, Reason: "1 pod will not go by itself: eve-kube-app/plc-0; waits for 1 pod and 1 volume",
		Since: ago(2 * time.Minute), Requesters: []string{"DEVICEOP"}, Attempt: 2, Attempts: 5, Started: ago(6 * time.Minute), Deadline: now.Add(19 * time.Hour),
		Pods: types.DrainPods{Total: 14, Evicted: 12, Terminating: 1, Waiting: 1},
		Blockers: []types.DrainBlocker{
			{Pod: "eve-kube-app/plc-0", Node: "node-2", Since: ago(6 * time.Minute), Cause: "budget", Outlook: types.OutlookNever, Why: "PodDisruptionBudget plc asks for 1 healthy pod and there is 1", Remedy: "run one more replica, or: kubectl -n eve-kube-app edit pdb plc"},
			{Pod: "eve-kube-app/cam-0", Node: "node-2", Since: ago(20 * time.Second), Cause: "grace", Outlook: types.OutlookSlow, Why: "it is given 60 s to end, of which 40 are left"},
		},
		Volumes: []types.DrainVolume{
			{Name: "pvc-0be1f2aa", Claim: "eve-kube-app/historian-data", Since: ago(5 * time.Minute), Why: "rebuilding on node-1", Replicas: 3, Healthy: 2, Rebuilding: "node-1", Percent: 42, ETA: 760, Outlook: types.OutlookSlow},
		},
		Lock: types.DrainLockView{Holder: "node-2", Mine: true, Since: ago(6 * time.Minute)}, Cordon: "zedkube",
	}
}

// measured is what the kubelet has measured, of this node and two applications.
func measured(now time.Time) types.KubeNodeMetrics {
	n := func(v uint64) *uint64 { return &v }
	m := types.KubeNodeMetrics{
		Node: "node-2", At: now, Every: time.Minute,
		Metrics: types.NodeMetrics{Cores: 4, CPU: n(1_350_000_000), MemoryWorking: n(5 << 30), MemoryAvailable: n(3 << 30)},
	}
	m.Samples = []types.NodeSample{{At: now, NodeMetrics: m.Metrics}}
	for i, pod := range []string{"cam-0", "virt-launcher-plc-0"} {
		p := types.PodMetrics{Namespace: "eve-kube-app", Name: pod}
		for s := range 8 {
			at := now.Add(time.Duration(s-7) * time.Minute)
			p.Samples = append(p.Samples, types.PodSample{At: at, CPU: n(uint64((i + 1) * (200 + s*s*7) * 1e6)), MemoryWorking: n(uint64(i+1) * (300 + uint64(s%3)*40) << 20)})
		}
		m.Pods = append(m.Pods, p)
	}
	return m
}

// recorded are operations of the audit trail, the newest first.
func recorded(now time.Time) []types.Operation {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return []types.Operation{
		{ID: "3", At: ago(20 * time.Second), Node: "node-2", Component: "drain", Op: "evict", Target: "pod/eve-kube-app/plc-0", By: "DEVICEOP", Why: "reboot", Outcome: types.OperationRefused, Error: "Cannot evict pod as it would violate the pod's disruption budget.", Took: 12 * time.Millisecond, Times: 18},
		{ID: "2", At: ago(5 * time.Minute), Node: "node-2", Component: "drain", Op: "evict", Target: "pod/eve-kube-app/cam-0", By: "DEVICEOP", Why: "reboot", Outcome: types.OperationOK, Took: 40 * time.Millisecond},
		{ID: "1", At: ago(6 * time.Minute), Node: "node-2", Component: "drain", Op: "cordon", Target: "node/node-2", By: "DEVICEOP", Why: "reboot", Outcome: types.OperationOK, Took: 25 * time.Millisecond},
	}
}

// full makes d the device of busyDay.
func (d *device) full() {
	now := time.Now().UTC()
	d.mu.Lock()
	d.shown, d.trail, d.cluster = busyDay(now), page.Trail{Operations: recorded(now)}, threeTold(now)
	d.mu.Unlock()
	_ = d.metrics.Publish(types.Global, measured(now))
	for i, name := range []string{"cam", "plc", "historian"} {
		var c types.AppInstanceConfig
		c.UUIDandVersion.UUID = uuid.MustParse(appUUID(i + 1))
		c.DisplayName, c.Activate = name, true
		c.FixedResources.VirtualizationMode = types.VirtualizationNoHyper
		_ = d.configs.Publish(appUUID(i+1), c)
		pod := types.Pod{
			Namespace: "eve-kube-app", Name: name + "-0", NodeName: "node-2", App: c.KubeName(), Created: now,
			Containers: []types.Container{{Name: "main", Now: types.ContainerRun{ID: "containerd://" + name, Started: now}}},
		}
		_ = d.pods.Publish(pod.Key(), pod)
	}
}
