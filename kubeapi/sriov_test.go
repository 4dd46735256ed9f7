package kubeapi

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/types"
)

func sriovMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "sriovdp-config", ResourceVersion: "7"}, Data: data}
}

func TestThePluginsConfigurationIsChangedByKeyForTheVersionThatWasSeen(t *testing.T) {
	c, kube := withFake(t, sriovMap(map[string]string{"config.json": "{}", "node.n2.json": "x"}))
	seen, err := c.SRIOVConfig(t.Context())
	if err != nil || seen.Version != "7" || seen.Data["node.n2.json"] != "x" {
		t.Fatalf("read %+v, %v", seen, err)
	}
	if err := c.SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: "7", Data: map[string]string{"node.n1.json": "y", "node.n2.json": ""}}); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{
		"metadata": map[string]any{"resourceVersion": "7"},
		"data":     map[string]any{"node.n1.json": "y", "node.n2.json": nil},
	}}
	if d := cmp.Diff(want, patches(t, kube)); d != "" {
		t.Error(d)
	}
}

func TestWithoutAPluginsConfigurationOneIsMade(t *testing.T) {
	c, _ := withFake(t)
	none, err := c.SRIOVConfig(t.Context())
	if err != nil || none.Version != "" {
		t.Fatalf("read %+v, %v", none, err)
	}
	change := types.SRIOVConfig{Data: map[string]string{"config.json": "{}", "node.n1.json": ""}}
	if err := c.SetSRIOVConfig(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if err := c.SetSRIOVConfig(t.Context(), change); !errors.Is(err, types.ErrConflict) {
		t.Errorf("made twice: %v", err)
	}
	if err := c.SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: "7"}); err != nil {
		t.Error(err)
	}
	c, _ = withFake(t)
	if err := c.SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: "7"}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("changed although it is gone: %v", err)
	}
}

func TestAnswersOfAnotherKindAreNoConfigurationAndNoPlugins(t *testing.T) {
	c, kube := withFake(t)
	kube.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() == "list" {
			return true, &corev1.PodList{}, nil
		}
		return true, &corev1.ConfigMap{}, nil
	})
	if got, err := c.SRIOVConfig(t.Context()); err == nil {
		t.Errorf("read %+v", got)
	}
	if err := c.SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: "7"}); err == nil {
		t.Error("written")
	}
	if got, err := c.SRIOVPlugins(t.Context(), "n1"); err == nil {
		t.Errorf("listed %+v", got)
	}
}

func TestAPluginIsMarkedAndDeletedByItsUID(t *testing.T) {
	c, kube := withFake(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "p", UID: "u"}})
	pod := types.SRIOVPlugin{Name: "p", UID: "u", Part: "0123"}
	if err := c.MarkSRIOVPlugin(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"metadata": map[string]any{"uid": "u", "annotations": map[string]any{"zedkube.github.io/sriov-part": "0123"}}}}
	if d := cmp.Diff(want, patches(t, kube)); d != "" {
		t.Error(d)
	}
	for range 2 { // the second time it is gone
		if err := c.RestartSRIOVPlugin(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	actions := kube.Actions()
	deleted := actions[len(actions)-1].(k8stesting.DeleteActionImpl)
	if p := deleted.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "u" {
		t.Errorf("deleted under %+v", p)
	}
}

func TestAClusterWithoutMultusHasNoNetworks(t *testing.T) {
	s := &nadServer{lie: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) }}
	if got, err := s.client(t).SRIOVNetworks(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("listed %v, %v", got, err)
	}
}
