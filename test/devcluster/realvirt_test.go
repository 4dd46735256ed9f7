//go:build linux

package devcluster

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestALauncherOfTheRealKubeVirtHasContainersOnARealNode(t *testing.T) {
	needsPods(t)
	c := start(t, Options{Hosts: true, Real: true, KubeVirt: true, Nodes: 1})
	ctx, cancel := context.WithTimeout(t.Context(), patience*4*time.Minute)
	defer cancel()
	name, err := c.CreateVM(ctx, App{Name: "vm", Domain: "d.1.1", Node: c.Nodes[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	vmis := c.Custom("vmi").Namespace(AppNamespace)
	eventually(t, 90*time.Second, "the machine to run", func() bool {
		list, err := vmis.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false
		}
		phase, _, _ := unstructured.NestedString(list.Items[0].Object, "status", "phase")
		return phase == "Running"
	})
	pod, err := c.Client().CoreV1().Pods(AppNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cond := range pod.Status.Conditions {
		if cond.ObservedGeneration != 0 {
			t.Errorf("condition %s has a field that virt-controller does not know: it may not find it as it was", cond.Type)
		}
	}
	for _, container := range []string{"compute", "guest-console-log"} {
		log, err := c.Client().CoreV1().Pods(AppNamespace).GetLogs(name, &corev1.PodLogOptions{Container: container}).Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		if log.Close(); err != nil || !strings.HasPrefix(string(text), "1 ") {
			t.Errorf("container %s printed %q, %v", container, text, err)
		}
	}
	// As virt-handler's device plug-ins are played, a new kubelet must not take
	// away what they have.
	c.StopKubelet(0)
	if err := c.StartKubelet(0); err != nil {
		t.Fatal(err)
	}
	if err := vmis.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 90*time.Second, "another machine and its launcher to run", func() bool {
		pods, err := c.Client().CoreV1().Pods(AppNamespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Name != name && podReady(pods.Items[0])
	})
}
