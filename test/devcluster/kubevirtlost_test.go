//go:build linux

package devcluster

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// nodeIsLost shows what KubeVirt does of itself to the machines of a node that
// is lost, and what it takes to have them made anew before that.
func nodeIsLost(t *testing.T, c *Cluster) {
	lost := len(c.Nodes) - 1
	apps := map[string]App{}
	machines := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"waits", "bound", "forced", "forgotten", "deleted"} {
		app := App{Name: name + "-12345-0", Domain: name + ".0.1", Node: c.Nodes[lost].Name, Required: name == "bound"}
		apps[name], machines[name] = app, launch(t, c, app)
	}
	c.StopKubelet(lost)
	eventually(t, 30*time.Second, "the node to be unknown", func() bool { return readyOf(t, c, lost) == corev1.ConditionUnknown })
	eventually(t, 5*time.Second, "its machines to be unready", func() bool {
		now := machine(t, c, machines["forced"])
		return now != nil && !machineIsReady(now)
	})
	if now := machine(t, c, machines["forced"]); text(now, "status", "phase") != "Running" || now.GetDeletionTimestamp() != nil {
		t.Errorf("a machine of the lost node is %v", now.Object["status"])
	}

	// Fifteen seconds after the node's loss all its machines are told to go: what is to
	// happen before happens at once.
	none := int64(0)
	pod := launcherOf(t, c, machines["forced"])
	if err := c.Client().CoreV1().Pods(AppNamespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	forgotten := machines["forgotten"]
	_, err := c.Custom("vmi").Namespace(AppNamespace).Patch(t.Context(), forgotten.GetName(), types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deleteMachine(t, c, "vmi", forgotten.GetName())
	deleteMachine(t, c, "vmi", machines["deleted"].GetName())

	runsElsewhere(t, c, apps["forced"], machines["forced"])
	eventually(t, 5*time.Second, "the machine without launcher pod to go", gone(t, c, machines["forced"]))
	runsElsewhere(t, c, apps["forgotten"], forgotten)
	if left := launcherOf(t, c, forgotten); left == nil || machine(t, c, forgotten) != nil {
		t.Errorf("of the forgotten machine there are %v and the launcher pod %v", machine(t, c, forgotten), left)
	}

	runsElsewhere(t, c, apps["deleted"], machines["deleted"])
	runsElsewhere(t, c, apps["waits"], machines["waits"])
	for _, name := range []string{"deleted", "waits", "bound"} {
		staleMachine(t, c, machines[name])
	}
	if err := c.StartKubelet(lost); err != nil {
		t.Fatal(err)
	}
	for name, vmi := range machines {
		eventually(t, 20*time.Second, "what is left of "+name+" to go", gone(t, c, vmi))
	}
	if next := machineOf(t, c, apps["bound"], machines["bound"].GetName()); text(next, "status", "nodeName") != c.Nodes[lost].Name {
		t.Errorf("the machine that is bound to the node runs on %s", text(next, "status", "nodeName"))
	}
}

// runsElsewhere waits until an application runs on another node.
func runsElsewhere(t *testing.T, c *Cluster, app App, old *unstructured.Unstructured) {
	t.Helper()
	var next *unstructured.Unstructured
	eventually(t, 30*time.Second, app.Name+" to run again", func() bool {
		for _, vmi := range machinesOf(t, c, app) {
			if vmi.GetUID() != old.GetUID() && machineIsReady(&vmi) {
				next = &vmi
			}
		}
		return next != nil
	})
	if node := text(next, "status", "nodeName"); node == app.Node {
		t.Errorf("%s runs again on the lost %s", app.Name, node)
	}
}

// staleMachine looks at a machine that KubeVirt has replaced: nobody on its node
// stops it, so that its object stays.
func staleMachine(t *testing.T, c *Cluster, old *unstructured.Unstructured) {
	t.Helper()
	eventually(t, 20*time.Second, old.GetName()+" to be told to go", func() bool {
		now := machine(t, c, old)
		return now == nil || now.GetDeletionTimestamp() != nil
	})
	now := machine(t, c, old)
	if now == nil {
		t.Errorf("%s is gone although nobody stopped it", old.GetName())
		return
	}
	_, reason := readyOfMachine(now)
	if len(now.GetFinalizers()) == 0 || text(now, "status", "phase") != "Running" || reason != "PodTerminating" {
		t.Errorf("%s has finalizers %v and status %v", now.GetName(), now.GetFinalizers(), now.Object["status"])
	}
}

// machine returns a machine as it is now, nil if it is gone.
func machine(t *testing.T, c *Cluster, vmi metav1.Object) *unstructured.Unstructured {
	t.Helper()
	now, err := c.Custom("vmi").Namespace(AppNamespace).Get(t.Context(), vmi.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return now
}

func readyOf(t *testing.T, c *Cluster, i int) corev1.ConditionStatus {
	t.Helper()
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Nodes[i].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return ""
}

// handlerIsSilent sets the heartbeat of a node back instead of waiting.
func handlerIsSilent(t *testing.T, c *Cluster) {
	const i = 2
	setBack := func(by time.Duration) time.Time {
		then := time.Now().Add(-by).UTC().Truncate(time.Second)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{heartbeat: then.Format(time.RFC3339)}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), c.Nodes[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		return then
	}
	node := func() *corev1.Node {
		node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Nodes[i].Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	for range 6 { // whatever else the kubelet has in mind for the node
		then := setBack(2 * time.Minute)
		eventually(t, 5*time.Second, "a heartbeat", func() bool {
			now, err := time.Parse(time.RFC3339, node().Annotations[heartbeat])
			return err == nil && now.After(then.Add(time.Minute))
		})
	}
	c.StopKubelet(i)
	setBack(6 * time.Minute)
	eventually(t, 10*time.Second, "the node to take no machines", func() bool { return node().Labels[schedulable] == "false" })
	if err := c.StartKubelet(i); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the node to take machines", func() bool { return node().Labels[schedulable] == "true" })
}

// TestKubeVirtOnHosts shows that each host has KubeVirt, and that another
// virt-controller takes over.
func TestKubeVirtOnHosts(t *testing.T) {
	needsHosts(t)
	c := start(t, Options{Hosts: true, KubeVirt: true})
	leader := func() string {
		lease, err := c.Client().CoordinationV1().Leases(KubeVirtNamespace).Get(t.Context(), virtController, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	first := leader()
	i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.Name == first })
	if i < 0 {
		t.Fatalf("%q leads, want a node", first)
	}
	app := App{Name: "host-12345-0", Domain: "host.0.1", Node: c.Nodes[(i+1)%len(c.Nodes)].Name, Required: true}
	old := launch(t, c, app)
	c.StopControlPlane(i)
	eventually(t, 30*time.Second, "another virt-controller to lead", func() bool { now := leader(); return now != "" && now != first })
	if err := evict(c, *launcherOf(t, c, old)); err != nil {
		t.Fatal(err)
	}
	if next := machineOf(t, c, app, old.GetName()); text(next, "status", "nodeName") != app.Node {
		t.Errorf("the next machine is on %s", text(next, "status", "nodeName"))
	}
}
