//go:build linux

package kubeapi_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/workload/names"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// namer is the names component of one node.
type namer struct {
	*agent
	apps     pubsub.Table[types.AppNetworkStatus]
	networks pubsub.Table[types.NetworkInstanceStatus]
}

func name(t *testing.T, a *agent) *namer {
	n := &namer{agent: a}
	c := &names.Component{
		Log: a.Log, Pulse: &loop.Pulse{}, Apps: &n.apps, Networks: &n.networks, AppStatus: &pubsub.Table[types.ENClusterAppStatus]{},
		Membership: &a.member, Info: &a.info, Leader: &a.leader, Nodes: &a.nodes, Tables: &a.tables, Allocations: &a.configMaps, DNSServer: &a.dns, DNSRollout: &a.rollout, Kube: a.Client,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	_ = a.member.Publish(types.Global, types.ClusterMembership{
		State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeK3sBase},
	})
	return n
}

// namesShared has three nodes write the addresses of their workloads at once.
func namesShared(t *testing.T, c *devcluster.Cluster) {
	ctx := t.Context()
	system, apps := c.Client().CoreV1().ConfigMaps("kube-system"), c.Client().CoreV1().ConfigMaps(kubeapi.Namespace)
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": "kube-dns"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "coredns", Image: "coredns"}}
	_, err := c.Client().AppsV1().Deployments("kube-system").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = system.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "coredns-custom"}, Data: map[string]string{"site.server": "example.org {\n}\n"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = apps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "eve-ni-foreign-allocations"}, Data: map[string]string{"mine": "x"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	floor, foreign := uuid.New(), uuid.New()
	var agents []*namer
	for _, i := range []int{0, 2, 7} { // which no story cuts off
		n := name(t, newAgent(t, c, i))
		_ = n.networks.Publish(floor.String(), types.NetworkInstanceStatus{DisplayName: "floor"})
		_ = n.networks.Publish(foreign.String(), types.NetworkInstanceStatus{DisplayName: "foreign"})
		agents = append(agents, n)
	}
	_ = agents[0].leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	runs := func(n *namer, name, address string, network uuid.UUID) string {
		id, adapter := uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String(), types.AppNetAdapterStatus{Network: network}
		adapter.AssignedAddresses.IPv4Addrs = []types.AssignedAddr{{Address: net.ParseIP(address)}}
		_ = n.apps.Publish(id, types.AppNetworkStatus{
			DisplayName: name, Activated: true, ConfigInSync: true, KubeApp: &types.KubeAppInfo{Namespace: "shop", OwnerName: name},
			AppNetAdapterList: []types.AppNetAdapterStatus{adapter},
		})
		return id
	}
	runs(agents[1], "hidden", "10.55.9.9", foreign)
	var ids []string
	for i := range 60 {
		ids = append(ids, runs(agents[i%3], fmt.Sprint("pod-", i), fmt.Sprint("10.55.0.", i+1), floor))
	}
	server := func() string {
		m, err := system.Get(ctx, "coredns-custom", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Data["site.server"] != "example.org {\n}\n" {
			t.Fatalf("what others have in it is %+v", m.Data)
		}
		return m.Data["eve-ni.server"]
	}
	coredns := func() *appsv1.Deployment {
		d, err := c.Client().AppsV1().Deployments("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	eventually(t, "all names are published", 20*time.Second, func() bool { return strings.Count(server(), ".shop.floor.internal") == 60 })
	eventually(t, "CoreDNS is to restart", time.Second, func() bool {
		return len(coredns().Spec.Template.Annotations["eve.zededa.com/ni-dns-hash"]) == 64
	})
	m, err := apps.Get(ctx, "eve-ni-foreign-allocations", metav1.GetOptions{})
	if err != nil || len(m.Data) != 1 || len(m.Labels) > 0 || strings.Contains(server(), "hidden") {
		t.Errorf("a ConfigMap of somebody else is %+v, %v", m, err)
	}
	for i, id := range ids {
		_ = agents[i%3].apps.Unpublish(id)
	}
	eventually(t, "no name is left", 80*time.Second, func() bool { return server() == "" })
	eventually(t, "no address is left", time.Second, func() bool {
		_, err := apps.Get(ctx, "eve-ni-floor-allocations", metav1.GetOptions{})
		return err != nil
	})
}
