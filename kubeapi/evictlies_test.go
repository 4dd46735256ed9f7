package kubeapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/test/kubetest"
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
	s := lively(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text)
		}),
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.session.Swap(conn)
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
		"the pod of another node": &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{kubetest.TestPod("n", "p", "n2")}},
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

// daemons is a server of so many pods on n1, each of a daemon set of its own, and of
// sets.
func daemons(sets appsv1.DaemonSetList, pods int) *fakeAPI {
	api := &fakeAPI{}
	list := podList()
	for i := range pods {
		p := kubetest.TestPod("n", fmt.Sprint("p", i), "n1")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: fmt.Sprint("set-", i), Controller: new(true)}}
		list.Items = append(list.Items, p)
	}
	api.fault = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/apps/v1/") {
			reply(w, 200, sets)
			return
		}
		reply(w, 200, list)
	}
	return api
}

func TestPodsOfDaemonSetsCostOneList(t *testing.T) {
	sets := appsv1.DaemonSetList{TypeMeta: metav1.TypeMeta{Kind: "DaemonSetList", APIVersion: "apps/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
	for i := range 11 { // one is of another namespace
		sets.Items = append(sets.Items, appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("set-", i)}})
	}
	sets.Items[10].Namespace = "m"
	api := daemons(sets, 12)
	pods, err := answersWith(t, api.ServeHTTP).PodsToEvict(t.Context(), "n1")
	if err != nil || len(pods) != 2 || pods[0].Name != "p10" || pods[1].Name != "p11" {
		t.Errorf("orphans are %v, %v", pods, err)
	}
	if api.count() != 2 {
		t.Errorf("it cost %d requests", api.count())
	}
}

func TestALieIsNoListOfDaemonSets(t *testing.T) {
	meta := metav1.TypeMeta{Kind: "DaemonSetList", APIVersion: "apps/v1"}
	for name, lie := range map[string]appsv1.DaemonSetList{
		"without a version": {TypeMeta: meta},
		"a page":            {TypeMeta: meta, ListMeta: metav1.ListMeta{ResourceVersion: "8", Continue: "more"}},
		"another kind":      {TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}},
	} {
		pods, err := answersWith(t, daemons(lie, 2).ServeHTTP).PodsToEvict(t.Context(), "n1")
		if err == nil {
			t.Errorf("%s: the pods of daemon sets are to be evicted: %v", name, pods)
		}
	}
}

func TestATruncatedListIsNoListOfPodsToEvict(t *testing.T) {
	list := podList(kubetest.TestPod("n", "p1", "n1"), kubetest.TestPod("n", "p2", "n1"))
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
