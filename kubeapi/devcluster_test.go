//go:build linux

package kubeapi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// agent is a client on one node of the cluster, with its tables.
type agent struct {
	*kubeapi.Client
	info     pubsub.Table[types.EdgeNodeInfo]
	leader   pubsub.Table[types.KubeLeaderElectInfo]
	nodes    pubsub.Table[types.Node]
	appPods  pubsub.Table[types.Pod]
	issued   pubsub.Table[types.IssuedKubeconfig]
	own      pubsub.Table[types.Pod]
	leases   pubsub.Table[types.Lease]
	api      pubsub.Table[types.APIStatus]
	vmis     pubsub.Table[types.VMI]
	sets     pubsub.Table[types.AppSet]
	disabled pubsub.Table[types.DisabledWorkloads]
	machines pubsub.Table[types.VirtualMachine]
	tables   pubsub.Table[types.TableStatus]
	reported

	member     pubsub.Table[types.ClusterMembership]
	configMaps pubsub.Table[types.NetworkAllocations]
	dns        pubsub.Table[types.DNSServer]
	rollout    pubsub.Table[types.DNSRollout]
	mounts     pubsub.Table[types.MountRecovery]
	attached   pubsub.Table[types.Attachment]
}

func (a *agent) status() types.APIStatus {
	s, _ := a.api.Get(types.Global)
	return s
}

func newAgent(t *testing.T, c *devcluster.Cluster, i int) *agent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	own, err := c.AgentKubeconfig(i)
	if err := errors.Join(err, os.WriteFile(path, own, 0o600)); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	a := &agent{}
	_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: c.Nodes[i].DeviceName, DeviceID: uuid.MustParse(c.Nodes[i].UUID)})
	began := time.Now()
	a.Client = kubeapi.New(kubeapi.Config{
		Uptime: func() time.Duration { return time.Since(began) },
		Log:    log, Kubeconfig: path, Operations: types.NoOperations{}, Info: &a.info, Leader: &a.leader,
		Nodes: &a.nodes, AppPods: &a.appPods, NodePods: &a.own, Leases: &a.leases, API: &a.api,
		VMIs: &a.vmis, Sets: &a.sets, Machines: &a.machines, Disabled: &a.disabled, Tables: &a.tables,
		Membership: &a.member, Allocations: &a.configMaps, DNSServer: &a.dns, DNSRollout: &a.rollout, Issued: &a.issued,
		Mounts: &a.mounts, OwnAttachments: &a.attached, OwnVolumes: &pubsub.Table[types.Volume]{},
	})
	a.fill(a.Client)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually(t, "the tables are whole", 10*time.Second, func() bool { return a.status().Synced && a.status().Answers() })
	return a
}

// patience is how many times longer than a quiet machine needs a test waits for
// what must come: other tests may have both processors.
const patience = 12

// eventually waits for what takes up to quiet on a quiet machine.
func eventually(t *testing.T, what string, quiet time.Duration, ok func() bool) {
	t.Helper()
	within(t, what, patience*quiet, ok)
}

// within waits no longer than is promised.
func within(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// TestAgainstARealAPIServer shares one cluster; each story has a node or an
// application of its own.
func TestAgainstARealAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Nodes: 9, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	stories := map[string]func(*testing.T, *devcluster.Cluster){
		"tables follow nodes and pods":                      tablesFollow,
		"cordons survive conflicts and spare foreign ones":  cordons,
		"an eviction is refused by a budget, then accepted": evictions,
		"what a drain writes on its node":                   drainsNode,
		"two nodes, one lock":                               lockRaces,
		"two candidates, one leader":                        elections,
		"two nodes, one right to repair":                    repairs,
		"applications":                                      applications,
		"volumes are what Longhorn says of them":            volumes,
		"services and ingresses of all kinds":               serves,
		"three nodes, one network attachment":               attachments,
		"three nodes, one plug-in's configuration":          sharesPlugin,
		"three nodes, one zone of names":                    namesShared,
		"an issued kubeconfig works until it is revoked":    issuing,
		"deprecated APIs, and what etcd says of itself":     servers,
		"an agent waits as little as an administrator":      isExempt,
		"a refusing and a hung server heal":                 faults,
		"overload, delays and watches that break":           func(t *testing.T, c *devcluster.Cluster) { suffer(t, c, 3, mild) },
		"failures and answers that are cut":                 func(t *testing.T, c *devcluster.Cluster) { suffer(t, c, 4, failing) },
		"a lost node, another cluster, a wrong clock":       func(t *testing.T, c *devcluster.Cluster) { suffer(t, c, 5, foreign) },
	}
	t.Run("stories", func(t *testing.T) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) { t.Parallel(); story(t, c) })
		}
	})
	t.Run("a node knows who cordoned it", func(t *testing.T) { knowsWhoCordoned(t, c) })
	t.Run("what is kept in Longhorn is put back", func(t *testing.T) { levelsKept(t, c) })
	t.Run("what a report is made of follows", func(t *testing.T) { reportFollows(t, c) })
	t.Run("a node is fenced while it is not Ready", func(t *testing.T) { fences(t, c) })
	t.Run("a node is deleted, a namesake is not", func(t *testing.T) { deletesNode(t, c) })
	t.Run("every permission is needed and none is missing", func(t *testing.T) { permissions(t, c) })
	t.Run("an agent's kubeconfig permits what an agent needs", func(t *testing.T) { agents(t, c) })
}

