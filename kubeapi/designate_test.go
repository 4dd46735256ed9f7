package kubeapi

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/types"
)

func TestDesignationsAreWrittenWhereTheyDiffer(t *testing.T) {
	n := wholeNode()
	n.ResourceVersion = "5"
	c, kube := withFake(t, n)
	one := func(count int64) types.Designations {
		return types.Designations{Apps: map[string]types.Designation{"a": {Count: count}}}
	}
	for _, step := range []struct {
		d    types.Designations
		sent int
	}{{types.Designations{}, 0}, {one(1), 1}, {one(1), 1}, {one(2), 2}, {types.Designations{}, 3}, {types.Designations{}, 3}} {
		if err := c.Designate(t.Context(), "n1", step.d); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		got := nodes.NodeOf(now).Designated
		if len(patches(t, kube)) != step.sent || got.Get("a") != step.d.Apps["a"] || got == nil != step.d.Equal(types.Designations{}) {
			t.Errorf("after %+v: %+v, %d patches", step.d, got, len(patches(t, kube)))
		}
	}
	many := types.Designations{Apps: map[string]types.Designation{}}
	for i := range 2000 {
		many.Apps[fmt.Sprintf("%036d", i)] = types.Designation{Count: 1}
	}
	if err := c.Designate(t.Context(), "n1", many); err == nil {
		t.Error("two thousand were written")
	}
	if err := c.Designate(t.Context(), "n1", many.Fit()); err != nil {
		t.Error(err)
	}
}
