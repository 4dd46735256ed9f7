package kubeapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/types"
)

func aFence() types.Fence {
	return types.Fence{By: "n2", Reason: "it is gone", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func withReady(n *corev1.Node, status corev1.ConditionStatus) *corev1.Node {
	n.Status.Conditions[1].Status = status
	n.ResourceVersion = "5"
	return n
}

func TestOnlyANodeThatIsGoneIsFenced(t *testing.T) {
	other := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "maintenance", Effect: corev1.TaintEffectNoSchedule}
	for name, row := range map[string]struct {
		node           *corev1.Node
		uid            string
		refuses, sends bool
	}{
		"unknown":                       {withReady(fenced(""), corev1.ConditionUnknown), "u1", false, true},
		"not ready":                     {withReady(fenced(""), corev1.ConditionFalse), "u1", false, true},
		"ready":                         {withReady(fenced(""), corev1.ConditionTrue), "u1", true, false},
		"another":                       {withReady(fenced(""), corev1.ConditionUnknown), "u2", true, false},
		"fenced by a person":            {withReady(fenced("", nodes.FenceTaint()), corev1.ConditionUnknown), "u1", true, false},
		"out of service in another way": {withReady(fenced("", other), corev1.ConditionUnknown), "u1", true, false},
		"fenced by us":                  {withReady(fenced(`{"by":"n3"}`, nodes.FenceTaint()), corev1.ConditionUnknown), "u1", false, false},
		"our note is left over":         {withReady(fenced(`{"by":"n3"}`), corev1.ConditionUnknown), "u1", false, true},
	} {
		c, kube := withFake(t, row.node)
		err := c.Fence(t.Context(), types.Node{Name: "n1", UID: row.uid}, aFence())
		if (err != nil) != row.refuses || row.refuses && !errors.Is(err, types.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
		sent := patches(t, kube)
		if (len(sent) == 1) != row.sends {
			t.Errorf("%s: sent %v", name, sent)
		}
		if !row.sends {
			continue
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if diff := cmp.Diff(append(row.node.Spec.Taints, nodes.FenceTaint()), now.Spec.Taints); diff != "" {
			t.Errorf("%s: taints\n%s", name, diff)
		}
		if r := nodes.NodeOf(now); r.Fence == nil || *r.Fence != aFence() {
			t.Errorf("%s: the fence is %+v", name, r.Fence)
		}
	}
}

func TestANodeThatComesBackBetweenLookAndFenceIsNotFenced(t *testing.T) {
	node := withReady(fenced(""), corev1.ConditionUnknown)
	c, kube := withFake(t, node)
	kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
		_ = kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), withReady(node.DeepCopy(), corev1.ConditionTrue), "")
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("it is newer"))
	})
	if err := c.Fence(t.Context(), types.Node{Name: "n1", UID: "u1"}, aFence()); !errors.Is(err, types.ErrConflict) || len(patches(t, kube)) != 1 {
		t.Errorf("%v after %v", err, patches(t, kube))
	}
}

func TestAFenceNeedsAnAuthorAndANode(t *testing.T) {
	c, kube := withFake(t, withReady(fenced(""), corev1.ConditionUnknown))
	for _, err := range []error{
		c.Fence(t.Context(), types.Node{Name: "n1"}, aFence()),
		c.Fence(t.Context(), types.Node{Name: "n1", UID: "u1"}, types.Fence{}),
		c.Fence(t.Context(), types.Node{Name: "n1", UID: "u1"}, types.Fence{By: strings.Repeat("x", access.AnnotationText)}),
	} {
		if err == nil || len(kube.Actions()) > 0 {
			t.Errorf("%v after %v", err, kube.Actions())
		}
	}
}

