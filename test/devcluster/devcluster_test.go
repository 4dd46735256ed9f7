//go:build linux

package devcluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func start(t *testing.T, opts Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	opts.Log = t.Output()
	c, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		assertNothingLeft(t, c.Dir)
		if left := there(c.cgroups.dirs); left != nil {
			t.Errorf("the control groups %q are left", left)
		}
	})
	return c
}

// TestCluster shares one cluster: its stories run side by side on nodes and
// applications of their own.
func TestCluster(t *testing.T) {
	c := start(t, Options{Audit: true})
	vm, err := c.CreateVM(t.Context(), App{Name: "vm-b3e2f-0", Domain: "b3e2.0.1", Node: c.Nodes[0].Name, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stories", func(t *testing.T) {
		t.Run("nodes look like those of k3s", func(t *testing.T) { t.Parallel(); nodesLookRight(t, c) })
		t.Run("a budget refuses evictions until it opens", func(t *testing.T) { t.Parallel(); budgetIsHonoured(t, c) })
		t.Run("faults hit one node and heal", func(t *testing.T) { t.Parallel(); faultsHitOneNode(t, c); faultedAnswers(t, c) })
		t.Run("a cut node becomes unknown and heals", func(t *testing.T) { t.Parallel(); cutNode(t, c) })
		t.Run("a virtual machine goes through its phases", func(t *testing.T) { t.Parallel(); machineLives(t, c) })
		t.Run("a held deletion does not end", func(t *testing.T) { t.Parallel(); heldDeletion(t, c) })
		t.Run("volumes follow their nodes", func(t *testing.T) { t.Parallel(); volumesAttach(t, c) })
		t.Run("volumes lose and gain replicas, claims and nodes", func(t *testing.T) { t.Parallel(); volumesSuffer(t, c) })
		t.Run("every custom kind is served", func(t *testing.T) { t.Parallel(); customKinds(t, c) })
		t.Run("another cluster runs beside it", func(t *testing.T) { t.Parallel(); sideBySide(t, c) })
	})
	if _, err := c.WaitRunning(t.Context(), labelDomain+"=b3e2.0.1", 1); err != nil {
		t.Errorf("launcher pod %s did not stay: %v", vm, err)
	}
	nodeReboots(t, c)
	if err := c.SetFault("503=0.5"); err != nil || c.NodeFault(0) != "503=0.5" || c.NodeFault(2) != "503=0.5" {
		t.Errorf("a fault of all nodes: %v, %v, %v", err, c.NodeFault(0), c.NodeFault(2))
	}
}

