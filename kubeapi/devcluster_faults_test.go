//go:build linux

package kubeapi_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// trouble is something that befalls node i for a while.
type trouble struct {
	name   string
	begin  func(c *devcluster.Cluster, i int) error
	heal   func(c *devcluster.Cluster, i int, kubeconfig string) error // nil: no fault any more
	silent bool                                                        // the server is rightly called silent meanwhile
}

// fault is a trouble of the node's proxy, with its watches ended so that it is
// met by all.
func fault(f devcluster.Fault) func(*devcluster.Cluster, int) error {
	return func(c *devcluster.Cluster, i int) error {
		defer c.CutWatches(i)
		return c.SetNodeFault(i, f)
	}
}

var mild = []trouble{
	{name: "slow", begin: fault(devcluster.Slow(2 * time.Second))},
	{name: "429", begin: fault(devcluster.Status(429))},
	{name: "watches are cut", begin: func(c *devcluster.Cluster, i int) error { c.CutWatches(i); return nil }},
	{name: "expired", begin: fault(devcluster.Expired)},
	{name: "503 for watches", begin: fault("503,only=watch")},
}

var failing = []trouble{
	{name: "500", begin: fault(devcluster.Status(500)), silent: true},
	{name: "503", begin: fault(devcluster.Status(503)), silent: true},
	// The answer with an empty list of Leases has fewer than 64 bytes; none has so few as 16.
	{name: "reset in every answer", begin: fault(devcluster.Reset(16)), silent: true},
	{name: "reset in long answers", begin: fault(devcluster.Reset(2000))},
}

var foreign = []trouble{
	{
		name: "a node cut off", begin: (*devcluster.Cluster).CutNode, silent: true,
		heal: func(c *devcluster.Cluster, i int, _ string) error { return c.HealNode(i) },
	},
	{
		name: "a new authority", begin: (*devcluster.Cluster).RotateCA, silent: true,
		heal: func(c *devcluster.Cluster, i int, kubeconfig string) error {
			own, err := c.AgentKubeconfig(i)
			return errors.Join(err, os.WriteFile(kubeconfig, own, 0o600))
		},
	},
	{
		name: "a certificate of tomorrow", silent: true,
		begin: func(c *devcluster.Cluster, i int) error { return c.SetCertSkew(i, 24*time.Hour) },
		heal:  func(c *devcluster.Cluster, i int, _ string) error { return c.SetCertSkew(i, 0) },
	},
	{
		name: "a certificate of yesterday", silent: true,
		begin: func(c *devcluster.Cluster, i int) error { return c.SetCertSkew(i, -24*time.Hour) },
		heal:  func(c *devcluster.Cluster, i int, _ string) error { return c.SetCertSkew(i, 0) },
	},
}

// suffer has an agent on node i meet the troubles one after the other.
func suffer(t *testing.T, c *devcluster.Cluster, i int, troubles []trouble) {
	a := newAgent(t, c, i)
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	eventually(t, "all pods are counted", 5*time.Second, func() bool { return a.counted() })
	var files []int
	for n, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) { meet(t, c, a, i, n, trouble) })
		fds, _ := os.ReadDir("/proc/self/fd")
		files = append(files, len(fds))
	}
	t.Logf("files open after each: %v", files)
}

func meet(t *testing.T, c *devcluster.Cluster, a *agent, i, n int, trouble trouble) {
	const lasts = 6 * time.Second
	tables := a.watched()
	before, begin := c.NodeTraffic(i), time.Now()
	if err := trouble.begin(c, i); err != nil {
		t.Fatal(err)
	}
	change(t, c, i, n)
	for known := false; time.Since(begin) < lasts; time.Sleep(50 * time.Millisecond) {
		s := a.status()
		if s.Answers() != trouble.silent {
			known = true
		} else if known || !trouble.silent || time.Since(begin) > lasts/2 {
			t.Errorf("after %v the status is %+v", time.Since(begin), s)
			break
		}
	}
	time.Sleep(time.Until(begin.Add(lasts)))
	met := c.NodeTraffic(i)
	t.Logf("in %v %d requests, %d connections: %s", lasts, met.Requests-before.Requests,
		met.Connections-before.Connections, a.status().Reason)
	// At 30 a minute, after each table has asked for a stream, a list and a watch,
	// and once more because the server answered another, and a doubt was settled. An
	// answer that is cut takes those on the same connection with it, the more of them
	// the slower the machine is.
	bound := 3 + 5*tables + 2
	if asked := max(met.Requests-before.Requests, met.Connections-before.Connections); asked > bound {
		t.Errorf("%d requests in %v by %d tables", asked, lasts, tables)
	}

	heal := trouble.heal
	if heal == nil {
		heal = func(c *devcluster.Cluster, i int, _ string) error { return c.SetNodeFault(i, devcluster.None) }
	}
	begin = time.Now()
	if err := heal(c, i, a.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	var wrong error
	for ; time.Since(begin) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		if wrong = agrees(t, c, a, i); wrong == nil {
			t.Logf("right again after %v", time.Since(begin).Round(100*time.Millisecond))
			return
		}
	}
	t.Errorf("5 s after the end: %v", wrong)
}

