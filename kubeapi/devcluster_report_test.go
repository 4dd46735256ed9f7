//go:build linux

package kubeapi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// reported are the tables of reports and of what is kept in Longhorn.
type reported struct {
	services  pubsub.Table[types.Service]
	ingresses pubsub.Table[types.Ingress]
	vip       pubsub.Table[types.KubeVIP]
	cdi       pubsub.Table[types.DeployedVersion]
	disks     pubsub.Table[types.LonghornNode]
	counts    pubsub.Table[types.KubePodNameSpaceInfo]
	claims    pubsub.Table[types.Claim]
	volumes   pubsub.Table[types.Volume]
	lhNodes   pubsub.Table[types.LonghornNode]
	daemons   pubsub.Table[types.DaemonSet]
	settings  pubsub.Table[types.LonghornSetting]
	jobs      pubsub.Table[types.SnapshotJob]
	creds     pubsub.Table[types.Credentials]
	clocks    pubsub.Table[types.NodeClock]
}

func (r *reported) fill(c *kubeapi.Client) {
	c.Services, c.Ingresses, c.KubeVIP, c.CDI, c.OwnDisks = &r.services, &r.ingresses, &r.vip, &r.cdi, &r.disks
	c.PodCounts, c.Claims, c.Volumes, c.LonghornNodes, c.Daemons = &r.counts, &r.claims, &r.volumes, &r.lhNodes, &r.daemons
	c.Settings, c.SnapshotJobs = &r.settings, &r.jobs
	c.Credentials, c.Clocks = &r.creds, &r.clocks
}

func (r *reported) count(namespace string) types.KubePodNameSpaceInfo {
	c, _ := r.counts.Get(namespace)
	return c
}

// counted reports whether the pods of the cluster are.
func (a *agent) counted() bool {
	s, ok := a.tables.Get(types.TablePodCounts)
	return ok && s.Complete
}

// reportFollows comes after the story of volumes, which has to see the cluster
// without Longhorn.
func reportFollows(t *testing.T, c *devcluster.Cluster) {
	ctx := t.Context()
	a := newAgent(t, c, 6)
	here, there := c.Nodes[0].Name, c.Nodes[2].Name
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	stands := func(name string) types.TableStatus { s, _ := a.tables.Get(name); return s }
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	tables := []string{
		types.TablePodCounts, types.TableClaims, types.TableLonghornVolumes, types.TableLonghornEngines, types.TableLonghornReplicas,
		types.TableLonghornSnapshots, types.TableLonghornNodes, types.TableLonghornDaemons,
	}
	eventually(t, "the tables of a report are whole", 5*time.Second, func() bool {
		for _, name := range tables {
			if !stands(name).Complete {
				return false
			}
		}
		return true
	})
	do(c.InstallLonghorn(ctx), c.CreateVolume(ctx, "rep-a", here, here, there))
	_, err := c.CreateClaim(ctx, "rep-a")
	do(err)
	eventually(t, "Longhorn appears with its nodes", time.Minute+10*time.Second, func() bool {
		n, ok := a.lhNodes.Get(here)
		return ok && !stands(types.TableLonghornNodes).Absent && n.Allowed && len(n.Disks) == 1
	})
	volume := func() types.Volume { v, _ := a.volumes.Get("rep-a"); return v }
	eventually(t, "the volume is healthy", 10*time.Second, func() bool {
		v := volume()
		return v.Robustness == "healthy" && v.Running && v.HealthyReplicas() == 2 && v.Size == 10<<30 && v.Used == 1<<30 && v.ClaimState == "Bound" &&
			v.Claim == "eve-kube-app/rep-a-pvc-0" && !v.Created.IsZero()
	})
	eventually(t, "its claim is bound", 5*time.Second, func() bool {
		p, _ := a.claims.Get("rep-a-pvc-0")
		return p.Phase == types.ClaimBound && p.Volume == "rep-a" && p.Bytes == 10<<30
	})
	do(c.SetReplicaMode(ctx, "rep-a", "rep-a-r-2", "WO", 37))
	eventually(t, "its rebuild is seen", time.Second, func() bool {
		v := volume()
		return len(v.Replicas) == 2 && v.Replicas[1].Mode == "WO" && v.Replicas[1].Percent == 37 && v.Robustness == "degraded"
	})
	snapshots := c.Custom("lhsnap").Namespace(devcluster.LonghornNamespace)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Snapshot", "metadata": map[string]any{"name": "rep-a-s1"}, "spec": map[string]any{"volume": "rep-a"},
	}}
	o, err = snapshots.Create(ctx, o, metav1.CreateOptions{})
	do(err, unstructured.SetNestedField(o.Object, int64(5<<20), "status", "size"))
	_, err = snapshots.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	do(err)
	eventually(t, "its snapshot is seen", time.Second, func() bool { return volume().Snapshots == 5<<20 })
	do(snapshots.Delete(ctx, "rep-a-s1", metav1.DeleteOptions{}))
	eventually(t, "its snapshot is gone", time.Second, func() bool { return volume().Snapshots == 0 })
	waits(ctx, t, c, a)
	do(c.Custom("lhv").Namespace(devcluster.LonghornNamespace).Delete(ctx, "rep-a", metav1.DeleteOptions{}))
	eventually(t, "the volume is gone", 5*time.Second, func() bool { _, ok := a.volumes.Get("rep-a"); return !ok })
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{})
	eventually(t, "a former leader has nothing of it", time.Second, func() bool {
		for _, name := range tables {
			if _, ok := a.tables.Get(name); ok {
				return false
			}
		}
		return len(a.counts.All())+len(a.claims.All())+len(a.volumes.All())+len(a.lhNodes.All()) == 0
	})
}

// waits makes a claim that nobody serves.
func waits(ctx context.Context, t *testing.T, c *devcluster.Cluster, a *agent) {
	t.Helper()
	class := "none"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "rep-waits"}}
	claim.Spec.StorageClassName, claim.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	if _, err := c.Client().CoreV1().PersistentVolumeClaims(kubeapi.Namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a claim waits", 2*time.Second, func() bool {
		p, _ := a.claims.Get("rep-waits")
		return p.Phase == types.ClaimPending && p.Bytes == 3<<30 && p.Volume == ""
	})
}
