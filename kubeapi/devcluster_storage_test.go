//go:build linux

package kubeapi_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func volumes(t *testing.T, c *devcluster.Cluster) {
	ctx := t.Context()
	a := newAgent(t, c, 0)
	here, there := c.Nodes[0].Name, c.Nodes[2].Name
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	look := func() types.Storage {
		t.Helper()
		s, err := a.Storage(ctx, here)
		if err != nil {
			t.Log(err) // the lists may be of different moments
		}
		return s
	}
	if s, err := a.Storage(ctx, here); err != nil || s.Longhorn || len(s.Attachments)+len(s.Volumes) > 0 {
		t.Fatalf("before Longhorn is installed there is %+v, %v", s, err)
	}
	do(c.InstallLonghorn(ctx),
		c.CreateVolume(ctx, "vol-a", here, here, there), c.CreateVolume(ctx, "vol-b", "", here), c.CreateVolume(ctx, "vol-c", there, here))
	volume := func(name string) types.Volume {
		for _, v := range look().Volumes {
			if v.Name == name {
				return v
			}
		}
		return types.Volume{}
	}
	becomes := func(what, name string, ok func(types.Volume) bool) {
		t.Helper()
		eventually(t, name+" is "+what, 10*time.Second, func() bool { return ok(volume(name)) })
	}
	becomes("healthy on two nodes", "vol-a", func(v types.Volume) bool {
		return v.State == "attached" && v.Robustness == "healthy" && v.Running && v.Engine == here && v.HealthyReplicas() == 2 &&
			v.Claim == "eve-kube-app/vol-a-pvc-0" && v.Wanted == 2 && v.On(here) && v.On(there)
	})
	becomes("detached and whole", "vol-b", func(v types.Volume) bool {
		return v.State == "detached" && !v.Running && v.HealthyReplicas() == 1 && !v.Replicas[0].Running
	})
	becomes("attached elsewhere with its last replica here", "vol-c", func(v types.Volume) bool {
		return v.Running && v.Engine == there && v.HealthyReplicas() == 1 && v.On(here) && !v.On(there)
	})
	if s := look(); !s.Longhorn || s.Policy != "block-if-contains-last-replica" || len(s.Volumes) != 3 {
		t.Errorf("storage is %+v", s)
	}
	do(c.SetReplicaMode(ctx, "vol-a", "vol-a-r-2", "WO", 37))
	becomes("rebuilding", "vol-a", func(v types.Volume) bool {
		r := v.Replicas[1]
		return v.Robustness == "degraded" && r.Mode == "WO" && r.Percent == 37 && v.HealthyReplicas() == 1
	})
	do(c.SetReplicaMode(ctx, "vol-a", "vol-a-r-2", "ERR", 0), c.SetDrainPolicy(ctx, "allow-if-replica-is-stopped"))
	becomes("degraded", "vol-a", func(v types.Volume) bool { return v.Replicas[1].Mode == "ERR" && v.Replicas[1].Percent == 0 })
	do(c.FailReplica(ctx, "vol-b-r-1", true), c.SetRobustness(ctx, "vol-b", "faulted"))
	becomes("faulted", "vol-b", func(v types.Volume) bool {
		return v.Robustness == "faulted" && v.HealthyReplicas() == 0 && !v.Replicas[0].FailedAt.IsZero()
	})
	if s := look(); s.Policy != types.DrainPolicyAllowStopped {
		t.Errorf("the policy is %q", s.Policy)
	}
	do(c.AttachClaim(ctx, "vol-a", here), c.AttachClaim(ctx, "vol-c", there))
	if s := look(); len(s.Attachments) != 1 || s.Attachments[0].Volume != "vol-a" {
		t.Errorf("attached here: %+v", s.Attachments)
	}
	do(a.mounts.Publish(types.Global, types.MountRecovery{Watch: true}))
	eventually(t, "the own attachments are followed", 10*time.Second, func() bool {
		rows := slices.Collect(maps.Values(a.attached.All()))
		return len(rows) == 1 && rows[0].Volume == "vol-a"
	})
	do(c.DetachClaim(ctx, "vol-a", here), c.MoveVolume(ctx, "vol-a", ""))
	becomes("detached", "vol-a", func(v types.Volume) bool { return v.State == "detached" && !v.Running })
	if s := look(); len(s.Attachments) != 0 {
		t.Errorf("attached here: %+v", s.Attachments)
	}
}
