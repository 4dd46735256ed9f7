package kubeapi

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// writes are all verbs that write a Node or the lock.
func writes(t *testing.T, c *Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"cordon":         func(ctx context.Context) error { return c.Cordon(ctx, "n1", types.Cordon{}) },
		"uncordon":       func(ctx context.Context) error { return c.Uncordon(ctx, "n1") },
		"uncordonlegacy": func(ctx context.Context) error { return c.UncordonLegacy(ctx, "n1", time.Now()) },
		"keep":           func(ctx context.Context) error { return c.KeepCordon(ctx, "n1") },
		"unkeep":         func(ctx context.Context) error { return c.Unkeep(ctx, "n1") },
		"stamp":          func(ctx context.Context) error { return c.Stamp(ctx, "n1", types.AgentStamp{}) },
		"conditions": func(ctx context.Context) error {
			return c.SetDrainConditions(ctx, "n1", types.DrainConditions{Drained: true})
		},
		"fence": func(ctx context.Context) error {
			return c.Fence(ctx, types.Node{Name: "n1", UID: "u1"}, types.Fence{By: "n2"})
		},
		"unfence": func(ctx context.Context) error { return c.Unfence(ctx, types.Node{Name: "n1", UID: "u1"}) },
		"witness": func(ctx context.Context) error { return c.Witness(ctx, "n1", types.Witness{Round: 1}) },
		"delete":  func(ctx context.Context) error { return c.DeleteNode(ctx, types.Node{Name: "n1", UID: "u1"}) },
		"lock": func(ctx context.Context) error {
			_, err := c.SetDrainLock(ctx, types.DrainLock{Holder: "n1"})
			return err
		},
		"relock": func(ctx context.Context) error {
			_, err := c.SetDrainLock(ctx, types.DrainLock{Holder: "n1", Version: "1"})
			return err
		},
		"free": func(ctx context.Context) error {
			return c.FreeDrainLock(ctx, types.DrainLock{Holder: "n1", Version: "1"})
		},
	}
}

func TestAWriteSaysWhatKindOfNoItGot(t *testing.T) {
	classes := []error{types.ErrNoAnswer, types.ErrRefused, types.ErrConflict}
	for name, row := range map[string]struct {
		err  error
		want error
	}{
		"refused connection": {&url.Error{Op: "Get", Err: syscall.ECONNREFUSED}, types.ErrNoAnswer},
		"deadline":           {&url.Error{Op: "Get", Err: context.DeadlineExceeded}, types.ErrNoAnswer},
		"closed gate":        {&url.Error{Op: "Get", Err: types.ErrNoAPI}, types.ErrNoAnswer},
		"500":                {apierrors.NewInternalError(errors.New("no etcd")), types.ErrNoAnswer},
		"503":                {apierrors.NewServiceUnavailable("starting"), types.ErrNoAnswer},
		"401":                {apierrors.NewUnauthorized("who are you"), types.ErrNoAnswer},
		"403":                {apierrors.NewForbidden(schema.GroupResource{}, "n1", nil), types.ErrRefused},
		"429":                {apierrors.NewTooManyRequests("overloaded", 1), nil},
		"not what was asked": {access.ErrOther, nil},
	} {
		c, kube := withFake(t)
		kube.PrependReactor("*", "*", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, row.err })
		for verb, write := range writes(t, c) {
			err := write(t.Context())
			for _, class := range classes {
				if err == nil || errors.Is(err, class) != errors.Is(row.want, class) {
					t.Errorf("%s of %s is %v", name, verb, err)
				}
			}
		}
	}
	none := over(nil, types.NoOperations{})
	for verb, write := range writes(t, none) {
		if err := write(t.Context()); !errors.Is(err, types.ErrNoAnswer) || !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("without a connection %s says %v", verb, err)
		}
	}
}

func TestACallerWhoGivesUpHasNotMetSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, kube := withFake(t)
	kube.PrependReactor("*", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, &url.Error{Op: "Get", Err: ctx.Err()}
	})
	for verb, write := range writes(t, c) {
		if err := write(ctx); err == nil || errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("%s says %v", verb, err)
		}
	}
}

func TestAnAnswerOfAnotherKindIsNoNode(t *testing.T) {
	c, kube := withFake(t)
	kube.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, &corev1.Node{}, nil })
	for _, verb := range []string{"cordon", "uncordon", "uncordonlegacy", "keep", "unkeep", "stamp", "conditions", "fence", "unfence", "witness"} {
		if err := writes(t, c)[verb](t.Context()); !errors.Is(err, access.ErrOther) || errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("%s says %v", verb, err)
		}
	}
}

func TestEveryPatchOfANodeIsForOneVersion(t *testing.T) {
	n := wholeNode()
	n.Annotations[nodes.KeepAnnotation] = "yes" // not kept, but noted
	for verb := range writes(t, nil) {
		c, kube := withFake(t, n.DeepCopy())
		if err := writes(t, c)[verb](t.Context()); err != nil && !strings.Contains(verb, "lock") {
			t.Errorf("%s: %v", verb, err)
		}
		for _, p := range patches(t, kube) {
			if p["metadata"].(map[string]any)["resourceVersion"] == "" {
				t.Errorf("%s sent %v", verb, p)
			}
		}
	}
}

func legacyNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5", Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, TimeAdded: new(kubetest.At(3))}}},
	}
}

