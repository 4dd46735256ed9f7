//go:build linux

package devcluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func volumesAttach(t *testing.T, c *Cluster) {
	ctx := t.Context()
	first, second := c.Nodes[0].Name, c.Nodes[1].Name
	for range 2 {
		if err := c.InstallLonghorn(ctx); err != nil {
			t.Fatal(err)
		}
	}
	find := func(short, name string) *unstructured.Unstructured {
		o, err := c.Custom(short).Namespace(LonghornNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	becomes := func(short, name, field, want string) {
		t.Helper()
		eventually(t, 5*time.Second, name+" to be "+want, func() bool { return text(find(short, name), "status", field) == want })
	}
	if err := c.CreateVolume(ctx, "vol-a", first, first, second); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateVolume(ctx, "vol-b", "", first); err != nil {
		t.Fatal(err)
	}
	becomes("lhv", "vol-a", "robustness", "healthy")
	volume := find("lhv", "vol-a")
	if text(volume, "status", "state") != "attached" || text(volume, "status", "currentNodeID") != first ||
		text(volume, "status", "kubernetesStatus", "pvcName") != "vol-a-pvc-0" {
		t.Errorf("volume is %v", volume.Object["status"])
	}
	becomes("lhr", "vol-a-r-2", "currentState", "running")
	if ip := text(find("lhr", "vol-a-r-2"), "status", "ip"); ip != c.Nodes[1].IP {
		t.Errorf("the replica is at %q", ip)
	}
	becomes("lhe", "vol-a-e-0", "currentState", "running")
	modes, _, _ := unstructured.NestedStringMap(find("lhe", "vol-a-e-0").Object, "status", "replicaModeMap")
	if diff := cmp.Diff(map[string]string{"vol-a-r-1": "RW", "vol-a-r-2": "RW"}, modes); diff != "" {
		t.Errorf("modes of the replicas:\n%s", diff)
	}
	becomes("lhv", "vol-b", "state", "detached")
	becomes("lhr", "vol-b-r-1", "currentState", "stopped")
	becomes("lhe", "vol-b-e-0", "currentState", "stopped")
	eventually(t, 5*time.Second, "the node of Longhorn to be ready", func() bool {
		disks, _, _ := unstructured.NestedMap(find("lhn", second).Object, "status", "diskStatus")
		return disks[longhornDisk] != nil
	})

	move := func(to string) {
		t.Helper()
		_, err := c.Custom("lhv").Namespace(LonghornNamespace).Patch(ctx, "vol-a", types.MergePatchType,
			[]byte(`{"spec":{"nodeID":"`+to+`"}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	move(second)
	becomes("lhv", "vol-a", "currentNodeID", second)
	move("")
	becomes("lhv", "vol-a", "state", "detached")
	becomes("lhv", "vol-a", "currentNodeID", "")
}

func volumesSuffer(t *testing.T, c *Cluster) {
	ctx := t.Context()
	first, second := c.Nodes[0].Name, c.Nodes[1].Name
	if err := errors.Join(c.InstallLonghorn(ctx), c.CreateVolume(ctx, "vol-c", first, first, second)); err != nil {
		t.Fatal(err)
	}
	find := func(short, name string) *unstructured.Unstructured {
		o, err := c.Custom(short).Namespace(LonghornNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	modes := func() map[string]string {
		m, _, _ := unstructured.NestedStringMap(find("lhe", "vol-c-e-0").Object, "status", "replicaModeMap")
		return m
	}
	eventually(t, 5*time.Second, "all to be RW", func() bool {
		return len(modes()) == 2 && text(find("lhv", "vol-c"), "status", "state") == "attached"
	})
	if err := c.SetReplicaMode(ctx, "vol-c", "vol-c-r-2", "WO", 40); err != nil {
		t.Fatal(err)
	}
	progress, _, _ := unstructured.NestedInt64(find("lhe", "vol-c-e-0").Object, "status", "rebuildStatus", "tcp://"+c.Nodes[1].IP+":10000", "progress")
	if modes()["vol-c-r-2"] != "WO" || progress != 40 || text(find("lhv", "vol-c"), "status", "robustness") != "degraded" {
		t.Errorf("a rebuild shows as %v, %d %%, %v", modes(), progress, find("lhv", "vol-c").Object["status"])
	}
	if err := c.SetReplicaMode(ctx, "vol-c", "vol-c-r-2", "", 0); err != nil || len(modes()) != 1 {
		t.Errorf("without a mode: %v, %v", modes(), err)
	}
	if err := c.FailReplica(ctx, "vol-c-r-2", true); err != nil || text(find("lhr", "vol-c-r-2"), "spec", "failedAt") == "" {
		t.Errorf("a failed replica does not say so: %v", err)
	}
	if err := c.SetDrainPolicy(ctx, "always-allow"); err != nil || text(find("lhs", "node-drain-policy"), "value") != "always-allow" {
		t.Errorf("the policy is not set: %v", err)
	}

	vm, err := c.CreateVM(ctx, App{Name: "vol-44444-0", Domain: "v.4.4", Node: first, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.WaitRunning(ctx, labelDomain+"=v.4.4", 1)
	if err != nil || pods[0].Name != vm {
		t.Fatal(pods, err)
	}
	if err := c.AttachClaim(ctx, "vol-c", first); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.DetachAfter(ctx, pods[0], "vol-c") }()
	api := c.Client().StorageV1().VolumeAttachments()
	if a, err := api.Get(ctx, "vol-c-"+first, metav1.GetOptions{}); err != nil || !a.Status.Attached || a.Spec.NodeName != first {
		t.Errorf("attachment is %+v, %v", a, err)
	}
	if err := c.Client().CoreV1().Pods(AppNamespace).Delete(ctx, vm, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := api.Get(ctx, "vol-c-"+first, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the attachment is still there: %v", err)
	}
	for short, name := range map[string]string{"lhe": "vol-c-e-0", "lhr": "vol-c-r-1"} {
		eventually(t, 5*time.Second, name+" to stop", func() bool { return text(find(short, name), "status", "currentState") == "stopped" })
	}
	eventually(t, 5*time.Second, "the volume to be detached", func() bool { return text(find("lhv", "vol-c"), "status", "state") == "detached" })
	if err := c.MoveVolume(ctx, "vol-c", second); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the volume to be attached elsewhere, all RW", func() bool {
		return text(find("lhv", "vol-c"), "status", "currentNodeID") == second && len(modes()) == 2
	})
}

// customKinds creates an object of each kind and finds it by kubectl's short name.
func customKinds(t *testing.T, c *Cluster) {
	for _, k := range customs {
		short, _, _ := strings.Cut(k.short, ",")
		o := object(k.group+"/"+k.version, k.kind, metav1.ObjectMeta{Name: "some"}, map[string]any{"spec": map[string]any{"a": "b"}})
		if _, err := c.Custom(short).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", k.kind, err)
		}
		out, err := c.Kubectl(t.Context(), "get", short, "some", "-o", "jsonpath={.spec.a}")
		if err != nil || string(out) != "b" {
			t.Errorf("%s is %q, %v", k.kind, out, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("there is a client for a kind nobody knows")
		}
	}()
	c.Custom("unicorn")
}
