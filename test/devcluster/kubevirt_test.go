//go:build linux

package devcluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestKubeVirt shares one cluster with the real KubeVirt: its stories run side by
// side, each on applications of its own and those that lose a node on that.
func TestKubeVirt(t *testing.T) {
	c := start(t, Options{KubeVirt: true, Nodes: 6})
	t.Run("stories", func(t *testing.T) {
		t.Run("a set becomes a machine, and that a launcher pod that runs", func(t *testing.T) { t.Parallel(); setRuns(t, c) })
		t.Run("a deleted machine is made anew", func(t *testing.T) { t.Parallel(); machineIsMadeAnew(t, c) })
		t.Run("an evicted machine is made anew, unless it must migrate and cannot", func(t *testing.T) { t.Parallel(); machineIsEvicted(t, c) })
		t.Run("another affinity of the set is for the next machine", func(t *testing.T) { t.Parallel(); affinityIsForTheNext(t, c) })
		t.Run("a set that is scaled to nothing and back has another machine", func(t *testing.T) { t.Parallel(); setIsScaled(t, c) })
		t.Run("a paused set that is raised makes nothing until it is resumed", func(t *testing.T) { t.Parallel(); pausedSetRaisedMakesNothing(t, c) })
		t.Run("KubeVirt refuses a machine without memory", func(t *testing.T) { t.Parallel(); badMachineIsRefused(t, c) })
		t.Run("machines of a lost node", func(t *testing.T) { t.Parallel(); nodeIsLost(t, c) })
		t.Run("a node whose virt-handler is silent", func(t *testing.T) { t.Parallel(); handlerIsSilent(t, c) })
	})
}

// machineOf returns the one machine of an application that runs and is not told
// to go, other than the one of the given name.
func machineOf(t *testing.T, c *Cluster, app App, other string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	eventually(t, 20*time.Second, "a running machine of "+app.Name, func() bool {
		for _, vmi := range machinesOf(t, c, app) {
			if vmi.GetName() != other && vmi.GetDeletionTimestamp() == nil && machineIsReady(&vmi) {
				found = &vmi
				return true
			}
		}
		return false
	})
	return found
}

func machinesOf(t *testing.T, c *Cluster, app App) []unstructured.Unstructured {
	t.Helper()
	list, err := c.Custom("vmi").Namespace(AppNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelDomain + "=" + app.Domain})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// readyOfMachine returns the condition Ready of a machine as its status and reason.
func readyOfMachine(vmi *unstructured.Unstructured) (status, reason string) {
	conditions, _, _ := unstructured.NestedSlice(vmi.Object, "status", "conditions")
	for _, x := range conditions {
		if cond, _ := x.(map[string]any); cond["type"] == "Ready" {
			status, _ = cond["status"].(string)
			reason, _ = cond["reason"].(string)
		}
	}
	return status, reason
}

func machineIsReady(vmi *unstructured.Unstructured) bool {
	status, _ := readyOfMachine(vmi)
	return text(vmi, "status", "phase") == "Running" && status == "True"
}

// launcherOf returns the launcher pod of a machine, nil if there is none.
func launcherOf(t *testing.T, c *Cluster, vmi metav1.Object) *corev1.Pod {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods(AppNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-launcher"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, vmi) {
			return &pod
		}
	}
	return nil
}

func gone(t *testing.T, c *Cluster, vmi metav1.Object) func() bool {
	return func() bool {
		_, err := c.Custom("vmi").Namespace(AppNamespace).Get(t.Context(), vmi.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err) && launcherOf(t, c, vmi) == nil
	}
}

