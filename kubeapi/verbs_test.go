package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/types"
)

// withFake is a client connected to a fake of client-go's.
func withFake(t *testing.T, objects ...runtime.Object) (*Client, *fake.Clientset) {
	kube := fake.NewClientset(objects...)
	return over(&access.Connection{Ctx: t.Context(), Kube: kube}, types.NoOperations{}), kube
}

// ourFields is the record of the API server of a cordon of ours.
func ourFields() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: access.DrainManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`),
	}}
}

// patches returns the patches sent, decoded.
func patches(t *testing.T, kube *fake.Clientset) []map[string]any {
	t.Helper()
	var sent []map[string]any
	for _, a := range kube.Actions() {
		if p, ok := a.(k8stesting.PatchAction); ok {
			var m map[string]any
			if err := json.Unmarshal(p.GetPatch(), &m); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, m)
		}
		if a.GetVerb() == "update" {
			t.Errorf("a typed update was sent")
		}
	}
	return sent
}

func TestACordonIsOnePatchForTheVersionItSaw(t *testing.T) {
	c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "5"}})
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := c.Cordon(t.Context(), "n1", types.Cordon{Reason: "reboot", Since: since}); err != nil {
		t.Fatal(err)
	}
	sent := patches(t, kube)
	if len(sent) != 1 {
		t.Fatalf("%d patches", len(sent))
	}
	if meta := sent[0]["metadata"].(map[string]any); meta["resourceVersion"] != "5" || meta["uid"] != "u1" {
		t.Errorf("the patch is for %v", meta)
	}
	n, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	want := types.Cordon{By: "zedkube", Reason: "reboot", Since: since}
	if got := nodes.NodeOf(n).CordonedBy; got == nil || *got != want {
		t.Errorf("cordon is %+v", got)
	}
	if err := c.Uncordon(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	n, _ = kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if n.Spec.Unschedulable || len(n.Annotations) != 0 {
		t.Errorf("after uncordon: %+v", n)
	}
}

func TestOnlyANoOfTheServerIsARefusalOfTheCordon(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewForbidden(schema.GroupResource{}, "n1", nil), true},
		{apierrors.NewBadRequest("a webhook denies it"), true},
		{apierrors.NewUnauthorized("who are you"), false},
		{apierrors.NewNotFound(schema.GroupResource{}, "n1"), false},
		{apierrors.NewTooManyRequests("overloaded", 1), false},
		{apierrors.NewInternalError(errors.New("no etcd")), false},
		{apierrors.NewTimeoutError("slow", 1), false},
		{context.DeadlineExceeded, false},
	} {
		c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
		kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, row.err })
		if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err == nil || errors.Is(err, types.ErrRefused) != row.want {
			t.Errorf("%v: got %v, want a refusal: %v", row.err, err, row.want)
		}
	}
}

func TestACordonMadeAfterOursWasUndoneIsForeign(t *testing.T) {
	c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err != nil {
		t.Fatal(err)
	}
	onNodes := kube.CoreV1().Nodes()
	see := func() *corev1.Node {
		n, err := onNodes.Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if nodes.NodeOf(see()).CordonedBy == nil {
		t.Fatalf("our own cordon is not seen as ours: %+v", see().ManagedFields)
	}
	for _, patch := range []string{`{"spec":{"unschedulable":null}}`, `{"spec":{"unschedulable":true}}`} { // what kubectl sends
		if _, err := onNodes.Patch(t.Context(), "n1", ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
	}
	if by := nodes.NodeOf(see()).CordonedBy; by != nil {
		t.Errorf("a foreign cordon is seen as %+v", by)
	}
	if err := c.Uncordon(t.Context(), "n1"); err != nil || !see().Spec.Unschedulable {
		t.Errorf("a foreign cordon was undone: %v", err)
	}
	if err := c.OperatorUncordon(t.Context(), "n1"); err != nil || see().Spec.Unschedulable || see().Annotations[nodes.CordonAnnotation] != "" {
		t.Errorf("for an operator it was not: %v, %+v", err, see())
	}
	for _, ours := range []types.Cordon{{}, {Kind: types.CordonWorkloads}} {
		err := c.Cordon(t.Context(), "n1", ours)
		if undo := c.OperatorUncordon(t.Context(), "n1"); err != nil || !errors.Is(undo, types.ErrOwnCordon) || !see().Spec.Unschedulable {
			t.Errorf("%+v: %v, an operator has undone it: %v", ours, err, undo)
		}
		if err := errors.Join(c.Uncordon(t.Context(), "n1"), c.UncordonWorkloads(t.Context(), "n1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Cordon(t.Context(), "n1", types.Cordon{}), c.KeepCordon(t.Context(), "n1"), c.OperatorUncordon(t.Context(), "n1")); err != nil || see().Spec.Unschedulable {
		t.Errorf("one that is kept: %v", err)
	}
}

func TestACordonInConflictForEverIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
		kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewConflict(schema.GroupResource{}, "n1", errors.New("changed"))
		})
		if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err == nil || errors.Is(err, types.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOfStandingCordonsOnlyOursIsTouched(t *testing.T) {
	const first = `{"by":"zedkube","reason":"first"}`
	for name, test := range map[string]struct {
		notes            map[string]string
		cordon, uncordon bool // something is sent
	}{
		"foreign":                       {nil, false, false},
		"ours":                          {map[string]string{nodes.CordonAnnotation: first}, true, true},
		"ours and kept":                 {map[string]string{nodes.CordonAnnotation: first, nodes.KeepAnnotation: "true"}, true, false},
		"foreign over a leftover note":  {map[string]string{nodes.CordonAnnotation: `{"by":"me"}`}, false, false},
		"foreign over a leftover keep":  {map[string]string{nodes.KeepAnnotation: "true"}, false, false},
		"ours, which says nothing else": {map[string]string{nodes.CordonAnnotation: `{"by":"zedkube","reason":"second","since":"0001-01-01T00:00:00Z"}`}, false, true},
	} {
		for verb, sends := range map[string]bool{"cordon": test.cordon, "uncordon": test.uncordon} {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5", Annotations: test.notes}, Spec: corev1.NodeSpec{Unschedulable: true}}
			if test.notes[nodes.CordonAnnotation] != "" {
				n.ManagedFields = ourFields()
			}
			c, kube := withFake(t, n)
			act := func() error { return c.Uncordon(t.Context(), "n1") }
			if verb == "cordon" {
				act = func() error { return c.Cordon(t.Context(), "n1", types.Cordon{Reason: "second"}) }
			}
			if err := act(); err != nil {
				t.Fatal(err)
			}
			sent := patches(t, kube)
			if (len(sent) == 1) != sends {
				t.Errorf("%s: %s sent %v", name, verb, sent)
			}
			if strings.HasPrefix(name, "foreign") && len(sent) > 0 && sent[0]["spec"] != nil {
				t.Errorf("%s: %s touched the cordon: %v", name, verb, sent)
			}
		}
	}
}

func TestACordonLooksAgainAfterAConflict(t *testing.T) { synctest.Test(t, conflicts) }

func conflicts(t *testing.T) {
	c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
	left := 2
	kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
		left--
		return left >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", nil)
	})
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err != nil {
		t.Fatal(err)
	}
	if n, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{}); !n.Spec.Unschedulable {
		t.Error("not cordoned")
	}
	left = 1000
	if err := c.Uncordon(t.Context(), "n1"); !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), "uncordon node n1: ") {
		t.Errorf("error is %v", err)
	}
}
