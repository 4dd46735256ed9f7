//go:build linux

package kubeapi_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func faults(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 1)
	node := c.Nodes[1].Name
	for i, fault := range []struct {
		devcluster.Fault
		known time.Duration
	}{{devcluster.Refused, 12 * time.Second}, {devcluster.Hung, 22 * time.Second}} {
		app := devcluster.App{Name: fmt.Sprintf("fault-%d", i), Node: node, Required: true}
		vm, err := c.CreateVM(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		key := kubeapi.Namespace + "/" + vm
		eventually(t, "the pod runs", 10*time.Second, func() bool { p, _ := a.own.Get(key); return p.Phase == types.PodRunning })

		begin := time.Now()
		if err := c.SetNodeFault(1, fault.Fault); err != nil {
			t.Fatal(err)
		}
		within(t, fault.String()+" is known", fault.known, func() bool { return !a.status().Answers() })
		t.Logf("%v: known after %v: %s", fault, time.Since(begin).Round(time.Millisecond), a.status().Reason)
		if since := a.status().SilentSince; since.Before(begin) || since.Sub(begin) > 10*time.Second {
			t.Errorf("%v since %v, began %v", fault, since, begin)
		}
		none := int64(0)
		if err := c.Client().CoreV1().Pods(kubeapi.Namespace).Delete(t.Context(), vm, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
		next, err := c.CreateVM(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if _, ok := a.own.Get(key); !ok {
			t.Error("the table was emptied")
		}
		begin = time.Now()
		if err := c.SetNodeFault(1, devcluster.None); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the tables are right again", 5*time.Second, func() bool {
			_, old := a.own.Get(key)
			_, now := a.own.Get(kubeapi.Namespace + "/" + next)
			return !old && now && a.status().Synced && a.status().Answers()
		})
		t.Logf("%v: healed after %v", fault, time.Since(begin).Round(time.Millisecond))
	}
}
