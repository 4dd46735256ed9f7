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

func TestStampsAboutK3sAreWrittenWhereTheyDiffer(t *testing.T) {
	n := wholeNode()
	n.ResourceVersion = "5"
	c, kube := withFake(t, n)
	wants := func(version string) types.K3sStamp { return types.K3sStamp{Wanted: version, Joined: true} }
	for _, step := range []struct {
		stamp types.K3sStamp
		sent  int
	}{{wants("v1.34.4+k3s1"), 1}, {wants("v1.34.4+k3s1"), 1}, {wants(""), 2}} {
		if err := c.StampK3s(t.Context(), "n1", step.stamp); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if got := nodes.NodeOf(now).K3s; len(patches(t, kube)) != step.sent || got == nil || *got != step.stamp {
			t.Errorf("after %+v: %+v, %d patches", step.stamp, got, len(patches(t, kube)))
		}
	}
	n.Annotations = map[string]string{nodes.K3sAnnotation: `{"wanted":"v1`}
	if got := nodes.NodeOf(n).K3s; got != nil {
		t.Errorf("half a stamp is read as %+v", got)
	}
}