func nodesLookRight(t *testing.T, c *Cluster) {
	want := c.Nodes[1]
	if want.Name != "node-2" || want.DeviceName != "Node_2" {
		t.Errorf("names are %q and %q", want.Name, want.DeviceName)
	}
	if err := c.SetBootID(t.Context(), 1, "second-boot"); err != nil {
		t.Fatal(err)
	}
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), want.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Status.NodeInfo.BootID != "second-boot" || node.Status.NodeInfo.SystemUUID != want.UUID {
		t.Errorf("nodeInfo is %+v", node.Status.NodeInfo)
	}
	if node.Labels["node-uuid"] != want.UUID || node.Labels["node-role.kubernetes.io/etcd"] != "true" {
		t.Errorf("labels are %v", node.Labels)
	}
	if got := node.Status.Addresses[0]; got.Type != corev1.NodeInternalIP || got.Address != want.IP {
		t.Errorf("first address is %v, want %s", got, want.IP)
	}
	out, err := c.Kubectl(t.Context(), "get", "node", want.Name, "-o", "name")
	if err != nil || string(out) != "node/node-2\n" {
		t.Errorf("kubectl says %q, %v", out, err)
	}
	if _, err := c.Kubectl(t.Context(), "get", "node", "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody" not found`) {
		t.Errorf("kubectl fails with %v", err)
	}
}

// nodeReboots shows a node as a reboot does: not ready at once, and after it
// soon ready, with another boot id.
func nodeReboots(t *testing.T, c *Cluster) {
	ctx, name := t.Context(), c.Nodes[1].Name
	c.StopKubelet(1)
	if err := c.LoseNode(ctx, 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if c.takesPods(ctx, name) {
		t.Error("a node without a kubelet is ready")
	}
	if err := errors.Join(c.SetBootID(ctx, 1, "third-boot"), c.StartKubelet(1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the node to be ready again", func() bool { return c.takesPods(ctx, name) })
	// A Node that somebody deletes comes back with its kubelet.
	if _, err := c.Kubectl(ctx, "delete", "node", name); err != nil {
		t.Fatal(err)
	}
	c.StopKubelet(1)
	if err := c.StartKubelet(1); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the node to be ready again", func() bool { return c.takesPods(ctx, name) })
	node, err := c.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || node.Status.NodeInfo.BootID != "third-boot" {
		t.Errorf("the node has boot id %q, %v", node.Status.NodeInfo.BootID, err)
	}
}

func budgetIsHonoured(t *testing.T, c *Cluster) {
	ctx := t.Context()
	app := App{Name: "web-12345-0", Domain: "d.0.1", Replicas: 2, Node: c.Nodes[0].Name, Required: true}
	if err := errors.Join(c.CreateApp(ctx, app), c.SetBudget(ctx, app.Name, 2)); err != nil {
		t.Fatal(err)
	}
	pods, err := c.WaitRunning(ctx, "app="+app.Name, 2)
	if err != nil {
		t.Fatal(err)
	}
	pod := pods[0]
	if pod.Spec.NodeName != app.Node || pod.Status.PodIP == "" || pod.Status.HostIP != c.Nodes[0].IP {
		t.Errorf("pod is on %s (%s) with address %q", pod.Spec.NodeName, pod.Status.HostIP, pod.Status.PodIP)
	}
	if err := evict(c, pod); !apierrors.IsTooManyRequests(err) {
		t.Fatalf("eviction under a closed budget: %v", err)
	}
	if err := c.SetBudget(ctx, app.Name, 1); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	if err := evict(c, pod); err != nil {
		t.Errorf("eviction under an open budget: %v", err)
	}
	eventually(t, 5*time.Second, "the evicted pod to go", func() bool {
		_, err := c.Client().CoreV1().Pods(AppNamespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if took := time.Since(asked); took < 500*time.Millisecond {
		t.Errorf("the pod went after %v, without time to stop", took)
	}
	if _, err := c.WaitRunning(ctx, "app="+app.Name, 2); err != nil {
		t.Errorf("the evicted pod was not replaced: %v", err)
	}
}

func evict(c *Cluster, pod corev1.Pod) error {
	return c.Client().CoreV1().Pods(pod.Namespace).EvictV1(context.Background(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
}

func cutNode(t *testing.T, c *Cluster) {
	last := len(c.Nodes) - 1
	vm, err := c.CreateVM(t.Context(), App{Name: "stuck-12345-0", Domain: "s.0.1", Node: c.Nodes[last].Name, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	vmi := launcherOwner(t, c, vm)
	eventually(t, 10*time.Second, "the machine to run", func() bool { return phaseOf(t, c, vmi) == "Running" })
	if err := c.CutNode(last); err != nil {
		t.Fatal(err)
	}
	if fault := c.NodeFault(last); fault != Refused {
		t.Errorf("the cut node meets %v", fault)
	}
	ready := func(want corev1.ConditionStatus) func() bool {
		return func() bool {
			node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Nodes[last].Name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			for _, cond := range node.Status.Conditions {
				if cond.Type == corev1.NodeReady {
					return cond.Status == want
				}
			}
			return false
		}
	}
	eventually(t, 25*time.Second, "the node to be unknown", ready(corev1.ConditionUnknown))
	deleteMachine(t, c, "vmi", vmi)
	time.Sleep(2 * time.Second)
	if phase := phaseOf(t, c, vmi); phase != "Running" {
		t.Errorf("on a dead node the deleted machine is %q", phase)
	}
	if err := c.HealNode(last); err != nil {
		t.Fatal(err)
	}
	if fault := c.NodeFault(last); fault != None {
		t.Errorf("the healed node meets %v", fault)
	}
	eventually(t, 20*time.Second, "the node to be ready again", ready(corev1.ConditionTrue))
	eventually(t, 10*time.Second, "the deleted machine to go", func() bool { return phaseOf(t, c, vmi) == "" })
}

// patience is how many times longer than a quiet machine needs a test waits for
// what has to come: the other tests want the machine too.
const patience = 4

func eventually(t *testing.T, within time.Duration, what string, try func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience*within)
	defer cancel()
	if err := poll(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}
