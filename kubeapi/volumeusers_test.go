package kubeapi

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVolumeUsersAreThePodsOfTheNodeByVolume(t *testing.T) {
	ended := using("ended", "ReplicaSet", "v")
	ended.Status.Phase = corev1.PodFailed
	api := func() *storageAPI {
		s := longhornAPI()
		s.lists[podsPath] = []any{using("a", "DaemonSet", "v"), using("b", "", "v", "w"), using("c", "", "gone"), using("d", "", "pending"), ended}
		for claim, volume := range map[string]string{"v": "pv-v", "w": "pv-w", "pending": ""} {
			s.lies[claimPath(claim)] = func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 200, &corev1.PersistentVolumeClaim{
					TypeMeta:   typed("PersistentVolumeClaim", "v1"),
					ObjectMeta: metav1.ObjectMeta{Namespace: "eve-kube-app", Name: claim + "-pvc-0"},
					Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
				})
			}
		}
		s.lies[claimPath("gone")] = func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 404, failure(404, metav1.StatusReasonNotFound))
		}
		return s
	}
	got, err := api().client(t).VolumeUsers(t.Context(), "n1")
	if err != nil || len(got) != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	for volume, want := range map[string][]string{"pv-v": {"a", "b"}, "pv-w": {"b"}} {
		var names []string
		for _, p := range got[volume] {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s is used by %v, want %v", volume, names, want)
		}
	}
	for _, path := range []string{podsPath, claimPath("w")} {
		s := api()
		s.lies[path] = func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 403, failure(403, metav1.StatusReasonForbidden))
		}
		if got, err := s.client(t).VolumeUsers(t.Context(), "n1"); err == nil {
			t.Errorf("without %s it is %+v", path, got)
		}
	}
}

func claimPath(volume string) string {
	return "/api/v1/namespaces/eve-kube-app/persistentvolumeclaims/" + volume + "-pvc-0"
}
