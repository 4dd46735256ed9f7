//go:build linux

package kubeapi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func evictions(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 0)
	node := c.Nodes[0].Name
	app := devcluster.App{Name: "evict-22222-0", Node: node, Required: true}
	if err := errors.Join(c.CreateApp(t.Context(), app), c.SetBudget(t.Context(), app.Name, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitRunning(t.Context(), "app="+app.Name, 1); err != nil {
		t.Fatal(err)
	}
	var pod types.Pod
	list := func() []types.Pod {
		pods, err := a.PodsToEvict(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		return pods
	}
	for _, p := range list() {
		if p.App == app.Name {
			pod = p
		}
	}
	if pod.UID == "" {
		t.Fatalf("the pod is not among those to evict: %+v", list())
	}
	err := a.Evict(t.Context(), pod)
	if !errors.Is(err, types.ErrDisruptionBudget) {
		t.Fatalf("under its budget the eviction says %v", err)
	}
	t.Log(err)
	if !a.status().Answers() {
		t.Error("a refused eviction is taken for a silence")
	}
	if err := c.SetBudget(t.Context(), app.Name, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the eviction is accepted", 5*time.Second, func() bool { return a.Evict(t.Context(), pod) == nil })
	eventually(t, "the pod is gone from the table", 10*time.Second, func() bool {
		_, ok := a.appPods.Get(pod.Key())
		return !ok
	})
	if err := a.Evict(t.Context(), pod); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
	sparesNamesakes(t, c, a)
}

// sparesNamesakes has a pod without a budget: the API server takes an eviction
// into account before it looks at the UID.
func sparesNamesakes(t *testing.T, c *devcluster.Cluster, a *agent) {
	vm, err := c.CreateVM(t.Context(), devcluster.App{Name: "evict-33333-0", Node: c.Nodes[0].Name, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	key := kubeapi.Namespace + "/" + vm
	eventually(t, "the pod runs", 10*time.Second, func() bool { p, _ := a.own.Get(key); return p.Phase == types.PodRunning })
	pod, _ := a.own.Get(key)
	former := pod
	former.UID = uuid.NewString()
	if err := a.Evict(t.Context(), former); err != nil {
		t.Errorf("a pod that was replaced: %v", err)
	}
	now, err := c.Client().CoreV1().Pods(kubeapi.Namespace).Get(t.Context(), vm, metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil {
		t.Errorf("its namesake was evicted: %v", err)
	}
	if err := a.Evict(t.Context(), pod); err != nil {
		t.Error(err)
	}
}
