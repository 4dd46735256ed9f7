package kubeapi

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func phased(namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	p := kubetest.TestPod(namespace, name, "n1")
	p.Status.Phase = phase
	return &p
}

func TestPodsAreCountedByNamespaceAndPhase(t *testing.T) {
	table := &pubsub.Table[types.KubePodNameSpaceInfo]{}
	c := countedRows(table, "")
	err := c.Replace([]any{
		phased("a", "1", corev1.PodRunning), phased("a", "2", corev1.PodPending), phased("a", "3", corev1.PodFailed),
		phased("a", "4", corev1.PodSucceeded), phased("a", "5", corev1.PodUnknown), phased("a", "6", ""), phased("b", "1", corev1.PodRunning),
	}, "7")
	if err != nil {
		t.Fatal(err)
	}
	is := func(when string, want map[string]types.KubePodNameSpaceInfo) {
		t.Helper()
		if diff := cmp.Diff(want, table.All()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	a := types.KubePodNameSpaceInfo{Name: "a", PodCount: 6, PodRunningCount: 1, PodPendingCount: 1, PodFailedCount: 1, PodSucceededCount: 1}
	b := types.KubePodNameSpaceInfo{Name: "b", PodCount: 1, PodRunningCount: 1}
	is("listed", map[string]types.KubePodNameSpaceInfo{"a": a, "b": b})
	bell := make(chan struct{}, 1)
	table.Notify(bell)
	_ = c.Update(phased("a", "1", corev1.PodRunning))
	_ = c.Replace([]any{
		phased("b", "2", corev1.PodRunning), phased("a", "9", corev1.PodRunning), phased("a", "2", corev1.PodPending), phased("a", "3", corev1.PodFailed),
		phased("a", "4", corev1.PodSucceeded), phased("a", "5", corev1.PodUnknown), phased("a", "6", ""),
	}, "8")
	select {
	case <-bell:
		t.Error("the same counts ring")
	default:
	}
	_, _ = c.Update(phased("a", "2", corev1.PodRunning)), c.Add(phased("c", "1", corev1.PodPending))
	a.PodPendingCount, a.PodRunningCount = 0, 2
	is("changed", map[string]types.KubePodNameSpaceInfo{"a": a, "b": b, "c": {Name: "c", PodCount: 1, PodPendingCount: 1}})
	_, _ = c.Delete(phased("c", "1", corev1.PodPending)), c.Delete(phased("b", "2", corev1.PodRunning))
	_, _ = c.Delete(phased("b", "none", "")), c.Delete(phased("none", "none", ""))
	is("a namespace without pods", map[string]types.KubePodNameSpaceInfo{"a": a})
	for name, err := range map[string]error{
		"a list without a version": c.Replace(nil, ""),
		"a nameless pod in a list": c.Replace([]any{phased("a", "1", ""), phased("", "", "")}, "9"),
		"a nameless pod":           c.Update(phased("a", "", "")),
		"no pod":                   c.Update(&corev1.Node{}),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		is(name, map[string]types.KubePodNameSpaceInfo{"a": a})
	}
}

// seen is a table of pod counts with all that it ever said.
type seen struct {
	pubsub.Table[types.KubePodNameSpaceInfo]
	said []types.KubePodNameSpaceInfo
}

func (s *seen) Publish(key string, v types.KubePodNameSpaceInfo) error {
	s.said = append(s.said, v)
	return s.Table.Publish(key, v)
}

func TestAWholeListGoesFromOneCountToTheOther(t *testing.T) {
	table := &seen{}
	c := countedRows(table, "")
	_ = table.Table.Publish("gone", types.KubePodNameSpaceInfo{Name: "gone", PodCount: 3}) // as another connection left it
	for _, n := range []int{100, 70} {
		var list []any
		for i := range n {
			list = append(list, phased("a", fmt.Sprint(n, i), corev1.PodRunning))
		}
		if err := c.Replace(list, "7"); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.said) != 2 || table.said[0].PodCount != 100 || table.said[1].PodCount != 70 || len(table.All()) != 1 {
		t.Errorf("it said %+v", table.said)
	}
}

func TestTenThousandPodsAreCountedInLittleMemory(t *testing.T) {
	table := &pubsub.Table[types.KubePodNameSpaceInfo]{}
	c := countedRows(table, "")
	before := kubetest.Heap()
	list := make([]any, 0, 10000)
	slim := c.Transformer()
	for i := range 10000 {
		p := phased(fmt.Sprint("namespace-", i%100), fmt.Sprintf("some-deployment-%05d-7d9c5b8f6d-abcde", i), corev1.PodRunning)
		p.Spec.Containers = make([]corev1.Container, 3)
		o, err := slim(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	arriving := kubetest.Heap() - before
	if err := c.Replace(list, "7"); err != nil {
		t.Fatal(err)
	}
	list = nil
	kept := kubetest.Heap() - before
	t.Logf("10,000 pods: %d kB while the list arrives, %d kB kept", arriving>>10, kept>>10)
	if kept > 2<<20 || arriving > 4<<20 {
		t.Errorf("%d kB while the list arrives, %d kB kept", arriving>>10, kept>>10)
	}
	runtime.KeepAlive(c)
	if len(table.All()) != 100 || list != nil {
		t.Errorf("%d namespaces", len(table.All()))
	}
}
