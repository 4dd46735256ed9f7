//go:build linux

package report

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// known is a cluster in which everything is there in every state.
type known struct{ cluster *devcluster.Cluster }

// weighing is a namespace of a user.
const weighing = "weighing"

func (k *known) arrange(ctx context.Context, c *devcluster.Cluster) error {
	k.cluster = c
	return errors.Join(
		c.InstallLonghorn(ctx), k.arrangeDaemons(ctx, c),
		c.CreateDaemon(ctx, "engine-image-ei-1", true), // storage has failed while one has none of its pods
		k.arrangePods(ctx, c), k.arrangeVolumes(ctx), k.arrangeMachines(ctx),
		k.arrangeServices(ctx), k.arrangeIngresses(ctx), k.arrangeNodes(ctx),
	)
}

// arrangeNodes has a node of each kind: one under pressure, one that is cordoned,
// and some that nobody plays.
func (k *known) arrangeNodes(ctx context.Context) error {
	c := k.cluster
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	_, err := c.Client().CoreV1().Nodes().Patch(ctx, c.Nodes[2].Name, k8stypes.MergePatchType, cordon, metav1.PatchOptions{})
	return errors.Join(
		err,
		c.SetNodeConditions(ctx, c.Nodes[1].Name, condition(corev1.NodeMemoryPressure, corev1.ConditionTrue),
			condition(corev1.NodeDiskPressure, corev1.ConditionTrue), condition(corev1.NodePIDPressure, corev1.ConditionTrue),
			condition(corev1.NodeNetworkUnavailable, corev1.ConditionTrue)),
		c.CreateNode(ctx, "node-not-ready", ready(corev1.ConditionFalse)),
		c.CreateNode(ctx, "node-not-reachable", ready(corev1.ConditionUnknown), condition(corev1.NodeMemoryPressure, corev1.ConditionUnknown)),
	)
}

// beat keeps the node that is not ready from being taken for lost, until ctx is
// done.
func (k *known) beat(ctx context.Context) error {
	since := metav1.Now()
	for pause(ctx, 3*time.Second) {
		sick := ready(corev1.ConditionFalse)
		sick.LastTransitionTime = since
		if err := k.cluster.SetNodeConditions(ctx, "node-not-ready", sick); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// arrangePods has an application pod in each state, a launcher's beside them and
// pods of another namespace.
func (k *known) arrangePods(ctx context.Context, c *devcluster.Cluster) error {
	_, err := c.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: weighing}}, metav1.CreateOptions{})
	errs := []error{err}
	node := c.Nodes[0].Name
	for name, status := range map[string]corev1.PodStatus{
		"running":   running(3),
		"creating":  creating(0),
		"crashing":  crashing(17),
		"evicted":   evicted(0),
		"succeeded": {Phase: corev1.PodSucceeded, ContainerStatuses: container(0, ended(0, "Completed"))},
		"failed":    {Phase: corev1.PodFailed, ContainerStatuses: container(0, ended(137, "OOMKilled"))},
		"erring":    {Phase: corev1.PodFailed, ContainerStatuses: container(0, ended(1, ""))},
		"pulling":   {Phase: corev1.PodPending, ContainerStatuses: container(0, waiting("ImagePullBackOff"))},
	} {
		errs = append(errs, c.CreatePod(ctx, devcluster.AppNamespace, name, node, status))
	}
	errs = append(errs, c.CreatePod(ctx, devcluster.AppNamespace, "unschedulable", "", corev1.PodStatus{
		Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
		}},
	}), c.CreatePod(ctx, devcluster.AppNamespace, "pending", "", corev1.PodStatus{Phase: corev1.PodPending}))
	for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed} {
		errs = append(errs, c.CreatePod(ctx, weighing, fmt.Sprintf("scale-%d", i), node, corev1.PodStatus{Phase: phase}))
	}
	return errors.Join(errs...)
}

func ended(code int32, why string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: why, StartedAt: metav1.NewTime(time.Unix(1e9, 0)), FinishedAt: metav1.NewTime(time.Unix(1e9+60, 0)),
	}}
}

func (k *known) arrangeDaemons(ctx context.Context, c *devcluster.Cluster) error {
	return errors.Join(c.CreateDaemon(ctx, "longhorn-manager", false), c.CreateDaemon(ctx, "longhorn-csi-plugin", false))
}

// arrangeVolumes has one that is whole, one of which a copy is made, one that is
// lost, one that is detached, one that was released, and claims without volumes.
func (k *known) arrangeVolumes(ctx context.Context) error {
	c := k.cluster
	first, second, third := c.Nodes[0].Name, c.Nodes[1].Name, c.Nodes[2].Name
	errs := []error{
		c.CreateVolume(ctx, "vol-healthy", first, first, second, third),
		c.CreateVolume(ctx, "vol-rebuilding", second, first, second, third),
		c.CreateVolume(ctx, "vol-degraded", second, first, second),
		c.CreateVolume(ctx, "vol-faulted", third, third),
		c.CreateVolume(ctx, "vol-detached", "", first, second),
		c.CreateVolume(ctx, "vol-released", "", first),
	}
	claimed := []string{"vol-healthy", "vol-rebuilding", "vol-degraded", "vol-faulted", "vol-detached", "vol-released"}
	errs = append(errs, each(len(claimed), func(i int) error { return k.claim(ctx, c, claimed[i]) }))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range []string{"vol-rebuilding", "vol-degraded", "vol-faulted"} {
		if err := c.WaitVolume(ctx, name, "attached"); err != nil {
			return err
		}
	}
	return errors.Join(
		c.CreateSnapshot(ctx, "vol-healthy", "snap-1", 1000),
		c.CreateSnapshot(ctx, "vol-healthy", "snap-2", 200),
		c.CreateSnapshot(ctx, "vol-healthy", "snap-3-volume-head", 7),
		c.SetReplicaMode(ctx, "vol-rebuilding", "vol-rebuilding-r-3", "WO", 42),
		c.SetReplicaMode(ctx, "vol-degraded", "vol-degraded-r-1", "ERR", 0),
		c.SetReplicaMode(ctx, "vol-faulted", "vol-faulted-r-1", "ERR", 0),
		c.SetRobustness(ctx, "vol-faulted", "faulted"),
		c.ReleaseVolume(ctx, "vol-released"),
		k.emptyClaim(ctx, "vol-pending-pvc-0", devcluster.LonghornDriver),
		k.emptyClaim(ctx, "elsewhere-pvc-0", "somebody.else"),
	)
}

