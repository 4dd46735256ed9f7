//go:build linux

package kubeapi_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// sharesPlugin has three nodes write their parts of one ConfigMap at once.
func sharesPlugin(t *testing.T, c *devcluster.Cluster) {
	agents := []*agent{newAgent(t, c, 0), newAgent(t, c, 2), newAgent(t, c, 7)} // which no story cuts off
	for round := range 10 {
		var racing sync.WaitGroup
		for i, a := range agents {
			racing.Go(func() {
				for {
					seen, err := a.SRIOVConfig(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					change := map[string]string{fmt.Sprintf("node.n%d.json", i): fmt.Sprint(round), fmt.Sprintf("node.n%d.json", i+3): ""}
					err = a.SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: seen.Version, Data: change})
					if err == nil {
						return
					}
					if !errors.Is(err, types.ErrConflict) {
						t.Error(err)
						return
					}
				}
			})
		}
		racing.Wait()
		seen, err := agents[0].SRIOVConfig(t.Context())
		if err != nil || len(seen.Data) != 3 || seen.Data["node.n2.json"] != fmt.Sprint(round) {
			t.Fatalf("after round %d there is %+v, %v", round, seen, err)
		}
	}
	if err := c.Client().CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "sriovdp-config", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := agents[0].SetSRIOVConfig(t.Context(), types.SRIOVConfig{Version: "1", Data: map[string]string{"x": "y"}}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("a ConfigMap that is gone was changed: %v", err)
	}
	restartsPlugin(t, c, agents[0])
	dropsNetwork(t, c, agents[0])
}

func restartsPlugin(t *testing.T, c *devcluster.Cluster, a *agent) {
	api := c.Client().CoreV1().Pods("kube-system")
	for i, node := range c.Nodes[:2] {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("sriovdp-", i), Labels: map[string]string{"app": "sriovdp"}},
			Spec: corev1.PodSpec{
				NodeName: node.Name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "c", Image: "plugin"}},
			},
		}
		if _, err := api.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	own := c.Nodes[0].Name
	list, err := a.SRIOVPlugins(t.Context(), own)
	if err != nil || len(list) != 1 || list[0].Name != "sriovdp-0" || list[0].Part != "" || list[0].Created.IsZero() {
		t.Fatalf("listed are %+v, %v", list, err)
	}
	namesake := list[0]
	namesake.UID = "another"
	if err := a.MarkSRIOVPlugin(t.Context(), namesake); err == nil {
		t.Error("a namesake was marked")
	}
	if err := a.RestartSRIOVPlugin(t.Context(), namesake); !errors.Is(err, types.ErrConflict) {
		t.Errorf("a namesake was deleted: %v", err)
	}
	list[0].Part = "0123"
	if err := a.MarkSRIOVPlugin(t.Context(), list[0]); err != nil {
		t.Fatal(err)
	}
	if again, err := a.SRIOVPlugins(t.Context(), own); err != nil || len(again) != 1 || again[0] != list[0] {
		t.Errorf("marked it is %+v, %v", again, err)
	}
	if err := a.RestartSRIOVPlugin(t.Context(), list[0]); err != nil {
		t.Error(err)
	}
	none := int64(0)
	for i := range 2 {
		err := api.Delete(t.Context(), fmt.Sprint("sriovdp-", i), metav1.DeleteOptions{GracePeriodSeconds: &none})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

func dropsNetwork(t *testing.T, c *devcluster.Cluster, a *agent) {
	api := c.Custom("net-attach-def").Namespace(kubeapi.Namespace)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{
			"name": "sriov-eth5-vf1", "annotations": map[string]any{"k8s.v1.cni.cncf.io/resourceName": "eve.network/eth5_vf1"},
		},
		"spec": map[string]any{"config": `{"cniVersion":"0.3.1","name":"sriov-eth5-vf1","type":"sriov"}`},
	}}
	if _, err := api.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := a.SRIOVNetworks(t.Context())
	if err != nil || len(list) != 1 || list[0].Resource != "eve.network/eth5_vf1" {
		t.Fatalf("listed are %+v, %v", list, err)
	}
	old := list[0]
	old.Version = "1"
	if err := a.DeleteSRIOVNetwork(t.Context(), old); !errors.Is(err, types.ErrConflict) {
		t.Errorf("another version was deleted: %v", err)
	}
	for range 2 {
		if err := a.DeleteSRIOVNetwork(t.Context(), list[0]); err != nil {
			t.Error(err)
		}
	}
}
