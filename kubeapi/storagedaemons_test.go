package kubeapi

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// using is a pod on n1 that uses the claims of those volumes.
func using(name, kind string, volumes ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "eve-kube-app", Name: name}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "maker", Controller: new(true)}}
	}
	for _, v := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v + "-pvc-0"},
		}})
	}
	return p
}

func TestAnAttachmentThatDaemonsAloneUseIsMarkedWhereAnotherNodeServesTheVolume(t *testing.T) {
	ended := using("ended", "ReplicaSet", "v")
	ended.Status.Phase = corev1.PodSucceeded
	for name, row := range map[string]struct {
		engine string // node that it is on
		pods   []any
		marked bool
	}{
		"a DaemonSet's":              {"n2", []any{using("a", "DaemonSet", "v"), using("b", "ReplicaSet", "w")}, true},
		"and one that has ended":     {"n2", []any{using("a", "DaemonSet", "v"), ended}, true},
		"a ReplicaSet's as well":     {"n2", []any{using("a", "DaemonSet", "v"), using("b", "ReplicaSet", "v")}, false},
		"a pod's without an owner":   {"n2", []any{using("a", "", "v")}, false},
		"nobody's that can be seen":  {"n2", nil, false},
		"a DaemonSet's, engine here": {"n1", []any{using("a", "DaemonSet", "v")}, false},
		"a DaemonSet's of no engine": {"", []any{using("a", "DaemonSet", "v")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := longhornAPI()
			held := volumeAttachment("a1", "n1", true)
			held.Spec.Source.PersistentVolumeName = new("v")
			s.lists[pathAttachments] = []any{held}
			s.lists[pathEngines] = []any{lhEngine("v-e-0", "v", row.engine, "running", "v-r-1", "RW", "v-r-2", "RW")}
			s.lists[podsPath] = row.pods
			got, err := s.client(t).Storage(t.Context(), "n1")
			if err != nil || len(got.Attachments) != 1 || got.Attachments[0].Daemons != row.marked {
				t.Errorf("%v: %+v", err, got.Attachments)
			}
			if row.engine == "n2" {
				s.lies[podsPath] = func(w http.ResponseWriter, _ *http.Request) {
					reply(w, 403, failure(403, metav1.StatusReasonForbidden))
				}
				if _, err := s.client(t).Storage(t.Context(), "n1"); err == nil {
					t.Error("pods that cannot be listed are no pods")
				}
			} else if s.asked[podsPath] > 0 {
				t.Error("pods are listed for nothing")
			}
		})
	}
}
