//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// crowdWriters is how many objects of a crowd are written at a time.
const crowdWriters = 16

// A crowd has no kubelets, and nobody shall miss them: no controller looks after
// nodes, and as that would take away the taint that new nodes get, they get none.
const (
	noLifecycle = "--controllers=*,-node-lifecycle-controller"
	noTaints    = "--disable-admission-plugins=TaintNodesByCondition"
)

// crowdLabel is on every pod of a crowd.
const crowdLabel = "devcluster-crowd"

// CrowdNode is the name of a node of a crowd, by a number from 0 on.
func CrowdNode(number int) string { return fmt.Sprintf("crowd-%04d", number) }

// CrowdPod is the name of a pod of a crowd, by a number from 0 on.
func CrowdPod(number int) string { return fmt.Sprintf("crowd-pod-%05d-7d9f", number) }

// AddCrowd makes the crowd's nodes and application pods as many as these, and
// never fewer. They are objects alone: nothing plays a kubelet, so the nodes stay
// ready, and the pods run as they were written, spread over the crowd's nodes or,
// without those, over the cluster's own. It takes Options.Crowd, and a minute for
// ten thousand pods.
func (c *Cluster) AddCrowd(ctx context.Context, nodes, pods int) error {
	if !c.crowd {
		return errors.New("add a crowd: the cluster was started without Options.Crowd")
	}
	config := c.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("add a crowd: %w", err)
	}
	if err := each(ctx, c.crowdNodes, nodes, func(i int) error { return addNode(ctx, client, i) }); err != nil {
		return fmt.Errorf("add the nodes of a crowd: %w", err)
	}
	c.crowdNodes = max(c.crowdNodes, nodes)
	err = each(ctx, c.crowdPods, pods, func(i int) error {
		if c.crowdNodes == 0 {
			return addPod(ctx, client, i, c.Nodes[i%len(c.Nodes)].Name)
		}
		on := CrowdNode(i % c.crowdNodes)
		return errors.Join(addPod(ctx, client, i, on), runPod(ctx, client, i))
	})
	if err == nil {
		_, err = c.WaitRunning(ctx, crowdLabel, max(c.crowdPods, pods))
	}
	if err != nil {
		return fmt.Errorf("add the pods of a crowd: %w", err)
	}
	c.crowdPods = max(c.crowdPods, pods)
	return nil
}

// each does it for the numbers from one on up to another, several at a time.
func each(ctx context.Context, from, to int, do func(i int) error) error {
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	numbers := make(chan int)
	var writing sync.WaitGroup
	for range crowdWriters {
		writing.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					failed(err)
				}
			}
		})
	}
	for i := from; i < to && ctx.Err() == nil; i++ {
		numbers <- i
	}
	close(numbers)
	writing.Wait()
	return context.Cause(ctx)
}

func addNode(ctx context.Context, client kubernetes.Interface, i int) error {
	name := CrowdNode(i)
	n := makeNode(i+1, fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 1+i%250))
	n.Name, n.DeviceName = name, name
	n.UUID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
	node := n.object()
	delete(node.Labels, "node-role.kubernetes.io/control-plane")
	delete(node.Labels, "node-role.kubernetes.io/etcd")
	now := metav1.Now()
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		cond := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: now, LastHeartbeatTime: now, Reason: "KubeletIsFine"}
		if kind == corev1.NodeReady {
			cond.Status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, cond)
	}
	// What makes Nodes large is what their kubelets say of images.
	for j := range 30 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("docker.io/rancher/image-%02d@sha256:%s", j, strings.Repeat("5d", 32))},
			SizeBytes: int64(j) << 20,
		})
	}
	return made(client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}))
}

func addPod(ctx context.Context, client kubernetes.Interface, i int, on string) error {
	name := CrowdPod(i)
	domain := uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String() + fmt.Sprintf(".1.%d", i+1)
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: AppNamespace, Labels: map[string]string{
			labelApp: name, labelDomain: domain, crowdLabel: "yes",
		}},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
			Name: "app", Image: AppImage, Resources: corev1.ResourceRequirements{Requests: small, Limits: small},
			Env: []corev1.EnvVar{{Name: "DEVICE", Value: on}, {Name: "DOMAIN", Value: domain}},
		}}},
	}
	return made(client.CoreV1().Pods(AppNamespace).Create(ctx, pod, metav1.CreateOptions{}))
}

// runPod does what a kubelet would.
func runPod(ctx context.Context, client kubernetes.Interface, i int) error {
	now := metav1.NewTime(time.Now())
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, HostIP: "10.0.0.1", PodIP: fmt.Sprintf("10.42.%d.%d", i/250%250, 1+i%250),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Image: AppImage, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			ContainerID: "containerd://" + strings.Repeat("5d", 32), ImageID: AppImage + "@sha256:" + strings.Repeat("5d", 32),
		}},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return made(client.CoreV1().Pods(AppNamespace).Patch(ctx, CrowdPod(i), types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// made forgives what is there already.
func made(_ any, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