func TestOnlyACordonFromBeforeAnyOfUsIsLegacy(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		undone bool
	}{
		"of EVE's zedkube":     {func(*corev1.Node) {}, true},
		"younger than this":    {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = new(kubetest.At(5)) }, false},
		"of the same second":   {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = new(kubetest.At(4)) }, false},
		"of unknown age":       {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = nil }, false},
		"not noticed yet":      {func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		"dated by other taint": {func(n *corev1.Node) { n.Spec.Taints[0].Key = "other" }, false},
		"with our note":        {func(n *corev1.Node) { n.Annotations[nodes.CordonAnnotation] = "{}" }, false},
		"on a stamped node":    {func(n *corev1.Node) { n.Annotations[nodes.AgentAnnotation] = "garbage" }, false},
		"on a stamped node, by EVE's": {func(n *corev1.Node) {
			n.Annotations[nodes.AgentAnnotation], n.ManagedFields = "garbage", []metav1.ManagedFieldsEntry{unschedulableBy("zedbox")}
		}, true},
		"by EVE's, where the note of one of ours that EVE's undid is left": {func(n *corev1.Node) {
			n.Annotations[nodes.AgentAnnotation], n.ManagedFields = "garbage", []metav1.ManagedFieldsEntry{unschedulableBy("zedbox")}
			n.Annotations[nodes.CordonAnnotation] = `{"by":"zedkube","reason":"node drain for UPDATE","since":"2026-05-03T06:41:17Z"}`
			n.Annotations[nodes.KeepAnnotation] = "true"
		}, true},
		"on a stamped node, by EVE's and another": {func(n *corev1.Node) {
			n.Annotations[nodes.AgentAnnotation], n.ManagedFields = "garbage", []metav1.ManagedFieldsEntry{unschedulableBy("zedbox"), unschedulableBy("kubectl")}
		}, false},
	} {
		n := legacyNode()
		row.change(n)
		c, kube := withFake(t, n)
		if err := c.UncordonLegacy(t.Context(), "n1", kubetest.At(4).Time); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if now.Spec.Unschedulable == row.undone {
			t.Errorf("a cordon %s: unschedulable %v", name, now.Spec.Unschedulable)
		}
		if _, noted := now.Annotations[nodes.CordonAnnotation]; row.undone && noted {
			t.Errorf("a cordon %s: its note is left", name)
		}
	}
}

func TestACordonOnANodeWithAStaleStampIsLegacy(t *testing.T) {
	n := legacyNode()
	n.Annotations[nodes.AgentAnnotation] = `{"version":"1"}`
	for _, undone := range []bool{false, true} {
		c, kube := withFake(t, n.DeepCopy())
		c.Stamps.Sees(nodes.NodeOf(n))
		if undone {
			c.Stamps.Counted += types.StampFresh
		}
		if err := c.UncordonLegacy(t.Context(), "n1", kubetest.At(4).Time); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if now.Spec.Unschedulable == undone {
			t.Errorf("stale %v: unschedulable %v", undone, now.Spec.Unschedulable)
		}
	}
}

func TestOnlyOurCordonCanBeKept(t *testing.T) {
	c, kube := withFake(t, legacyNode())
	if err := c.KeepCordon(t.Context(), "n1"); !errors.Is(err, nodes.ErrNotOurs) {
		t.Errorf("keeping a foreign one says %v", err)
	}
	if sent := patches(t, kube); sent != nil {
		t.Errorf("sent %v", sent)
	}
	c, _ = withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
	if err := c.KeepCordon(t.Context(), "n1"); !errors.Is(err, nodes.ErrNotOurs) {
		t.Errorf("keeping none says %v", err)
	}
}

func TestANodeOfUnknownIdentityIsNotDeleted(t *testing.T) {
	c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}})
	if err := c.DeleteNode(t.Context(), types.Node{Name: "n1"}); err == nil || len(kube.Actions()) > 0 {
		t.Errorf("got %v after %v", err, kube.Actions())
	}
	if err := c.DeleteNode(t.Context(), types.Node{Name: "n2", UID: "u2"}); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}

func TestConditionsAreWrittenWhereTheyDiffer(t *testing.T) {
	since := kubetest.At(1)
	n := wholeNode()
	n.Status.Conditions = append(n.Status.Conditions[:2:2], corev1.NodeCondition{
		Type: nodes.ConditionDrainInProgress, Status: corev1.ConditionTrue, Reason: "Draining", LastTransitionTime: since,
	})
	c, kube := withFake(t, n)
	set := func(d types.DrainConditions) map[corev1.NodeConditionType]corev1.NodeCondition {
		t.Helper()
		if err := c.SetDrainConditions(t.Context(), "n1", d); err != nil {
			t.Fatal(err)
		}
		now, _ := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		found := map[corev1.NodeConditionType]corev1.NodeCondition{}
		for _, cond := range now.Status.Conditions {
			found[cond.Type] = cond
		}
		return found
	}
	d := types.DrainConditions{InProgress: true, Reason: "Draining", Message: "3 pods"}
	got := set(d)
	if c := got[nodes.ConditionDrainInProgress]; c.Message != "3 pods" || !c.LastTransitionTime.Equal(&since) {
		t.Errorf("what did not change has a new date: %+v", c)
	}
	if c := got[nodes.ConditionDrained]; c.Status != corev1.ConditionFalse || len(got) != 4 {
		t.Errorf("conditions are %v", slices.Sorted(maps.Keys(got)))
	}
	sent := len(patches(t, kube))
	if set(d); len(patches(t, kube)) != sent {
		t.Error("the same was written again")
	}
	if got = set(types.DrainConditions{Drained: true}); since.Equal(new(got[nodes.ConditionDrainInProgress].LastTransitionTime)) {
		t.Errorf("what changed has its old date: %+v", got[nodes.ConditionDrainInProgress])
	}
}

// unschedulableBy is the record of the API server of somebody's cordon.
func unschedulableBy(manager string) metav1.ManagedFieldsEntry {
	fields := ourFields()[0]
	fields.Manager = manager
	return fields
}
