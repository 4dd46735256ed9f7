//go:build linux

package kubeapi_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/workload/storage"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// keeper is the storage component of one node. Its clock runs thirty times as
// fast as ours, so that what it lets rest for ten seconds rests for a third of one.
type keeper struct {
	*agent
	said   pubsub.Table[types.ConfigItemValueMap]
	status pubsub.Table[types.KubeStorageStatus]
}

func keepLevels(t *testing.T, a *agent) *keeper {
	k := &keeper{agent: a}
	begin := time.Now()
	c := &storage.Component{
		Log: a.Log, Pulse: &loop.Pulse{}, Settings: &k.said, Info: &a.info, Leader: &a.leader, Nodes: &a.nodes,
		Tables: &a.tables, OwnDisks: &a.disks, LonghornSettings: &a.settings, SnapshotJobs: &a.jobs, Kube: a.Client,
		Uptime: func() time.Duration { return 30 * time.Since(begin) }, Status: &k.status,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return k
}

func (k *keeper) says() types.KubeStorageStatus {
	s, _ := k.status.Get(types.Global)
	return s
}

func (k *keeper) set(cron, policy string, gigabytes uint32) {
	text := func(s string) types.ConfigItemValue {
		return types.ConfigItemValue{ItemType: types.ConfigItemString, StrValue: s}
	}
	_ = k.said.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
		types.SettingSnapshotCron: text(cron), types.SettingNodeDrainPolicy: text(policy),
		types.SettingDiskReserved: {ItemType: types.ConfigItemInt, IntValue: gigabytes},
	}})
}

// levelsKept wants the cluster for itself: the drain policy is everybody's.
func levelsKept(t *testing.T, c *devcluster.Cluster) {
	ctx := t.Context()
	if err := c.InstallLonghorn(ctx); err != nil {
		t.Fatal(err)
	}
	own, other := c.Nodes[1].Name, c.Nodes[2].Name
	get := func(short, name string) *unstructured.Unstructured {
		o, err := c.Custom(short).Namespace(devcluster.LonghornNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return &unstructured.Unstructured{Object: map[string]any{}}
		}
		return o
	}
	patch := func(short, name, text string, subresource ...string) {
		t.Helper()
		_, err := c.Custom(short).Namespace(devcluster.LonghornNamespace).Patch(ctx, name, ktypes.MergePatchType, []byte(text), metav1.PatchOptions{}, subresource...)
		if err != nil {
			t.Error(err)
		}
	}
	reserved := func(node string) int64 {
		n, _, _ := unstructured.NestedInt64(get("lhn", node).Object, "spec", "disks", "default-disk", "storageReserved")
		return n
	}
	policy := func() string {
		v, _, _ := unstructured.NestedString(get("lhs", types.LonghornDrainPolicy).Object, "value")
		return v
	}
	job := func() map[string]any {
		spec, _, _ := unstructured.NestedMap(get("lhrj", types.SnapshotJobName).Object, "spec")
		return spec
	}
	disksBefore, _, _ := unstructured.NestedMap(get("lhn", own).Object, "spec", "disks", "default-disk")

	busy, calm := context.WithCancel(ctx)
	var longhorn sync.WaitGroup
	longhorn.Go(func() { // Longhorn tells of its disks all the time
		for i := 0; busy.Err() == nil; i++ {
			patch("lhn", own, fmt.Sprintf(`{"status":{"diskStatus":{"default-disk":{"storageAvailable":%d,"storageMaximum":%d}}}}`, i, int64(64)<<30), "status")
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer func() { calm(); longhorn.Wait() }()

	k := keepLevels(t, newAgent(t, c, 1))
	follower := keepLevels(t, newAgent(t, c, 2))
	_ = k.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	k.set("30 2 * * *", "block-for-eviction", 5)
	follower.set("30 2 * * *", "block-for-eviction", 1048576)
	reached := func() bool {
		s := k.says()
		return reserved(own) == 5<<30 && policy() == "block-for-eviction" && job()["cron"] == "30 2 * * *" &&
			s.DiskReservation.Why+s.SnapshotJob.Why+s.DrainPolicy.Why == "" && s.SnapshotJob.Kept && s.DiskReservation.Actual == "5368709120"
	}
	eventually(t, "all levels are reached", 5*time.Second, reached)
	calm()
	longhorn.Wait()
	want := map[string]any{
		"name": types.SnapshotJobName, "task": "snapshot", "groups": []any{"default"}, "cron": "30 2 * * *", "retain": int64(3), "concurrency": int64(1),
	}
	if d := cmp.Diff(want, job()); d != "" {
		t.Errorf("the job: %s", d)
	}
	disks, _, _ := unstructured.NestedMap(get("lhn", own).Object, "spec", "disks", "default-disk")
	disksBefore["storageReserved"] = int64(5 << 30)
	if d := cmp.Diff(disksBefore, disks); d != "" {
		t.Errorf("the disk: %s", d)
	}
	if reserved(other) != 0 || len(follower.settings.All())+len(follower.jobs.All()) != 0 {
		t.Errorf("node %s has %d bytes reserved; a follower sees %v", other, reserved(other), follower.settings.All())
	}

	time.Sleep(time.Second) // half a minute of theirs
	patch("lhrj", types.SnapshotJobName, `{"spec":{"cron":"0 5 * * *","retain":7}}`)
	patch("lhs", types.LonghornDrainPolicy, `{"value":"always-allow"}`)
	patch("lhn", own, `{"spec":{"disks":{"default-disk":{"storageReserved":1,"allowScheduling":false}}}}`)
	eventually(t, "what an operator changed is put back", 12*time.Second, func() bool {
		return reserved(own) == 5<<30 && policy() == "block-for-eviction" && job()["cron"] == "30 2 * * *"
	})
	allowed, _, _ := unstructured.NestedBool(get("lhn", own).Object, "spec", "disks", "default-disk", "allowScheduling")
	if job()["retain"] != int64(7) || allowed {
		t.Errorf("more than that was put back: the job is %v, the disk is used: %v", job(), allowed)
	}

	k.set("", "always-allow", 1048576)
	eventually(t, "the job is gone and the policy another one", 12*time.Second, func() bool {
		return len(job()) == 0 && policy() == "always-allow" && !k.says().DiskReservation.Kept
	})
	_ = k.leader.Publish(types.Global, types.KubeLeaderElectInfo{})
	eventually(t, "it leads no more", time.Second, func() bool { return !k.says().DrainPolicy.Kept && len(k.settings.All()) == 0 })
	patch("lhs", types.LonghornDrainPolicy, `{"value":"block-if-contains-last-replica"}`)
	time.Sleep(2 * time.Second) // a minute of theirs
	if p := policy(); p != "block-if-contains-last-replica" {
		t.Errorf("a node that does not lead set %q", p)
	}
}
