package kubeapi

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func leasesOf(version string, names ...string) *coordinationv1.LeaseList {
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, n := range names {
		list.Items = append(list.Items, coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: n},
			Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(kubetest.At(5).Time))},
		})
	}
	return list
}

func nodesOf(version string, names ...string) *corev1.NodeList {
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, n := range names {
		list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return list
}

func TestAFreshListIsWholeOrAnError(t *testing.T) {
	page := nodesOf("7", "n1")
	page.Continue = "more"
	leasePage := leasesOf("7", "n1")
	leasePage.Continue = "more"
	for name, test := range map[string]struct {
		nodes  *corev1.NodeList
		leases *coordinationv1.LeaseList
		failed error // to list leases
		want   error
	}{
		"whole":             {nodes: nodesOf("7", "n1", "n2"), leases: leasesOf("8", "n1", "gone")},
		"no list of nodes":  {nodes: nodesOf("", "n1"), leases: leasesOf("8"), want: access.ErrNoVersion},
		"a page of nodes":   {nodes: page, leases: leasesOf("8"), want: access.ErrPartial},
		"a nameless node":   {nodes: nodesOf("7", ""), leases: leasesOf("8"), want: access.ErrNoName},
		"no list of leases": {nodes: nodesOf("7", "n1"), leases: leasesOf(""), want: access.ErrNoVersion},
		"a page of leases":  {nodes: nodesOf("7", "n1"), leases: leasePage, want: access.ErrPartial},
		"leases denied":     {nodes: nodesOf("7", "n1"), leases: leasesOf("8"), failed: types.ErrRefused, want: types.ErrRefused},
	} {
		c, kube := withFake(t)
		kube.PrependReactor("list", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, test.nodes, nil })
		kube.PrependReactor("list", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, test.leases, test.failed })
		got, err := c.FreshNodes(t.Context())
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || (got == nil) != (err != nil) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err == nil && (len(got) != 2 || !got[0].RenewedAt.Equal(kubetest.At(5).Time) || !got[1].RenewedAt.IsZero()) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAListOfLeasesIsWholeOrAnError(t *testing.T) {
	page := leasesOf("7", "n1")
	page.Continue = "more"
	for name, test := range map[string]struct {
		leases *coordinationv1.LeaseList
		failed error
		want   error
	}{
		"whole":   {leases: leasesOf("8", "n1", "n2")},
		"no list": {leases: leasesOf(""), want: access.ErrNoVersion},
		"a page":  {leases: page, want: access.ErrPartial},
		"denied":  {leases: leasesOf("8"), failed: types.ErrRefused, want: types.ErrRefused},
	} {
		c, kube := withFake(t)
		kube.PrependReactor("list", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, test.leases, test.failed })
		got, err := c.NodeLeases(t.Context())
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err == nil && (len(got) != 2 || !got["n1"].Equal(kubetest.At(5).Time) || !got["n2"].Equal(kubetest.At(5).Time)) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEventsThatDifferHaveNamesOfTheirOwn(t *testing.T) {
	pod := types.Pod{Namespace: "a", Name: "p", UID: "u"}
	names := map[string]bool{}
	for _, e := range []types.Event{
		{Node: "n1", Reason: "R", Message: "m"},
		{Node: "n2", Reason: "R", Message: "m"},
		{Node: "n1", Reason: "R", Message: "m", Warning: true},
		{Node: "n1", Reason: "Rm"},
		{Node: "n1", Pod: pod, Reason: "R", Message: "m"},
		{Node: "n1", Pod: types.Pod{Namespace: "a", Name: "p", UID: "v"}, Reason: "R", Message: "m"},
	} {
		event := nodes.EventOf(e, kubetest.At(1).Time)
		if names[event.Name] || event.Name != nodes.EventOf(e, kubetest.At(2).Time).Name {
			t.Errorf("%+v is called %s", e, event.Name)
		}
		names[event.Name] = true
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 11), strings.Repeat("ä", 6), strings.Repeat("日", 4)} {
		got := access.Cut(text, 10)
		if len(got) > 10 || !utf8.ValidString(got) || len(text) <= 10 && got != text {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}
