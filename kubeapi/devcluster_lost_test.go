//go:build linux

package kubeapi_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func forgetsVMI(t *testing.T, c *devcluster.Cluster, a *agent) {
	ctx := t.Context()
	api := c.Custom("vmi").Namespace(kubeapi.Namespace)
	create := func() types.VMI {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Running", "nodeName": "gone"}}}
		o.SetAPIVersion("kubevirt.io/v1")
		o.SetKind("VirtualMachineInstance")
		o.SetName("stuck4q8zt")
		o.SetFinalizers([]string{"foregroundDeleteVirtualMachine", "example.org/other"})
		made, err := api.Create(ctx, o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var v types.VMI
		eventually(t, "the instance is seen", 5*time.Second, func() bool {
			v, _ = a.vmis.Get("stuck4q8zt")
			return v.UID == string(made.GetUID())
		})
		return v
	}
	v := create()
	if v.Phase != types.VMIRunning || v.NodeName != "gone" {
		t.Errorf("its row is %+v", v)
	}
	if err := a.DeleteVMI(ctx, v); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits for its finalizers", 5*time.Second, func() bool { v, _ = a.vmis.Get(v.Name); return !v.Deleted.IsZero() })
	if err := a.ForgetVMI(ctx, v); err != nil {
		t.Fatal(err)
	}
	old := v
	v = create()
	for _, err := range []error{a.ForgetVMI(ctx, old), a.DeleteVMI(ctx, old)} {
		if err != nil {
			t.Errorf("of one that is gone: %v", err)
		}
	}
	now, err := api.Get(ctx, v.Name, metav1.GetOptions{})
	if err != nil || now.GetDeletionTimestamp() != nil || len(now.GetFinalizers()) != 2 {
		t.Errorf("its namesake became %v, %v", now, err)
	}
	if err := a.ForgetVMI(ctx, v); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is none", 5*time.Second, func() bool { _, there := a.vmis.Get(v.Name); return !there })
}

func deletesPod(t *testing.T, c *devcluster.Cluster, a *agent) {
	ctx := t.Context()
	api := c.Client().CoreV1().Pods(kubeapi.Namespace)
	create := func() types.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "lost"},
			Spec: corev1.PodSpec{
				NodeName: "no-such-node", TerminationGracePeriodSeconds: new(int64(600)), Containers: []corev1.Container{{Name: "c", Image: "x"}},
			},
		}
		made, err := api.Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return types.Pod{Namespace: kubeapi.Namespace, Name: "lost", UID: string(made.UID)}
	}
	old := create()
	eventually(t, "its row says more", 5*time.Second, func() bool {
		p, _ := a.appPods.Get(old.Key())
		return len(p.Containers) == 1 && p.Containers[0].Name == "c"
	})
	if err := a.ForceDeletePod(ctx, old); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Get(ctx, "lost", metav1.GetOptions{}); err == nil {
		t.Error("it is still there")
	}
	now := create()
	if err := a.ForceDeletePod(ctx, old); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
	if p, err := api.Get(ctx, "lost", metav1.GetOptions{}); err != nil || string(p.UID) != now.UID || p.DeletionTimestamp != nil {
		t.Errorf("its namesake became %v, %v", p, err)
	}
	if err := a.ForceDeletePod(ctx, now); err != nil {
		t.Error(err)
	}
}

