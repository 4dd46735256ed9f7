package kubeapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestASituationIsAllThatTheClusterSaysOfAPod(t *testing.T) {
	pod, api := trapped()
	got, err := meets(t, api).Situations(t.Context(), "n1", []types.Pod{{Namespace: "depot", Name: "gone"}, pod, {Namespace: "shop", Name: "other", UID: "former"}})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %+v", err, got)
	}
	want := types.PodSituation{
		Finalizers: []string{"a.io/x"}, Grace: 90 * time.Second,
		Budgets: []types.PodBudget{
			{Name: "shop/every", Allowed: 1, Healthy: 4, Desired: 3, Expects: 5},
			{Name: "shop/broken", Trouble: "found no controller"},
		},
		Immovable: "DisksNotLiveMigratable: disk is local", Strategy: "LiveMigrate", Fits: 1,
	}
	want.Pod = types.Pod{Namespace: "shop", Name: "till", UID: "1", NodeName: "n1", VMI: "vm", App: "till"}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

func TestOneListThatFailsTakesNoOthersAlong(t *testing.T) {
	forbidden := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 403, failure(403, metav1.StatusReasonForbidden))
	})
	wrong := corev1.ConfigMapList{TypeMeta: typed("ConfigMapList", "v1"), ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
	for path, row := range map[string]struct {
		says   string
		forget func(*types.PodSituation)
	}{
		podsPath: {"list pods", func(s *types.PodSituation) {
			*s = types.PodSituation{Pod: types.Pod{Namespace: "shop", Name: "till", UID: "1", VMI: "vm"}, Immovable: s.Immovable, Strategy: s.Strategy}
		}},
		nodesPath:   {"list nodes", func(s *types.PodSituation) { s.Fits = 0 }},
		budgetsPath: {"list pod disruption budgets", func(s *types.PodSituation) { s.Budgets = nil }},
		vmisPath:    {"list virtual machine instances", func(s *types.PodSituation) { s.Immovable, s.Strategy = "", "" }},
		volumesPath: {"list persistent volumes", func(*types.PodSituation) {}},
	} {
		pod, api := trapped()
		whole, err := meets(t, api).Situations(t.Context(), "n1", []types.Pod{pod})
		if err != nil {
			t.Fatal(err)
		}
		row.forget(&whole[0])
		for name, lie := range map[string]any{
			"403": forbidden, "500": http.HandlerFunc(status500), "another kind": wrong, "nothing": struct{}{},
			"half": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind":"`))
			}),
		} {
			api[path] = lie
			got, err := meets(t, api).Situations(t.Context(), "n1", []types.Pod{pod})
			if err == nil || !strings.Contains(err.Error(), "examine the pods on node n1: "+row.says) {
				t.Errorf("%s of %s: error is %v", name, path, err)
			}
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Errorf("%s of %s: %s", name, path, diff)
			}
		}
	}
}

func TestAClusterWithoutKubeVirtHasNoMachines(t *testing.T) {
	pod, api := trapped()
	delete(api, vmisPath)
	got, err := meets(t, api).Situations(t.Context(), "n1", []types.Pod{pod})
	if err != nil || got[0].Immovable != "" || len(got[0].Budgets) != 2 {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestAHundredPodsCostFiveListsAndPagesAreFollowed(t *testing.T) {
	_, api := trapped()
	asked := map[string]int{}
	var pods []types.Pod
	for i := range 100 {
		pods = append(pods, types.Pod{Namespace: "shop", Name: "p" + string(rune('a'+i/26)) + string(rune('a'+i%26)), VMI: "vm"})
	}
	api[podsPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		half, next := pods[:50], "second"
		if r.URL.Query().Get("continue") == "second" {
			half, next = pods[50:], ""
		}
		page := podList()
		page.Continue = next
		for _, p := range half {
			page.Items = append(page.Items, kubetest.TestPod(p.Namespace, p.Name, "n1"))
		}
		reply(w, 200, page)
	})
	got, err := meets(t, &counting{lists: api, asked: asked}).Situations(t.Context(), "n1", pods)
	if err != nil || len(got) != 100 {
		t.Fatalf("%v, %d situations", err, len(got))
	}
	if diff := cmp.Diff(map[string]int{podsPath: 2, nodesPath: 1, volumesPath: 1, budgetsPath: 1, vmisPath: 1}, asked); diff != "" {
		t.Error(diff)
	}
}
