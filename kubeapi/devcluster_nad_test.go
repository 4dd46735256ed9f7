//go:build linux

package kubeapi_test

import (
	"errors"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// attachments has three nodes need and not need the same port at once.
func attachments(t *testing.T, c *devcluster.Cluster) {
	ctx := t.Context()
	api := c.Custom("net-attach-def").Namespace(kubeapi.Namespace)
	agents := []*agent{newAgent(t, c, 0), newAgent(t, c, 2), newAgent(t, c, 7)} // which no story cuts off
	owner := func(i int) types.Node { return types.Node{Name: c.Nodes[i].Name, UID: "uid-" + c.Nodes[i].Name} }
	all := func(do func(i int, a *agent) error) {
		t.Helper()
		errs := make([]error, len(agents))
		var racing sync.WaitGroup
		for i, a := range agents {
			racing.Go(func() { errs[i] = do(i, a) })
		}
		racing.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	row := func() types.NAD {
		t.Helper()
		rows, err := agents[0].NADs(ctx)
		if err != nil || len(rows) != 1 {
			t.Fatalf("listed are %+v, %v", rows, err)
		}
		return rows[0]
	}
	for range 10 {
		all(func(i int, a *agent) error { return a.EnsureNAD(ctx, "eth7", owner(i)) })
		if r := row(); len(r.Owners) != 3 || r.Altered || r.Unowned {
			t.Fatalf("shared by three it is %+v", r)
		}
		// Two let go while the third one says again that it needs it.
		all(func(i int, a *agent) error {
			if i == 2 {
				return a.EnsureNAD(ctx, "eth7", owner(i))
			}
			return a.ReleaseNAD(ctx, "eth7", map[string]string{owner(i).Name: ""}, false)
		})
		if r := row(); len(r.Owners) != 1 || r.Owners[owner(2).Name] != owner(2).UID {
			t.Fatalf("needed by one it is %+v", r)
		}
		// The last one lets go while another one comes.
		all(func(i int, a *agent) error {
			if i == 0 {
				return a.EnsureNAD(ctx, "eth7", owner(i))
			}
			return a.ReleaseNAD(ctx, "eth7", map[string]string{owner(2).Name: owner(2).UID}, false)
		})
		if r := row(); len(r.Owners) != 1 || r.Owners[owner(0).Name] == "" {
			t.Fatalf("needed by another one it is %+v", r)
		}
		all(func(_ int, a *agent) error {
			return a.ReleaseNAD(ctx, "eth7", map[string]string{owner(0).Name: ""}, false)
		})
		if _, err := api.Get(ctx, "host-eth7", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("needed by nobody it is there: %v", err)
		}
	}
	if err := agents[0].EnsureNAD(ctx, "eth7", owner(0)); err != nil {
		t.Fatal(err)
	}
	alter := []byte(`{"metadata":{"labels":{"mine":"too"}},"spec":{"config":"{}"}}`)
	if _, err := api.Patch(ctx, "host-eth7", ktypes.MergePatchType, alter, metav1.PatchOptions{}); err != nil || !row().Altered {
		t.Fatalf("altered it is %+v, %v", row(), err)
	}
	if err := agents[1].EnsureNAD(ctx, "eth7", owner(1)); err != nil {
		t.Fatal(err)
	}
	o, err := api.Get(ctx, "host-eth7", metav1.GetOptions{})
	if err != nil || o.GetLabels()["mine"] != "too" || row().Altered || len(row().Owners) != 2 {
		t.Errorf("put right it is %v, %v", o, err)
	}
	all(func(i int, a *agent) error {
		return a.ReleaseNAD(ctx, "eth7", map[string]string{owner(i).Name: ""}, false)
	})
}