func deletesAttachment(t *testing.T, c *devcluster.Cluster, a *agent) {
	ctx, pv := t.Context(), "pv-lost"
	api := c.Client().StorageV1().VolumeAttachments()
	_, err := api.Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "lost", Finalizers: []string{"external-attacher/driver-longhorn-io"}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "driver.longhorn.io", NodeName: "no-such-node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := a.NodeAttachments(ctx, "no-such-node")
	if err != nil || len(found) != 1 || found[0].Volume != pv || found[0].Node != "no-such-node" {
		t.Fatalf("found %+v, %v", found, err)
	}
	foreign := found[0]
	foreign.UID = "11111111-1111-4111-8111-111111111111"
	if err := a.DeleteAttachment(ctx, foreign); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
	if now, err := api.Get(ctx, "lost", metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil {
		t.Fatalf("its namesake became %v, %v", now, err)
	}
	if err := a.DeleteAttachment(ctx, found[0]); err != nil {
		t.Fatal(err)
	}
	now, err := api.Get(ctx, "lost", metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp == nil || len(now.Finalizers) != 1 {
		t.Fatalf("it became %v, %v", now, err)
	}
	now.Finalizers = nil
	if _, err := api.Update(ctx, now, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// fences comes after all others: a node more is seen by them.
func fences(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 7)
	ctx := t.Context()
	nodes := c.Client().CoreV1().Nodes()
	lost := types.Node{Name: "lost"}
	n, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost.Name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nodes.Delete(ctx, lost.Name, metav1.DeleteOptions{}) }()
	lost.UID = string(n.UID)
	ready := func(status corev1.ConditionStatus) {
		t.Helper()
		text := `{"status":{"conditions":[{"type":"Ready","status":"` + string(status) + `","lastHeartbeatTime":"` + time.Now().UTC().Format(time.RFC3339) + `"}]}}`
		if _, err := nodes.Patch(ctx, lost.Name, ktypes.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	fence := types.Fence{By: c.Nodes[7].Name, Reason: "its device does not answer", Since: time.Now().UTC().Truncate(time.Second)}
	ready(corev1.ConditionTrue)
	if err := a.Fence(ctx, lost, fence); !errors.Is(err, types.ErrConflict) {
		t.Errorf("while it is Ready: %v", err)
	}
	ready(corev1.ConditionFalse)
	all, err := a.NodeLeases(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if renewed, err := a.NodeLease(ctx, c.Nodes[7].Name); err != nil || renewed.Before(all[c.Nodes[7].Name]) || renewed.IsZero() {
		t.Errorf("the Lease of a node was renewed at %v, and at %v in the list, %v", renewed, all[c.Nodes[7].Name], err)
	}
	if renewed, err := a.NodeLease(ctx, lost.Name); err != nil || !renewed.IsZero() {
		t.Errorf("the Lease of a node without a kubelet: %v, %v", renewed, err)
	}
	if err := a.Fence(ctx, lost, fence); err != nil {
		t.Fatal(err)
	}
	row(t, a, lost.Name, "the fence is seen", func(n types.Node) bool { return n.OutOfService && n.Fence != nil && *n.Fence == fence })
	another := lost
	another.UID = "another"
	if err := a.Unfence(ctx, another); !errors.Is(err, types.ErrConflict) {
		t.Errorf("of another node: %v", err)
	}
	if err := a.Unfence(ctx, lost); err != nil {
		t.Fatal(err)
	}
	row(t, a, lost.Name, "the fence is gone", func(n types.Node) bool { return !n.OutOfService && n.Fence == nil })
	kubectlPatches(t, c, lost.Name, `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}}`)
	if err := a.Fence(ctx, lost, fence); !errors.Is(err, types.ErrConflict) {
		t.Errorf("over a person's: %v", err)
	}
	if err := a.Unfence(ctx, lost); err != nil {
		t.Error(err)
	}
	row(t, a, lost.Name, "a person's stays", func(n types.Node) bool { return n.OutOfService && n.Fence == nil })
}

func witnesses(t *testing.T, c *devcluster.Cluster, a *agent) {
	node := c.Nodes[7].Name
	w := types.Witness{Round: 1, Sightings: []types.Sighting{{Node: "lost", UID: "u", Silent: 4}}}
	if err := a.Witness(t.Context(), node, w); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is read", func(n types.Node) bool {
		return n.Witness != nil && n.Witness.Round == 1 && slices.Equal(n.Witness.Sightings, w.Sightings)
	})
	if err := a.Witness(t.Context(), node, types.Witness{}); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is gone", func(n types.Node) bool { return n.Witness == nil })
}