func tablesFollow(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 2)
	own := c.Nodes[2]
	row, ok := a.nodes.Get(own.Name)
	if !ok || len(a.nodes.All()) != len(c.Nodes) || row.UUID != own.UUID || row.InternalIP != own.IP || !row.Etcd || row.Ready != types.ConditionTrue {
		t.Errorf("node is %+v", row)
	}
	if err := c.SetBootID(t.Context(), 2, "next boot"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the boot id is seen", time.Second, func() bool {
		row, _ := a.nodes.Get(own.Name)
		return row.BootID == "next boot"
	})
	vm, err := c.CreateVM(t.Context(), devcluster.App{Name: "follow-11111-0", Domain: "d.1.1", Node: own.Name, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	key := kubeapi.Namespace + "/" + vm
	eventually(t, "the pod runs in both tables", 10*time.Second, func() bool {
		p, _ := a.own.Get(key)
		q, _ := a.appPods.Get(key)
		return p.Phase == types.PodRunning && p.UID == q.UID && p.AppDomain == "d.1.1" && p.VMI != "" && p.Owner.Kind == "VirtualMachineInstance"
	})
	if n := len(a.counts.All()); n != 0 {
		t.Errorf("a node that does not lead counts the pods of %d namespaces", n)
	}
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	eventually(t, "the leader counts all pods", 3*time.Second, func() bool {
		return a.counted() && a.count(kubeapi.Namespace).PodRunningCount > 0
	})
	none := int64(0)
	if err := c.Client().CoreV1().Pods(kubeapi.Namespace).Delete(t.Context(), vm, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is gone from all tables", 5*time.Second, func() bool {
		_, inOwn := a.own.Get(key)
		_, inApp := a.appPods.Get(key)
		return !inOwn && !inApp
	})
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{})
	eventually(t, "a former leader counts no pods", time.Second, func() bool {
		return len(a.counts.All()) == 0 && !a.counted()
	})
}

func cordons(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 2)
	node, nodes := c.Nodes[2].Name, c.Client().CoreV1().Nodes()
	patch := func(text string) {
		if _, err := nodes.Patch(t.Context(), node, ktypes.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() { // somebody who changes the node all the time
		for i := 0; ctx.Err() == nil; i++ {
			patch(fmt.Sprintf(`{"metadata":{"labels":{"busy":"%d"}}}`, i))
			time.Sleep(5 * time.Millisecond)
		}
	})
	cordon := types.Cordon{Reason: "test", Since: time.Now().UTC().Truncate(time.Second)}
	for range 10 {
		if err := a.Cordon(t.Context(), node, cordon); err != nil {
			t.Fatal(err)
		}
		if err := a.Uncordon(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	busy.Wait()

	if err := a.Cordon(t.Context(), node, cordon); err != nil {
		t.Fatal(err)
	}
	eventually(t, "our cordon is in the table", time.Second, func() bool {
		row, _ := a.nodes.Get(node)
		return row.Unschedulable && row.CordonedBy != nil && row.CordonedBy.By == "zedkube" && row.CordonedBy.Since.Equal(cordon.Since)
	})
	n, err := nodes.Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managed := false
	for _, m := range n.ManagedFields {
		managed = managed || m.Manager == "zedkube-drain"
	}
	if !managed {
		t.Errorf("managers are %+v", n.ManagedFields)
	}
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}

	patch(`{"spec":{"unschedulable":true}}`)
	if err := errors.Join(a.Cordon(t.Context(), node, cordon), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	n, err = nodes.Get(t.Context(), node, metav1.GetOptions{})
	if err != nil || !n.Spec.Unschedulable || len(n.Annotations["zedkube.github.io/cordon"]) > 0 {
		t.Errorf("a foreign cordon became %+v %v, %v", n.Spec, n.Annotations, err)
	}
	patch(`{"spec":{"unschedulable":null}}`)
}