func (k *known) claim(ctx context.Context, c *devcluster.Cluster, volume string) error {
	_, err := c.CreateClaim(ctx, volume)
	return err
}

// emptyClaim is one whose volume nobody makes.
func (k *known) emptyClaim(ctx context.Context, name, provisioner string) error {
	class := "nobody"
	_, err := k.cluster.Client().CoreV1().PersistentVolumeClaims(devcluster.AppNamespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": provisioner}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		},
	}, metav1.CreateOptions{})
	return err
}

// arrangeMachines has an instance in each phase, and one with a launcher.
func (k *known) arrangeMachines(ctx context.Context) error {
	var errs []error
	for name, phase := range map[string]string{
		"vm-pending": "Pending", "vm-scheduling": "Scheduling", "vm-running": "Running", "vm-succeeded": "Succeeded",
		"vm-failed": "Failed", "vm-unknown": "Unknown", "vm-later": "WaitingForSync",
	} {
		errs = append(errs, createMachine(ctx, k.cluster, name, phase, k.cluster.Nodes[0].Name))
	}
	_, err := k.cluster.CreateVM(ctx, devcluster.App{Name: "real", Node: k.cluster.Nodes[0].Name, Required: true})
	return errors.Join(append(errs, err)...)
}

// arrangeServices has those that count and those that do not.
func (k *known) arrangeServices(ctx context.Context) error {
	var errs []error
	services := map[string]corev1.ServiceSpec{
		weighing + "/cluster":                            {Ports: []corev1.ServicePort{port("http", 80, 0)}},
		weighing + "/node":                               {Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{port("http", 80, 30900), port("metrics", 9100, 30911)}},
		weighing + "/balancer":                           {Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "172.28.40.66", Ports: []corev1.ServicePort{port("http", 80, 30912)}},
		weighing + "/balancer-nowhere":                   {Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{port("http", 80, 30913)}},
		weighing + "/balancer-external":                  {Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"172.28.40.67"}, Ports: []corev1.ServicePort{port("http", 80, 30914)}},
		weighing + "/balancer-inside":                    {Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "10.43.7.7", Ports: []corev1.ServicePort{port("http", 80, 30915)}},
		devcluster.AppNamespace + "/of-an-application":   {Ports: []corev1.ServicePort{port("http", 80, 0)}},
		devcluster.LonghornNamespace + "/of-the-storage": {Ports: []corev1.ServicePort{port("http", 80, 0)}},
		"cattle-system/agent":                            {Ports: []corev1.ServicePort{port("https", 443, 0)}},
		"cattle-system/zks-cluster-agent":                {Ports: []corev1.ServicePort{port("https", 443, 0)}},
	}
	_, err := k.cluster.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cattle-system"}}, metav1.CreateOptions{})
	errs = append(errs, err)
	for key, spec := range services {
		namespace, name, _ := strings.Cut(key, "/")
		_, err := k.cluster.Client().CoreV1().Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	_, err = k.cluster.Client().CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubevip"}, Data: map[string]string{"cidr-global": "172.28.40.64/28", "interface-global": "eth0"},
	}, metav1.CreateOptions{})
	return errors.Join(append(errs, err)...)
}

func port(name string, number, node int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, NodePort: node}
}

// arrangeIngresses has one with and one without a certificate. A node's own
// addresses count.
func (k *known) arrangeIngresses(ctx context.Context) error {
	class, exact := networkingv1.PathTypePrefix, networkingv1.PathTypeExact
	path := func(path string, kind *networkingv1.PathType, service string, port networkingv1.ServiceBackendPort) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{Path: path, PathType: kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service, Port: port},
		}}
	}
	rule := func(host string, paths ...networkingv1.HTTPIngressPath) networkingv1.IngressRule {
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths},
		}}
	}
	specs := map[string]networkingv1.IngressSpec{
		"panel": {
			TLS:   []networkingv1.IngressTLS{{Hosts: []string{"panel.works"}, SecretName: "panel"}},
			Rules: []networkingv1.IngressRule{rule("panel.works", path("/", &class, "cluster", networkingv1.ServiceBackendPort{Number: 80}), path("/scales", &exact, "node", networkingv1.ServiceBackendPort{Number: 9100}))},
		},
		"plain": {Rules: []networkingv1.IngressRule{rule("plain.works", path("/", &class, "node", networkingv1.ServiceBackendPort{Name: "metrics"}))}},
	}
	var errs []error
	ingresses := k.cluster.Client().NetworkingV1().Ingresses(weighing)
	for name, spec := range specs {
		made, err := ingresses.Create(ctx, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.10"}, {IP: "172.28.40.66"}, {Hostname: "front.works"}}
		_, err = ingresses.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
