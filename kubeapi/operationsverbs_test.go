package kubeapi

import (
	"context"
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/types"
)

// writing is one verb and the record it leaves.
type writing struct {
	do   func(context.Context, *Client) error
	want string // "" for none
}

// writings are all verbs that write, by the name of the method.
func writings() map[string]writing {
	set := types.AppSet{Kind: types.KindReplicaSet, Name: "app", UID: "u1", Version: "5"}
	node := types.Node{Name: "n1", UID: "u1"}
	plugin := types.SRIOVPlugin{Name: "p", UID: "u1", Part: "x"}
	lock := types.DrainLock{Holder: "n1", Version: "5"}
	pod := types.Pod{Namespace: "ns", Name: "p", UID: "u1"}
	return map[string]writing{
		"Cordon":           {func(ctx context.Context, c *Client) error { return c.Cordon(ctx, "n1", types.Cordon{}) }, "cordon node/n1"},
		"Uncordon":         {func(ctx context.Context, c *Client) error { return c.Uncordon(ctx, "n1") }, "uncordon node/n1"},
		"OperatorUncordon": {func(ctx context.Context, c *Client) error { return c.OperatorUncordon(ctx, "n1") }, ""},           // what it undoes decides: TestUncordonOfAnOperatorIsOnRecord
		"UncordonLegacy":   {func(ctx context.Context, c *Client) error { return c.UncordonLegacy(ctx, "n1", time.Now()) }, ""}, // there is none
		"Unkeep":           {func(ctx context.Context, c *Client) error { return c.Unkeep(ctx, "n1") }, "unkeep cordon node/n1"},
		"Stamp":            {func(ctx context.Context, c *Client) error { return c.Stamp(ctx, "n1", types.AgentStamp{}) }, "stamp node/n1"},
		"ForgetStamp":      {func(ctx context.Context, c *Client) error { return c.ForgetStamp(ctx, node) }, ""}, // there is none
		"SetDrainConditions": {func(ctx context.Context, c *Client) error {
			return c.SetDrainConditions(ctx, "n1", types.DrainConditions{Drained: true})
		}, "set drain conditions node/n1"},
		"Fence":   {func(ctx context.Context, c *Client) error { return c.Fence(ctx, node, types.Fence{By: "n2"}) }, "fence node/n1"},
		"Unfence": {func(ctx context.Context, c *Client) error { return c.Unfence(ctx, node) }, "unfence node/n1"},
		"StampK3s": {func(ctx context.Context, c *Client) error {
			return c.StampK3s(ctx, "n1", types.K3sStamp{Wanted: "v1.34.4+k3s1"})
		}, "stamp k3s node/n1"},
		"Designate": {func(ctx context.Context, c *Client) error {
			return c.Designate(ctx, "n1", types.Designations{Omitted: 1})
		}, "set designations node/n1"},
		"Witness":    {func(ctx context.Context, c *Client) error { return c.Witness(ctx, "n1", types.Witness{Round: 1}) }, "witness node/n1"},
		"DeleteNode": {func(ctx context.Context, c *Client) error { return c.DeleteNode(ctx, node) }, "delete node node/n1"},
		"SetDrainLock": {func(ctx context.Context, c *Client) error {
			_, err := c.SetDrainLock(ctx, types.DrainLock{Holder: "n1"})
			return err
		}, "take drain lock drain-lock/n1"},
		"FreeDrainLock": {func(ctx context.Context, c *Client) error { return c.FreeDrainLock(ctx, lock) }, "free drain lock drain-lock/n1"},
		"SetWanted":     {func(ctx context.Context, c *Client) error { return c.SetWanted(ctx, set, 1) }, "scale replicaset/" + access.Namespace + "/app"},
		"ScaleSet": {func(ctx context.Context, c *Client) error {
			return c.ScaleSet(ctx, set, types.SetScale{Former: &types.FormerScale{UID: "u1", Replicas: 1}})
		}, "disable set replicaset/" + access.Namespace + "/app"},
		"RunMachine": {func(ctx context.Context, c *Client) error {
			m := types.VirtualMachine{Namespace: "shop", Name: "till", UID: "u1", Version: "5"}
			return c.RunMachine(ctx, m, types.RunState{Strategy: "Always"}, nil)
		}, "enable machine virtualmachine/shop/till"},
		"DisableWorkloads": {func(ctx context.Context, c *Client) error {
			return c.DisableWorkloads(ctx, types.DisabledWorkloads{By: "n1"})
		}, "disable workloads configmap/" + access.Namespace + "/zedkube-disabled-workloads"},
		"EnableWorkloads": {func(ctx context.Context, c *Client) error {
			return c.EnableWorkloads(ctx, types.DisabledWorkloads{UID: "u1"})
		}, "enable workloads configmap/" + access.Namespace + "/zedkube-disabled-workloads"},
		"UncordonWorkloads": {func(ctx context.Context, c *Client) error { return c.UncordonWorkloads(ctx, "n1") }, ""}, // there is none
		"NoteRepair": {func(ctx context.Context, c *Client) error {
			return c.NoteRepair(ctx, set, types.RepairNote{By: "n1"})
		}, "note repair replicaset/" + access.Namespace + "/app"},
		"SetAffinity": {func(ctx context.Context, c *Client) error {
			return c.SetAffinity(ctx, set, "n1", true, types.RepairNote{})
		}, "set affinity replicaset/" + access.Namespace + "/app"},
		"Evict":          {func(ctx context.Context, c *Client) error { return c.Evict(ctx, pod) }, "evict pod/ns/p"},
		"PlanEvict":      {func(ctx context.Context, c *Client) error { return c.PlanEvict(ctx, pod) }, ""},
		"ForceDeletePod": {func(ctx context.Context, c *Client) error { return c.ForceDeletePod(ctx, pod) }, "force-delete pod pod/ns/p"},
		"DeleteAttachment": {func(ctx context.Context, c *Client) error {
			return c.DeleteAttachment(ctx, types.Attachment{Name: "a", UID: "u1"})
		}, "delete attachment volumeattachment/a"},
		"DeleteVMI": {func(ctx context.Context, c *Client) error { return c.DeleteVMI(ctx, types.VMI{Name: "vm", UID: "u1"}) }, "delete vmi vmi/" + access.Namespace + "/vm"},
		"ForgetVMI": {func(ctx context.Context, c *Client) error { return c.ForgetVMI(ctx, types.VMI{Name: "vm", UID: "u1"}) }, "forget vmi vmi/" + access.Namespace + "/vm"},
		"EnsureNAD": {func(ctx context.Context, c *Client) error { return c.EnsureNAD(ctx, "eth1", node) }, "ensure nad nad/" + access.Namespace + "/host-eth1"},
		"ReleaseNAD": {func(ctx context.Context, c *Client) error {
			return c.ReleaseNAD(ctx, "eth1", map[string]string{"n2": ""}, false)
		}, "release nad nad/" + access.Namespace + "/host-eth1"},
		"EnsureNetworkNAD": {func(ctx context.Context, c *Client) error { return c.EnsureNetworkNAD(ctx, line) }, "ensure nad nad/" + access.Namespace + "/ni-line-1"},
		"DeleteNetworkNAD": {func(ctx context.Context, c *Client) error { return c.DeleteNetworkNAD(ctx, line) }, "delete nad nad/" + access.Namespace + "/ni-line-1"},
		"SetSRIOVConfig": {func(ctx context.Context, c *Client) error {
			return c.SetSRIOVConfig(ctx, types.SRIOVConfig{Version: "5", Data: map[string]string{"a": "b"}})
		}, "set configmap configmap/kube-system/" + network.SRIOVConfigMap},
		"EditAllocations": {func(ctx context.Context, c *Client) error {
			return c.EditAllocations(ctx, floorMap, adds)
		}, "write addresses configmap/" + access.Namespace + "/" + floorMap},
		"PublishNames": {func(ctx context.Context, c *Client) error {
			return c.PublishNames(ctx, "internal:53 {\n}\n", "x")
		}, "write names configmap/kube-system/" + types.DNSConfigMap},
		"MarkSRIOVPlugin":    {func(ctx context.Context, c *Client) error { return c.MarkSRIOVPlugin(ctx, plugin) }, "annotate pod pod/kube-system/p"},
		"RestartSRIOVPlugin": {func(ctx context.Context, c *Client) error { return c.RestartSRIOVPlugin(ctx, plugin) }, "delete pod pod/kube-system/p"},
		"DeleteSRIOVNetwork": {func(ctx context.Context, c *Client) error {
			return c.DeleteSRIOVNetwork(ctx, types.SRIOVNetwork{Name: "sriov", UID: "u1", Version: "5"})
		}, "delete nad nad/" + access.Namespace + "/sriov"},
		"SetReserved": {func(ctx context.Context, c *Client) error {
			_, err := c.SetReserved(ctx, types.LonghornNode{Name: "n1", UID: "u1"}, 5)
			return err
		}, "reserve storage longhorn-node/n1"},
		"SetLonghornSetting": {func(ctx context.Context, c *Client) error {
			return c.SetLonghornSetting(ctx, types.LonghornSetting{Name: "policy", UID: "u1", Version: "5"}, "y")
		}, "set longhorn setting longhorn-setting/policy"},
		"EnsureSnapshotJob": {func(ctx context.Context, c *Client) error {
			_, err := c.EnsureSnapshotJob(ctx, "@daily")
			return err
		}, "ensure snapshot job recurringjob/" + types.SnapshotJobName},
		"DeleteSnapshotJob": {func(ctx context.Context, c *Client) error {
			_, err := c.DeleteSnapshotJob(ctx, types.SnapshotJob{Name: types.SnapshotJobName, UID: "u1", Version: "5"})
			return err
		}, "delete snapshot job recurringjob/" + types.SnapshotJobName},
		"RevokeKubeconfig": {func(ctx context.Context, c *Client) error {
			return c.RevokeKubeconfig(ctx, types.IssuedKubeconfig{Name: "zedkube-kubeconfig-a", UID: "u1"})
		}, "revoke kubeconfig kubeconfig/zedkube-kubeconfig-a"},
		"IssueKubeconfig":      {nil, ""}, // its name is random: the story kubeconfig
		"IssueAgentKubeconfig": {nil, ""}, // somebody has to sign: TestAgainstARealAPIServer
		"Event":                {func(ctx context.Context, c *Client) error { return c.Event(ctx, types.Event{Node: "n1", Reason: "R"}) }, ""},
		"KeepCordon":           {nil, ""}, // needs the API server's own record of a cordon: TestKeepCordonIsOnRecord
		"Elect":                {nil, ""}, // writes a Lease
		"Repair":               {nil, ""}, // writes a Lease
	}
}

// readings are the methods that write nothing.
var readings = []string{
	"AppPodsNow", "DeprecatedAPIs", "DisabledWorkloads", "DrainLock", "EdgeNode", "EdgeStats", "Events", "FreshNodes", "KubeletContainers", "Kubeconfigs", "KubeletStats", "LogFile", "LogFiles", "Logs", "NADs", "NodeAttachments", "NodeStats", "PodNow",
	"PodsToEvict", "Ready", "Run", "RunningPods", "SRIOVConfig", "SRIOVNetworks", "SRIOVPlugins", "Situations", "Storage", "NodeLease", "NodeLeases", "VolumeUsers",
}
