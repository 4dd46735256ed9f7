//go:build linux

package kubeapi_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// part is what a candidate was told last.
type part struct {
	mu     sync.Mutex
	leader string
	leads  bool
}

func (p *part) set(leader string, leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader, p.leads = leader, leads
}

func (p *part) is(leader string, leads bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leader == leader && p.leads == leads
}

func elections(t *testing.T, c *devcluster.Cluster) {
	run := func(i int) (p *part, stop func() error) {
		a := newAgent(t, c, i)
		ctx, cancel := context.WithCancel(t.Context())
		p, ended := &part{}, make(chan error, 1)
		go func() { ended <- a.Elect(ctx, c.Nodes[i].Name, p.set) }()
		return p, func() error { cancel(); return <-ended }
	}
	first, stopFirst := run(0)
	eventually(t, "the first leads", 5*time.Second, func() bool { return first.is("node-1", true) })
	second, stopSecond := run(2)
	eventually(t, "the second follows", 5*time.Second, func() bool { return second.is("node-1", false) })
	if err := stopFirst(); err != nil || !first.is("", false) {
		t.Errorf("the first ends with %v, %+v", err, first)
	}
	// A candidate looks every 5 s, up to 2.2 times as rarely by chance.
	eventually(t, "the second leads", 13*time.Second, func() bool { return second.is("node-3", true) })
	if err := stopSecond(); err != nil {
		t.Errorf("the second ends with %v", err)
	}
	lease, err := c.Client().CoordinationV1().Leases(kubeapi.Namespace).Get(t.Context(), "eve-kube-stats-leader", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("lease is %+v, %v", lease, err)
	}
}

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
		eventually(t, fault.String()+" is known", fault.known, func() bool { return !a.status().Answers() })
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
