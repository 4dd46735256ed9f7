//go:build linux

package kubeapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func (p *plight) budget(t *testing.T) {
	pod := p.make(t, "kept", func(*corev1.Pod) {})
	p.cover(t, "kept", "kept", atLeast(1))
	var s types.PodSituation
	want := types.PodBudget{Name: kubeapi.Namespace + "/kept", Healthy: 1, Desired: 1, Expects: 1}
	eventually(t, "the budget has its numbers", 10*time.Second, func() bool {
		s = p.situation(t, pod)
		return len(s.Budgets) == 1 && s.Budgets[0] == want
	})
	for act, evict := range map[string]func(context.Context, types.Pod) error{"real": p.agent.Evict, "planned": p.agent.PlanEvict} {
		if err := evict(t.Context(), pod); !errors.Is(err, types.ErrDisruptionBudget) {
			t.Errorf("%s eviction: %v", act, err)
		}
	}
}

func (p *plight) twoBudgets(t *testing.T) {
	pod := p.make(t, "doubled", func(*corev1.Pod) {})
	p.cover(t, "doubled-1", "doubled", atLeast(0))
	p.cover(t, "doubled-2", "doubled", atLeast(0))
	for act, evict := range map[string]func(context.Context, types.Pod) error{"real": p.agent.Evict, "planned": p.agent.PlanEvict} {
		if err := evict(t.Context(), pod); err == nil || errors.Is(err, types.ErrDisruptionBudget) || !strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
			t.Errorf("%s eviction: %v", act, err)
		}
	}
	if s := p.situation(t, pod); len(s.Budgets) != 2 || s.Pod.Terminating() {
		t.Errorf("situation is %+v", s)
	}
	if !p.agent.status().Answers() {
		t.Error("the 500 of an eviction is taken for a silence")
	}
}

func (p *plight) machine(t *testing.T) {
	name, err := p.CreateVM(t.Context(), devcluster.App{Name: "stuck-44444-0", Node: p.node, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	key := kubeapi.Namespace + "/" + name
	eventually(t, "the machine runs", 20*time.Second, func() bool { r, _ := p.agent.own.Get(key); return r.Phase == types.PodRunning })
	pod, _ := p.agent.own.Get(key)
	if s := p.situation(t, pod); s.Immovable != "" || s.Strategy != "" {
		t.Errorf("a machine of which KubeVirt says nothing: %+v", s)
	}
	eventually(t, "KubeVirt says that it cannot move", 10*time.Second, func() bool { return p.fix(t, pod.VMI) == nil })
	if s := p.situation(t, pod); s.Immovable != "DisksNotLiveMigratable: disk0 is local" || s.Strategy != "LiveMigrate" {
		t.Errorf("situation is %+v", s)
	}
}

// fix has KubeVirt say that a machine cannot move.
func (p *plight) fix(t *testing.T, name string) error {
	vmis := p.Custom("vmi").Namespace(kubeapi.Namespace)
	vmi, err := vmis.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	err = errors.Join(
		unstructured.SetNestedField(vmi.Object, "LiveMigrate", "spec", "evictionStrategy"),
		unstructured.SetNestedSlice(vmi.Object, []any{map[string]any{
			"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "disk0 is local",
		}}, "status", "conditions"),
	)
	if err == nil {
		_, err = vmis.Update(t.Context(), vmi, metav1.UpdateOptions{})
	}
	return err
}

// trouble is a budget by percentage over a pod that has no maker: the budget
// sees that it is healthy, expects none, and so never allows anything.
func (p *plight) trouble(t *testing.T) {
	pod := p.make(t, "uncounted", func(*corev1.Pod) {})
	half := intstr.FromString("50%")
	p.cover(t, "uncounted", "uncounted", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &half})
	want := types.PodBudget{Name: kubeapi.Namespace + "/uncounted", Healthy: 1}
	eventually(t, "the budget has its numbers", 10*time.Second, func() bool {
		s := p.situation(t, pod)
		return len(s.Budgets) == 1 && s.Budgets[0] == want
	})
	if err := p.agent.PlanEvict(t.Context(), pod); !errors.Is(err, types.ErrDisruptionBudget) {
		t.Errorf("eviction: %v", err)
	}
}

func (p *plight) planned(t *testing.T) {
	pod := p.make(t, "spared", func(*corev1.Pod) {})
	if err := p.agent.PlanEvict(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if s := p.situation(t, pod); s.Pod.Terminating() {
		t.Error("a planned eviction evicted the pod")
	}
}