// launch creates an application and returns its machine. One that names no node runs
// where no story loses the node: on a lost one nobody stops a machine.
func launch(t *testing.T, c *Cluster, app App) *unstructured.Unstructured {
	t.Helper()
	if app.Node == "" {
		app.Node, app.Required = c.Nodes[3].Name, true
	}
	if _, err := c.CreateVM(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	return machineOf(t, c, app, "")
}

func patchSet(t *testing.T, c *Cluster, app App, patch string) {
	t.Helper()
	_, err := c.Custom("vmirs").Namespace(AppNamespace).Patch(t.Context(), app.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// pauseSet changes a set and pauses it, and returns when KubeVirt has seen that. It
// hears of sets and of machines apart: what is done to a machine right after a change
// of its set may come first.
func pauseSet(t *testing.T, c *Cluster, app App, patch string) {
	t.Helper()
	patchSet(t, c, app, patch)
	patchSet(t, c, app, `{"spec":{"paused":true}}`)
	waitPaused(t, c, app)
}

func resumeSet(t *testing.T, c *Cluster, app App) {
	t.Helper()
	patchSet(t, c, app, `{"spec":{"paused":null}}`)
}

func waitPaused(t *testing.T, c *Cluster, app App) {
	t.Helper()
	eventually(t, 15*time.Second, "KubeVirt to say that it has seen it", func() bool {
		set, err := c.Custom("vmirs").Namespace(AppNamespace).Get(t.Context(), app.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		return len(conditions) == 1 && conditions[0].(map[string]any)["type"] == "ReplicaPaused"
	})
}

func setRuns(t *testing.T, c *Cluster) {
	app := App{Name: "runs-12345-0", Domain: "runs.0.1", Node: c.Nodes[1].Name, Required: true}
	name, err := c.CreateVM(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	vmi := machineOf(t, c, app, "")
	set, err := c.Custom("vmirs").Namespace(AppNamespace).Get(t.Context(), app.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := launcherOf(t, c, vmi)
	if pod == nil || pod.Name != name || !metav1.IsControlledBy(vmi, set) {
		t.Fatalf("CreateVM says %s; the launcher pod is %v and the machine's owners are %v", name, pod, vmi.GetOwnerReferences())
	}
	if pod.Spec.NodeName != app.Node || text(vmi, "status", "nodeName") != app.Node {
		t.Errorf("the pod is on %s and the machine on %s, want %s", pod.Spec.NodeName, text(vmi, "status", "nodeName"), app.Node)
	}
	for label, want := range map[string]string{labelDomain: app.Domain, "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": vmi.GetName()} {
		if pod.Labels[label] != want {
			t.Errorf("the label %s of the launcher pod is %q, want %q", label, pod.Labels[label], want)
		}
	}
	if !strings.HasPrefix(vmi.GetName(), app.Name) || vmi.GetFinalizers()[0] != vmiFinalizer {
		t.Errorf("the machine is %s with finalizers %v", vmi.GetName(), vmi.GetFinalizers())
	}
	if again, err := c.CreateVM(t.Context(), app); err != nil || again != name {
		t.Errorf("once more it is %s, %v", again, err)
	}
	deleteMachine(t, c, "vmirs", app.Name)
	eventually(t, 15*time.Second, "the machine of a deleted set to go", gone(t, c, vmi))
}

func machineIsMadeAnew(t *testing.T, c *Cluster) {
	app := App{Name: "anew-12345-0", Domain: "anew.0.1"}
	old := launch(t, c, app)
	deleteMachine(t, c, "vmi", old.GetName())
	machineOf(t, c, app, old.GetName())
	eventually(t, 15*time.Second, "the old machine to go", gone(t, c, old))
}

func machineIsEvicted(t *testing.T, c *Cluster) {
	app := App{Name: "evicted-12345-0", Domain: "evicted.0.1"}
	old := launch(t, c, app)
	if err := evict(c, *launcherOf(t, c, old)); err != nil {
		t.Fatal(err)
	}
	next := machineOf(t, c, app, old.GetName())
	eventually(t, 15*time.Second, "the evicted machine to go", gone(t, c, old))

	pauseSet(t, c, app, `{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrate"}}}}`)
	deleteMachine(t, c, "vmi", next.GetName())
	resumeSet(t, c, app)
	last := machineOf(t, c, app, next.GetName())
	err := evict(c, *launcherOf(t, c, last))
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "not live-migratable") {
		t.Errorf("the eviction of a machine that must migrate and cannot: %v", err)
	}
}

func affinityIsForTheNext(t *testing.T, c *Cluster) {
	app := App{Name: "moves-12345-0", Domain: "moves.0.1", Node: c.Nodes[0].Name, Required: true}
	old := launch(t, c, app)
	pauseSet(t, c, app, strings.ReplaceAll(`{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["NODE"]}]}]}}}}}}}`, "NODE", c.Nodes[1].Name))
	resumeSet(t, c, app)
	time.Sleep(time.Second)
	if now := machineOf(t, c, app, ""); now.GetUID() != old.GetUID() || text(now, "status", "nodeName") != app.Node {
		t.Errorf("the machine is now %s on %s", now.GetName(), text(now, "status", "nodeName"))
	}
	deleteMachine(t, c, "vmi", old.GetName())
	if next := machineOf(t, c, app, old.GetName()); text(next, "status", "nodeName") != c.Nodes[1].Name {
		t.Errorf("the next machine is on %s", text(next, "status", "nodeName"))
	}
}

func setIsScaled(t *testing.T, c *Cluster) {
	app := App{Name: "scaled-12345-0", Domain: "scaled.0.1"}
	old := launch(t, c, app)
	patchSet(t, c, app, `{"spec":{"replicas":0}}`)
	// KubeVirt that sees both at once keeps the machine.
	eventually(t, 15*time.Second, "the machine to be told to go", func() bool {
		vmi, err := c.Custom("vmi").Namespace(AppNamespace).Get(t.Context(), old.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && vmi.GetDeletionTimestamp() != nil
	})
	patchSet(t, c, app, `{"spec":{"replicas":1}}`)
	machineOf(t, c, app, old.GetName())
	eventually(t, 15*time.Second, "the old machine to go", gone(t, c, old))
}

// pausedSetRaisedMakesNothing is what keeps EVE, which raises a set that it finds at 0, from
// starting a disabled application (docs/wire.md, "Disabled workloads").
func pausedSetRaisedMakesNothing(t *testing.T, c *Cluster) {
	app := App{Name: "paused-12345-0", Domain: "paused.0.1"}
	old := launch(t, c, app)
	patchSet(t, c, app, `{"spec":{"replicas":0}}`)
	eventually(t, 15*time.Second, "the machine to go", gone(t, c, old))
	patchSet(t, c, app, `{"spec":{"paused":true}}`)
	patchSet(t, c, app, `{"spec":{"replicas":1}}`)
	waitPaused(t, c, app)
	if all := machinesOf(t, c, app); len(all) > 0 {
		t.Errorf("a paused set has %d machines", len(all))
	}
	resumeSet(t, c, app)
	machineOf(t, c, app, old.GetName())
}

func badMachineIsRefused(t *testing.T, c *Cluster) {
	vmi := object(kubevirtAPI, "VirtualMachineInstance", metav1.ObjectMeta{Name: "bad", Namespace: AppNamespace}, map[string]any{
		"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}},
	})
	_, err := c.Custom("vmi").Namespace(AppNamespace).Create(t.Context(), vmi, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("KubeVirt says %v", err)
	}
}
