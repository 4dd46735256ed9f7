package kubeapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestPodsOfApplicationsAreCountedOnceAndOnlyWhileSomebodyCounts(t *testing.T) {
	table, pods := &pubsub.Table[types.KubePodNameSpaceInfo]{}, &pubsub.Table[types.Pod]{}
	apps := &appCounts{Writer: pods}
	rows := appPodRows(apps)
	others := countedRows(table, access.Namespace)
	is := func(when string, want ...types.KubePodNameSpaceInfo) {
		t.Helper()
		rows := map[string]types.KubePodNameSpaceInfo{}
		for _, c := range want {
			rows[c.Name] = c
		}
		if diff := cmp.Diff(rows, table.All(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(rows.Replace([]any{phased(access.Namespace, "1", corev1.PodRunning), phased(access.Namespace, "2", corev1.PodRunning)}, "7"))
	is("while nobody counts")
	must(apps.begin(table))
	is("from the beginning", types.KubePodNameSpaceInfo{Name: access.Namespace, PodCount: 2, PodRunningCount: 2})
	must(rows.Update(phased(access.Namespace, "2", corev1.PodFailed)))
	must(rows.Add(phased(access.Namespace, "3", corev1.PodPending)))
	must(rows.Delete(phased(access.Namespace, "1", corev1.PodRunning)))
	mine := types.KubePodNameSpaceInfo{Name: access.Namespace, PodCount: 2, PodFailedCount: 1, PodPendingCount: 1}
	is("changed", mine)

	// A server that sends them although they were not asked for changes nothing.
	must(others.Replace([]any{phased("a", "1", corev1.PodRunning), phased(access.Namespace, "2", corev1.PodRunning)}, "7"))
	must(others.Update(phased(access.Namespace, "3", corev1.PodRunning)))
	must(others.Delete(phased(access.Namespace, "3", corev1.PodRunning)))
	is("beside the others", mine, types.KubePodNameSpaceInfo{Name: "a", PodCount: 1, PodRunningCount: 1})

	must(rows.Replace([]any{phased(access.Namespace, "3", corev1.PodPending)}, "8"))
	must(others.Replace(nil, "8"))
	is("after a new list", types.KubePodNameSpaceInfo{Name: access.Namespace, PodCount: 1, PodPendingCount: 1})
	must(rows.Delete(phased(access.Namespace, "3", corev1.PodPending)))
	is("without any")
	apps.end()
	must(rows.Add(phased(access.Namespace, "4", corev1.PodPending)))
	is("while nobody counts any more")
	if _, ok := pods.Get(access.Namespace + "/4"); !ok {
		t.Error("the pod itself is not in its table")
	}
}
