package kubeapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/types"
)

func TestAPlannedEvictionIsADryRunOfTheRealOne(t *testing.T) {
	c, kube := withFake(t)
	var dry [][]string
	kube.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		e := a.(k8stesting.CreateAction).GetObject().(*policyv1.Eviction)
		if e.DeleteOptions.Preconditions == nil || *e.DeleteOptions.Preconditions.UID != "1" {
			t.Errorf("sent %+v", e.DeleteOptions)
		}
		dry = append(dry, e.DeleteOptions.DryRun)
		return true, nil, apierrors.NewTooManyRequests("the budget says no", 10)
	})
	pod := types.Pod{Namespace: "n", Name: "p", UID: "1"}
	for act, evict := range map[string]func() error{
		"dry-run the eviction of pod n/p: ": func() error { return c.PlanEvict(t.Context(), pod) },
		"evict pod n/p: ":                   func() error { return c.Evict(t.Context(), pod) },
	} {
		dry = nil
		if err := evict(); !errors.Is(err, types.ErrDisruptionBudget) || !strings.HasPrefix(err.Error(), act) {
			t.Errorf("error is %v", err)
		}
		want := [][]string{nil}
		if strings.HasPrefix(act, "dry-run") {
			want = [][]string{{"All"}}
		}
		if diff := cmp.Diff(want, dry); diff != "" {
			t.Error(diff)
		}
	}
}