// watched is how many tables follow what the cluster has: without Longhorn, which
// another story installs, some do not.
func (a *agent) watched() int {
	n := 3 // own pods, Leases and replica sets, of which nothing is told
	for _, s := range a.tables.All() {
		if !s.Absent {
			n++
		}
	}
	return n
}

// change changes what the tables hold: a pod of the node comes, the one of the
// trouble before goes, a node boots.
func change(t *testing.T, c *devcluster.Cluster, i, n int) {
	none := int64(0)
	err := c.SetBootID(t.Context(), i, fmt.Sprintf("boot-%d", n))
	_, created := c.CreateVM(t.Context(), devcluster.App{Name: fmt.Sprintf("suffer-%d-%d", i, n), Node: c.Nodes[i].Name, Required: true})
	pods := c.Client().CoreV1().Pods(kubeapi.Namespace)
	list, listed := pods.List(t.Context(), metav1.ListOptions{LabelSelector: fmt.Sprintf("app=suffer-%d-%d", i, n-1)})
	if err := errors.Join(err, created, listed); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if err := pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
	}
}

// agrees says in what the tables differ from the lists of the cluster. Others
// change the cluster meanwhile: what differs is that only while it lasts.
func agrees(t *testing.T, c *devcluster.Cluster, a *agent, i int) error {
	t.Helper()
	if s := a.status(); !s.Answers() || !s.Synced || !a.counted() {
		return fmt.Errorf("the status is %+v", s)
	}
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	pods, podsErr := c.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err := errors.Join(err, podsErr); err != nil {
		t.Fatal(err)
	}
	boots, own, app := map[string]string{}, map[string]string{}, map[string]string{}
	all := map[string]types.KubePodNameSpaceInfo{}
	for _, n := range nodes.Items {
		boots[n.Name] = n.Status.NodeInfo.BootID
	}
	for _, p := range pods.Items {
		key, state := p.Namespace+"/"+p.Name, string(p.UID)+string(p.Status.Phase)+p.Status.PodIP
		all[p.Namespace] = counted(all[p.Namespace], p)
		if p.Spec.NodeName == c.Nodes[i].Name {
			own[key] = state
		}
		if p.Namespace == kubeapi.Namespace {
			app[key] = state
		}
	}
	seen := map[string]string{}
	for name, n := range a.nodes.All() {
		seen[name] = n.BootID
	}
	return errors.Join(differs("nodes", seen, boots), differs("pod counts", a.counts.All(), all),
		differs("own pods", podStates(&a.own), own), differs("app pods", podStates(&a.appPods), app))
}

func podStates(table *pubsub.Table[types.Pod]) map[string]string {
	states := map[string]string{}
	for key, p := range table.All() {
		states[key] = p.UID + string(p.Phase) + p.IP
	}
	return states
}

func counted(c types.KubePodNameSpaceInfo, p corev1.Pod) types.KubePodNameSpaceInfo {
	c.Name = p.Namespace
	c.PodCount++
	switch p.Status.Phase {
	case corev1.PodRunning:
		c.PodRunningCount++
	case corev1.PodPending:
		c.PodPendingCount++
	case corev1.PodFailed:
		c.PodFailedCount++
	case corev1.PodSucceeded:
		c.PodSucceededCount++
	}
	return c
}

func differs[T comparable](what string, got, want map[string]T) error {
	if maps.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s are %v, want %v", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
}
