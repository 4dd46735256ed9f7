//go:build linux

package apps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

// theirs is somebody else's attachment to a node.
func theirs(i int) string { return fmt.Sprintf("theirs-%d", i) }

// addForeign adds what nobody is to touch.
func (s *stage) addForeign(t *testing.T) {
	t.Helper()
	client, ctx := s.Cluster.Client(), t.Context()
	for i := range s.Cluster.Nodes {
		volume := theirs(i)
		_, err := client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disks.example.com", NodeName: s.Name(i), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().ConfigMaps(devcluster.AppNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := &unstructured.Unstructured{}
	err = set.UnmarshalJSON([]byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceReplicaSet",
		"metadata":{"name":"` + foreignSet + `"},"spec":{"replicas":0,"selector":{"matchLabels":{"theirs":"yes"}},
		"template":{"metadata":{"labels":{"theirs":"yes"}},"spec":{"domain":{"devices":{},"memory":{"guest":"64Mi"}}}}}}`))
	if err == nil {
		_, err = s.sets().Create(ctx, set, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 10*time.Second, func() string { // virt-controller writes its status once
		set, err := s.sets().Get(ctx, foreignSet, metav1.GetOptions{})
		if err != nil || set.Object["status"] == nil {
			return "the foreign set has no status"
		}
		return ""
	})
	s.foreign = s.foreigners(t)
}

// foreigners are the foreign objects, whole.
func (s *stage) foreigners(t *testing.T) string {
	t.Helper()
	var text []string
	add := func(o any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(line))
	}
	list, err := s.Cluster.Client().StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Items {
		if a.Spec.Attacher != devcluster.LonghornDriver {
			add(a, nil)
		}
	}
	add(s.Cluster.Client().CoreV1().ConfigMaps(devcluster.AppNamespace).Get(t.Context(), "theirs", metav1.GetOptions{}))
	add(s.sets().Get(t.Context(), foreignSet, metav1.GetOptions{}))
	return strings.Join(text, "\n")
}

// othersAreUntouched compares what is foreign with what it was, and counts the
// replicas, of which none may go.
func (s *stage) othersAreUntouched(t *testing.T) {
	t.Helper()
	if now := s.foreigners(t); now != s.foreign {
		t.Errorf("foreign objects were\n%s\nand are\n%s", s.foreign, now)
	}
	replicas, err := s.Cluster.Custom("lhr").Namespace(devcluster.LonghornNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, r := range replicas.Items {
		volume, _, _ := unstructured.NestedString(r.Object, "spec", "volumeName")
		have[volume]++
	}
	for _, a := range s.apps {
		if have[a.volume] != len(a.replicas) {
			t.Errorf("volume %s has %d replicas, want %d", a.volume, have[a.volume], len(a.replicas))
		}
	}
}
