//go:build linux

package kubeapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// servers asks a real API server and a real etcd what a change of k3s has to know.
func servers(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 7) // which no story cuts off
	if err := a.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	// Endpoints are deprecated since Kubernetes 1.33, to be removed in no release yet.
	if err := c.Client().Discovery().RESTClient().Get().AbsPath("/api/v1/namespaces/default/endpoints").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	seen, err := a.DeprecatedAPIs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(seen.APIs, types.DeprecatedAPI{Version: "v1", Resource: "endpoints"}) || seen.StartedAt.IsZero() || time.Since(seen.StartedAt) > 24*time.Hour {
		t.Errorf("the API server says %+v", seen)
	}
	if removed, why := seen.RemovedBy(99, time.Now()); len(removed) != 0 || !strings.Contains(why, "less than 24 hours") {
		t.Errorf("removed are %v, %q", removed, why)
	}

	h, err := k3setcd.Look(t.Context(), c.EtcdURL(7))
	if err != nil {
		t.Fatal(err)
	}
	if h.Version != "3.6.4" || h.Members != 1 || h.Connected != 0 || h.Learner || !h.HasLeader || !h.Leader || h.Size == 0 || h.Quota == 0 || h.Why() != "" {
		t.Errorf("etcd says %+v: %q", h, h.Why())
	}
	s := k3setcd.Snapshots{Server: t.TempDir()}
	whole := snapshotOf(t, c.EtcdURL(7))
	for name, row := range map[string]struct {
		data []byte
		ok   bool
	}{"whole": {whole, true}, "cut": {whole[:len(whole)-512], false}} {
		if err := os.MkdirAll(filepath.Join(s.Server, "db/snapshots"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Server, "db/snapshots", name), row.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context(), name); (err == nil) != row.ok {
			t.Errorf("a real snapshot, %s: %v", name, err)
		}
	}
}

// snapshotOf is what etcd sends for a snapshot, in parts by its JSON gateway.
func snapshotOf(t *testing.T, url string) (data []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v3/maintenance/snapshot", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for parts := json.NewDecoder(bufio.NewReader(answer.Body)); parts.More(); {
		var part struct{ Result struct{ Blob []byte } }
		if err := parts.Decode(&part); err != nil {
			t.Fatal(fmt.Errorf("after %d bytes: %w", len(data), err))
		}
		data = append(data, part.Result.Blob...)
	}
	return data
}
