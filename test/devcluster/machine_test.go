//go:build linux

package devcluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// launcherOwner returns the name of the virtual machine of a launcher pod.
func launcherOwner(t *testing.T, c *Cluster, pod string) string {
	t.Helper()
	launcher, err := c.Client().CoreV1().Pods(AppNamespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return metav1.GetControllerOf(launcher).Name
}

// phaseOf returns the phase of a virtual machine, "" if there is none.
func phaseOf(t *testing.T, c *Cluster, name string) string {
	t.Helper()
	vmi, err := c.Custom("vmi").Namespace(AppNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return text(vmi, "status", "phase")
}

func deleteMachine(t *testing.T, c *Cluster, short, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	err := c.Custom(short).Namespace(AppNamespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func machineLives(t *testing.T, c *Cluster) {
	ctx := t.Context()
	app := App{Name: "alive-12345-0", Domain: "a.0.1", Node: c.Nodes[1].Name, Required: true}
	events, err := c.Custom("vmi").Namespace(AppNamespace).Watch(ctx, metav1.ListOptions{LabelSelector: labelDomain + "=" + app.Domain})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	vm, err := c.CreateVM(ctx, app)
	if err != nil {
		t.Fatal(err)
	}
	name := launcherOwner(t, c, vm)
	eventually(t, 10*time.Second, "the machine to run", func() bool { return phaseOf(t, c, name) == "Running" })
	vmi, err := c.Custom("vmi").Namespace(AppNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node := text(vmi, "status", "nodeName"); node != app.Node {
		t.Errorf("the machine is on %q", node)
	}
	var set *unstructured.Unstructured
	eventually(t, 5*time.Second, "the replica set to count its machine", func() bool {
		if set, err = c.Custom("vmirs").Namespace(AppNamespace).Get(ctx, app.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		ready, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas")
		return ready == 1
	})
	if metav1.GetControllerOf(vmi).UID != set.GetUID() {
		t.Errorf("the machine's owner is %v", vmi.GetOwnerReferences())
	}

	deleteMachine(t, c, "vmirs", app.Name)
	eventually(t, 15*time.Second, "machine and launcher to go", func() bool {
		_, err := c.Client().CoreV1().Pods(AppNamespace).Get(ctx, vm, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && phaseOf(t, c, name) == ""
	})
	var phases []string
	for event := range events.ResultChan() {
		phases = append(phases, text(event.Object.(*unstructured.Unstructured), "status", "phase"))
		if event.Type == watch.Deleted {
			break
		}
	}
	if diff := cmp.Diff([]string{"Pending", "Scheduling", "Scheduled", "Running", "Succeeded"}, slices.Compact(phases)); diff != "" {
		t.Errorf("phases:\n%s", diff)
	}
}

func heldDeletion(t *testing.T, c *Cluster) {
	ctx := t.Context()
	app := App{Name: "held-12345-0", Replicas: 2, Node: c.Nodes[1].Name, Required: true}
	if err := c.CreateApp(ctx, app); err != nil {
		t.Fatal(err)
	}
	pods, err := c.WaitRunning(ctx, "app="+app.Name, 2)
	if err != nil {
		t.Fatal(err)
	}
	held, free := pods[0], pods[1]
	if err := c.HoldDeletion(ctx, held, true); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if err := c.Client().CoreV1().Pods(AppNamespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	find := func(name string) *corev1.Pod {
		pod, err := c.Client().CoreV1().Pods(AppNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return pod
	}
	eventually(t, 5*time.Second, "the other pod to go", func() bool { return find(free.Name) == nil })
	time.Sleep(time.Second)
	if pod := find(held.Name); pod == nil || pod.DeletionTimestamp == nil {
		t.Errorf("the held pod is %v", pod)
	}
	if err := c.HoldDeletions(ctx, 1, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the pod to go that is held no more", func() bool { return find(held.Name) == nil })
}
