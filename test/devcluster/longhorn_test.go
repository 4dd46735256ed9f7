//go:build linux

package devcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
