//go:build linux

package kubeapi_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func legacyCordons(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	begin := time.Now().Add(-2 * time.Second) // timestamps have whole seconds
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":true}}`)
	row(t, a, node, "the taint is dated", func(n types.Node) bool { return n.TaintedAt.After(begin) && n.CordonedBy == nil })
	stands := func(what string, want bool, verb func() error) {
		t.Helper()
		if err := verb(); err != nil {
			t.Fatal(err)
		}
		n, err := c.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil || n.Spec.Unschedulable != want {
			t.Errorf("%s: unschedulable is %v, %v", what, n.Spec.Unschedulable, err)
		}
	}
	later := time.Now().Add(time.Minute)
	stands("a foreign one, uncordoned", true, func() error { return a.Uncordon(t.Context(), node) })
	stands("one of this boot", true, func() error { return a.UncordonLegacy(t.Context(), node, begin) })
	stands("one of an earlier boot", false, func() error { return a.UncordonLegacy(t.Context(), node, later) })
	if err := a.Stamp(t.Context(), node, types.AgentStamp{Version: "first"}); err != nil {
		t.Fatal(err)
	}
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":true}}`)
	row(t, a, node, "the taint is dated again", func(n types.Node) bool { return !n.TaintedAt.IsZero() })
	stands("one after the stamp", true, func() error { return a.UncordonLegacy(t.Context(), node, later) })
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":null}}`)
}

// cordonOfWorkloads stands whatever a drain does, and goes with the workloads alone.
func cordonOfWorkloads(t *testing.T, _ *devcluster.Cluster, a *agent, node string) {
	ours := types.Cordon{By: "zedkube", Reason: "workloads are disabled", Kind: types.CordonWorkloads, Since: time.Now().UTC()}
	drain := types.Cordon{Reason: "drain", Since: time.Now().UTC()}
	if err := errors.Join(a.Cordon(t.Context(), node, ours), a.Cordon(t.Context(), node, drain), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it stands", func(n types.Node) bool {
		return n.CordonKept && n.CordonedBy != nil && *n.CordonedBy == ours && n.Cordoner() == types.CordonedDisabled && !n.CordonedForDrain()
	})
	if err := a.UncordonWorkloads(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is undone", func(n types.Node) bool { return !n.Unschedulable && n.CordonedBy == nil && !n.CordonKept })
	if err := errors.Join(a.Cordon(t.Context(), node, drain), a.UncordonWorkloads(t.Context(), node), a.Cordon(t.Context(), node, ours)); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "a drain's stays the drain's", func(n types.Node) bool { return n.CordonedForDrain() && n.CordonedBy.Reason == "drain" })
	if err := errors.Join(a.UncordonWorkloads(t.Context(), node), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "nothing is left", func(n types.Node) bool { return !n.Unschedulable && !n.CordonKept })
}

func keptCordons(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	if err := a.KeepCordon(t.Context(), node); err == nil {
		t.Error("what does not stand was kept")
	}
	first := types.Cordon{Reason: "first", Since: time.Now().UTC().Add(-time.Hour)}
	second := types.Cordon{By: "zedkube", Reason: "second", Since: time.Now().UTC()}
	if err := errors.Join(a.Cordon(t.Context(), node, first), a.KeepCordon(t.Context(), node), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is kept", func(n types.Node) bool { return n.CordonKept && n.CordonedBy != nil && n.CordonedBy.Reason == "first" })
	if err := a.Cordon(t.Context(), node, second); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is dated anew and ours", func(n types.Node) bool {
		return !n.CordonKept && n.Unschedulable && n.CordonedBy != nil && *n.CordonedBy == second
	})
	if err := errors.Join(a.KeepCordon(t.Context(), node), a.Unkeep(t.Context(), node), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is undone", func(n types.Node) bool { return !n.Unschedulable && n.CordonedBy == nil })

	// kubectl undoes a kept one: the mark is a leftover, and the next cordon is theirs.
	if err := errors.Join(a.Cordon(t.Context(), node, first), a.KeepCordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":null}}`)
	row(t, a, node, "the mark is left over", func(n types.Node) bool { return n.CordonKept && !n.Unschedulable })
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":true}}`)
	if err := errors.Join(a.Cordon(t.Context(), node, second), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	n := kubectlPatches(t, c, node, `{}`)
	if !n.Spec.Unschedulable || n.Annotations["zedkube.github.io/cordon"] == "" {
		t.Errorf("theirs became %v with %v", n.Spec.Unschedulable, n.Annotations)
	}
	kubectlPatches(t, c, node, `{"spec":{"unschedulable":null}}`)
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	n = kubectlPatches(t, c, node, `{}`)
	if n.Annotations["zedkube.github.io/cordon"]+n.Annotations["zedkube.github.io/keep-cordon"] != "" {
		t.Errorf("without a cordon the notes are %v", n.Annotations)
	}
}

// whoseCordons has others write on a cordoned node in the ways there are.
func whoseCordons(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	kubectl := func(verb string) {
		t.Helper()
		if out, err := c.Kubectl(t.Context(), verb, node); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	applies := func(value string) {
		t.Helper()
		text := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + node + `"},"spec":{` + value + `}}`
		_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, ktypes.ApplyPatchType, []byte(text),
			metav1.PatchOptions{FieldManager: "gitops", Force: new(true)})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []struct {
		what string
		do   func()
		ours bool
	}{
		{"nothing", func() {}, true},
		{"the taint", func() {
			row(t, a, node, "it is tainted", func(n types.Node) bool { return !n.TaintedAt.IsZero() })
		}, true},
		{"kubectl cordon of what is cordoned", func() { kubectl("cordon") }, true},
		{"kubectl uncordon and cordon", func() { kubectl("uncordon"); kubectl("cordon") }, false},
		{"kubectl cordon, after ours was undone and made again", func() {
			kubectl("uncordon")
			if err := a.Cordon(t.Context(), node, types.Cordon{Since: time.Now().UTC()}); err != nil {
				t.Fatal(err)
			}
			kubectl("cordon")
		}, true},
		{"apply of the same", func() { applies(`"unschedulable":true`) }, false},
		{"apply of other fields", func() { applies(`"taints":[{"key":"k","effect":"PreferNoSchedule"}]`) }, true},
		{"apply of the opposite, before ours", func() {
			applies(`"unschedulable":false`)
			if err := a.Cordon(t.Context(), node, types.Cordon{Since: time.Now().UTC()}); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		if err := a.Cordon(t.Context(), node, types.Cordon{Reason: part.what}); err != nil {
			t.Fatal(err)
		}
		part.do()
		if err := a.Uncordon(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if n := kubectlPatches(t, c, node, `{}`); n.Spec.Unschedulable == part.ours || (n.Annotations["zedkube.github.io/cordon"] == "") != part.ours {
			t.Errorf("%s: after uncordon unschedulable is %v, managers %+v", part.what, n.Spec.Unschedulable, n.ManagedFields)
		}
		applies("") // gives up what it owned
		kubectlPatches(t, c, node, `{"spec":{"unschedulable":null}}`)
	}
}
