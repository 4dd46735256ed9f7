package kubeapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestADialledClientWorksUntilItIsDone(t *testing.T) {
	api := &fakeAPI{nodes: []corev1.Node{testNode("n1", ownUUID)}, fault: nodeOnly}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, dialConfig(server))

	c, done, err := Dial(t.Context(), kubetest.Quiet(), path, types.NoOperations{})
	if err != nil {
		t.Fatal(err)
	}
	if api.count() != 0 {
		t.Error("dialling asks the server")
	}
	if err := c.Unkeep(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
	server.CloseClientConnections()
	api.set(func() { api.fault = status500 })
	for range 5 {
		if err := c.Unkeep(t.Context(), "n1"); !errors.Is(err, types.ErrNoAnswer) || errors.Is(err, types.ErrNoAPI) {
			t.Errorf("a failing server: %v", err)
		}
	}
	api.set(func() { api.fault = nodeOnly })
	if err := c.Unkeep(t.Context(), "n1"); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	done()
	if err := c.Unkeep(t.Context(), "n1"); !errors.Is(err, types.ErrNoAPI) {
		t.Errorf("after done: %v", err)
	}
}

func TestWithoutAUsableKubeconfigDialSaysSo(t *testing.T) {
	dir := t.TempDir()
	kubetest.WriteFile(t, filepath.Join(dir, "half"), kubetest.KubeconfigText("https://127.0.0.1:1", "")[:40])
	for _, name := range []string{"none", "half", "."} {
		if _, _, err := Dial(t.Context(), kubetest.Quiet(), filepath.Join(dir, name), types.NoOperations{}); !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func nodeOnly(w http.ResponseWriter, _ *http.Request) {
	n := testNode("n1", ownUUID)
	n.Kind, n.APIVersion, n.ResourceVersion = "Node", "v1", "5"
	reply(w, http.StatusOK, n)
}

func dialConfig(server *httptest.Server) string {
	return kubetest.KubeconfigText(server.URL, caOf(server))
}
