package kubeapi

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func podList(pods ...corev1.Pod) corev1.PodList {
	return corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: pods,
	}
}

// says is a client of a server that answers everything with one text.
func says(t *testing.T, contentType string, text []byte) *Client {
	t.Helper()
	c, _ := newTestClient(t)
	s, _ := watched(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &inMemory{
		handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text)
		}),
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.conn = conn
	return c
}

func encoded(t *testing.T, contentType string, obj runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		t.Fatal(contentType)
	}
	text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A node that seems empty by mistake would be given free by a drain.
func TestALieIsNoListOfPodsToEvict(t *testing.T) {
	meta := metav1.ListMeta{ResourceVersion: "8"}
	lies := map[string]runtime.Object{
		"another kind":            &corev1.ConfigMapList{ListMeta: meta},
		"one object":              &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", ResourceVersion: "8"}},
		"a success":               &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"},
		"a list without version":  &corev1.PodList{},
		"a nameless pod":          &corev1.PodList{ListMeta: meta, Items: make([]corev1.Pod, 1)},
		"the pod of another node": &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{testPod("n", "p", "n2")}},
	}
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for name, lie := range lies {
			pods, err := says(t, contentType, encoded(t, contentType, lie)).PodsToEvict(t.Context(), "n1")
			if err == nil {
				t.Errorf("%s in %s is taken for %d pods", name, contentType, len(pods))
			}
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", "<html>", `{"kind":"PodList","apiVersion":"v1"}`} {
		if pods, err := says(t, runtime.ContentTypeJSON, []byte(text)).PodsToEvict(t.Context(), "n1"); err == nil {
			t.Errorf("%q is taken for %d pods", text, len(pods))
		}
	}
}

func TestATruncatedListIsNoListOfPodsToEvict(t *testing.T) {
	list := podList(testPod("n", "p1", "n1"), testPod("n", "p2", "n1"))
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		whole := encoded(t, contentType, &list)
		if pods, err := says(t, contentType, whole).PodsToEvict(t.Context(), "n1"); err != nil || len(pods) != 2 {
			t.Fatalf("the whole list is %v, %v", pods, err)
		}
		for n := range len(whole) {
			pods, err := says(t, contentType, whole[:n]).PodsToEvict(t.Context(), "n1")
			if err == nil && len(pods) != 2 { // some of the last bytes mean nothing
				t.Errorf("%d of %d bytes of %s are taken for %d pods", n, len(whole), contentType, len(pods))
			}
		}
	}
}