func TestOnlyAFenceOfOursIsTakenBack(t *testing.T) {
	other := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "maintenance", Effect: corev1.TaintEffectNoSchedule}
	for name, row := range map[string]struct {
		node *corev1.Node
		left []corev1.Taint // of the key
		note bool
	}{
		"ours":               {fenced(`{"by":"n3"}`, nodes.FenceTaint()), nil, false},
		"a person's":         {fenced("", nodes.FenceTaint()), []corev1.Taint{nodes.FenceTaint()}, false},
		"with garbage":       {fenced("yes", nodes.FenceTaint()), []corev1.Taint{nodes.FenceTaint()}, true},
		"beside a person's":  {fenced(`{"by":"n3"}`, nodes.FenceTaint(), other), []corev1.Taint{other}, false},
		"our note, no taint": {fenced(`{"by":"n3"}`), nil, false},
		"neither":            {fenced(""), nil, false},
	} {
		row.node.ResourceVersion = "5"
		c, kube := withFake(t, row.node)
		if err := c.Unfence(t.Context(), types.Node{Name: "n1", UID: "u1"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if diff := cmp.Diff(append(wholeNode().Spec.Taints, row.left...), now.Spec.Taints); diff != "" {
			t.Errorf("%s: taints\n%s", name, diff)
		}
		if _, note := now.Annotations[nodes.FenceAnnotation]; note != row.note {
			t.Errorf("%s: the note is there: %v", name, note)
		}
	}
	node := fenced(`{"by":"n3"}`, nodes.FenceTaint())
	node.ResourceVersion = "5"
	c, kube := withFake(t, node)
	if err := c.Unfence(t.Context(), types.Node{Name: "n1", UID: "u2"}); !errors.Is(err, types.ErrConflict) || patches(t, kube) != nil {
		t.Errorf("of another node: %v", err)
	}
}

// A person has removed the taint of a fence, and perhaps put another one since.
func TestOfAFenceWithoutItsTaintTheNoteAloneGoes(t *testing.T) {
	const left = `{"by":"n3","since":"2026-05-03T06:41:17+05:00"}`
	for name, row := range map[string]struct {
		ready    corev1.ConditionStatus
		note     string
		taints   []corev1.Taint
		conflict bool
	}{
		"no taint":                         {corev1.ConditionTrue, left, nil, false},
		"a person's since":                 {corev1.ConditionTrue, left, []corev1.Taint{nodes.FenceTaint()}, false},
		"it is lost again, and fenced":     {corev1.ConditionUnknown, left, []corev1.Taint{nodes.FenceTaint()}, true},
		"it is lost again, and is not":     {corev1.ConditionUnknown, left, nil, true},
		"it was fenced again, and is back": {corev1.ConditionTrue, `{"by":"n3","since":"2026-05-03T07:00:00+05:00"}`, []corev1.Taint{nodes.FenceTaint()}, true},
		"by another node":                  {corev1.ConditionTrue, `{"by":"n2","since":"2026-05-03T06:41:17+05:00"}`, []corev1.Taint{nodes.FenceTaint()}, true},
	} {
		seen := nodes.NodeOf(withReady(fenced(left), row.ready))
		n := withReady(fenced(row.note), row.ready)
		n.Spec.Taints, n.ResourceVersion = append(n.Spec.Taints, row.taints...), "5"
		c, kube := withFake(t, n)
		if err := c.Unfence(t.Context(), seen); errors.Is(err, types.ErrConflict) != row.conflict || !row.conflict && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if diff := cmp.Diff(append(wholeNode().Spec.Taints, row.taints...), now.Spec.Taints); diff != "" {
			t.Errorf("%s: taints\n%s", name, diff)
		}
		if _, note := now.Annotations[nodes.FenceAnnotation]; note != row.conflict {
			t.Errorf("%s: the note is there: %v", name, note)
		}
	}
}

func TestAWitnessIsWrittenWhereItDiffers(t *testing.T) {
	n := wholeNode()
	n.ResourceVersion = "5"
	c, kube := withFake(t, n)
	w := types.Witness{Round: 2, Sightings: []types.Sighting{{Node: "n2", UID: "u2", Silent: 1}}}
	for _, step := range []struct {
		w    types.Witness
		sent int
	}{{types.Witness{}, 0}, {w, 1}, {w, 1}, {types.Witness{Round: 3}, 2}, {types.Witness{}, 3}, {types.Witness{}, 3}} {
		if err := c.Witness(t.Context(), "n1", step.w); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		got := nodes.NodeOf(now).Witness
		if len(patches(t, kube)) != step.sent || got == nil != nodes.None(step.w) || got != nil && cmp.Diff(step.w, *got) != "" {
			t.Errorf("after %+v: %+v, %d patches", step.w, got, len(patches(t, kube)))
		}
	}
	long := types.Witness{Round: 1, Sightings: make([]types.Sighting, 1000)}
	if err := c.Witness(t.Context(), "n1", long); err == nil {
		t.Error("a thousand sightings were written")
	}
}
