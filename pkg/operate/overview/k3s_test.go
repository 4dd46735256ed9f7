package overview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhatChangesK3sIsSaid(t *testing.T) {
	const lifecycle, kubeInit, update = "run/zedkube/KubeLifecycle", "run/kube-init/KubeInitStatus", "persist/status/zedagent/KubeClusterUpdateStatus"
	for name, row := range map[string]struct {
		files map[string]any
		want  []string // each a part of a sentence, in their order
	}{
		"nothing is known":             {nil, nil},
		"nothing changes":              {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleIdle, Reason: "k3s stays as it is."}, kubeInit: types.KubeInitStatus{State: "RUNNING", AllComponentsInitialized: true}, update: types.KubeClusterUpdateStatus{Status: types.KubeCompUpdateCompleted}}, nil},
		"k3s waits":                    {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleWaits, Reason: "Node n2 is not Ready.", To: "v1.34.4+k3s1", Nodes: []types.KubeLifecycleNode{{Name: "n2", State: "next"}, {Name: "n1", State: "later"}}}}, []string{"Waits: Node n2 is not Ready.", "Order of the change to v1.34.4+k3s1: n2 next, n1 later."}},
		"the rules refuse it":          {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleRefused, Reason: "It is older."}}, []string{"Refused: It is older."}},
		"a restart waits":              {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleIdle, Restart: types.K3sRestartStatus{Wish: types.RestartUrgent, Reason: "k3s is not restarted yet: node n2 is first.", Announced: "etcd has no quorum"}}}, []string{"n2 is first. Announced: etcd has no quorum."}},
		"a restart is announced":       {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleIdle, Restart: types.K3sRestartStatus{Reason: "k3s is not restarted yet: no quorum; so and so.", Announced: "no quorum"}}}, []string{"yet: no quorum; so and so."}},
		"a restart is under way":       {map[string]any{lifecycle: types.KubeLifecycle{Phase: types.LifecycleChanges, Reason: "k3s is restarted.", Restart: types.K3sRestartStatus{Reason: "k3s is restarted."}}}, []string{"Changes: k3s is restarted."}},
		"the kube container starts":    {map[string]any{kubeInit: types.KubeInitStatus{State: "DEPLOYING"}}, []string{"in state DEPLOYING, and not all is initialized"}},
		"the kube container failed":    {map[string]any{kubeInit: types.KubeInitStatus{State: "BACKOFF", AllComponentsInitialized: true, LastError: "no space"}}, []string{"in state BACKOFF. Its last error: no space"}},
		"a component is updated":       {map[string]any{update: types.KubeClusterUpdateStatus{Component: types.KubeCompLonghorn, Status: types.KubeCompUpdateInProgress}}, []string{"EVE updates component longhorn: in_progress"}},
		"the update of one failed":     {map[string]any{update: types.KubeClusterUpdateStatus{Component: types.KubeCompLonghorn, Status: types.KubeCompUpdateFailed, ErrorDescription: types.ErrorDescription{Error: "timed out"}}}, []string{"component longhorn failed, and it begins no other one: timed out"}},
		"what cannot be read is noted": {map[string]any{lifecycle: "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for dir, v := range row.files {
				raw, err := json.Marshal(v)
				if err == nil {
					err = os.MkdirAll(filepath.Join(root, dir), 0o700)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(root, dir, "global.json"), raw, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			o := Read(root, time.Now())
			if len(o.K3s) != len(row.want) {
				t.Fatalf("%q, want %q", o.K3s, row.want)
			}
			for i, want := range row.want {
				if !strings.Contains(o.K3s[i], want) || strings.HasSuffix(want, ".") && !strings.HasSuffix(o.K3s[i], want) {
					t.Errorf("%q, want %q", o.K3s[i], want)
				}
			}
			if noted := len(o.Unreadable) == 1; noted != strings.HasPrefix(name, "what cannot") {
				t.Errorf("unreadable: %+v", o.Unreadable)
			}
		})
	}
}
