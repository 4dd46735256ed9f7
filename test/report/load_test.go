//go:build linux

package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/seeds"
)

const (
	crowd      = "crowd" // a namespace of pods that are only counted
	appPods    = 30
	crowdPods  = 10
	edges      = 4 // Nodes that nobody plays
	volumes    = 6 // the odd ones have snapshots that change, the even ones replicas and sizes
	machines   = 5
	userPorts  = 6
	perSecond  = 20
	hands      = 5
	firstPort  = 30100
	gibibyte   = 1 << 30
	longMoment = 10 * time.Second
)

// load changes the cluster all the time. Nearly every value it writes is new, so
// that an old one is known.
type load struct {
	cluster *devcluster.Cluster
	number  atomic.Int64
	changes atomic.Int64

	mu     sync.Mutex
	errs   []error
	killed map[string]bool // pods that are gone
}

func podName(i int) string { return fmt.Sprintf("app-%02d", i) }

// arrange makes everything that will change.
func (l *load) arrange(ctx context.Context, c *devcluster.Cluster) error {
	l.cluster, l.killed = c, map[string]bool{}
	errs := []error{c.InstallLonghorn(ctx)}
	_, err := c.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowd}}, metav1.CreateOptions{})
	errs = append(errs, err)
	for i := range appPods {
		errs = append(errs, c.CreatePod(ctx, devcluster.AppNamespace, podName(i), c.Nodes[i%len(c.Nodes)].Name, running(1)))
	}
	for i := range crowdPods {
		errs = append(errs, c.CreatePod(ctx, crowd, podName(i), "", corev1.PodStatus{Phase: corev1.PodPending}))
	}
	for i := range edges {
		errs = append(errs, c.CreateNode(ctx, edge(i), ready(corev1.ConditionTrue)))
	}
	errs = append(errs, each(volumes, func(i int) error {
		name := volume(i)
		_, err := c.CreateClaim(ctx, name)
		return errors.Join(err, c.CreateVolume(ctx, name, c.Nodes[0].Name, c.Nodes[0].Name, c.Nodes[1].Name, c.Nodes[2].Name),
			c.CreateSnapshot(ctx, name, name+"-snap", gibibyte))
	}))
	for i := range machines {
		errs = append(errs, createMachine(ctx, c, machine(i), "Pending", ""))
	}
	return errors.Join(append(errs, l.arrangeServices(ctx))...)
}

// each does something so many times side by side: some of it waits.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { errs[i] = do(i) })
	}
	done.Wait()
	return errors.Join(errs...)
}

func edge(i int) string    { return fmt.Sprintf("edge-%d", i) }
func volume(i int) string  { return fmt.Sprintf("vol-%d", i) }
func machine(i int) string { return fmt.Sprintf("machine-%d", i) }

func (l *load) arrangeServices(ctx context.Context) error {
	var errs []error
	class := networkingv1.PathTypePrefix
	for i := range userPorts {
		name := fmt.Sprintf("service-%d", i)
		_, err := l.cluster.Client().CoreV1().Services(crowd).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				Type:  corev1.ServiceTypeNodePort,
				Ports: []corev1.ServicePort{{Port: 80, NodePort: firstPort + int32(i), Protocol: corev1.ProtocolTCP}},
			},
		}, metav1.CreateOptions{})
		errs = append(errs, err)
		_, err = l.cluster.Client().NetworkingV1().Ingresses(crowd).Create(ctx, &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ingress-%d", i)},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
				Host: "works", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &class, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: name, Port: networkingv1.ServiceBackendPort{Number: 80},
					}},
				}}}},
			}}},
		}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// run changes things until ctx is done; then what changes by itself goes away.
func (l *load) run(ctx context.Context, rng *rand.Rand) {
	var done sync.WaitGroup
	for range hands {
		own := seeds.Split(rng)
		done.Go(func() {
			tick := time.NewTicker(hands * time.Second / perSecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				l.change(own)
			}
		})
	}
	done.Wait()
	end, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range edges {
		l.say(l.cluster.Client().CoreV1().Nodes().Delete(end, edge(i), metav1.DeleteOptions{}))
	}
}

// change makes one change.
func (l *load) change(rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), longMoment)
	defer cancel()
	n := l.number.Add(1)
	switch d := rng.IntN(100); {
	case d < 35:
		l.say(l.changePod(ctx, rng, n))
	case d < 42:
		l.say(l.replacePod(ctx, rng, n))
	case d < 50:
		l.say(l.cluster.SetPodStatus(ctx, crowd, podName(rng.IntN(crowdPods)), func(s *corev1.PodStatus) { s.Phase = pick(rng, phases) }))
	case d < 62:
		l.say(l.changeNode(ctx, rng))
	case d < 82:
		l.say(l.changeVolume(ctx, rng, n))
	case d < 88:
		l.say(l.changeMachine(ctx, rng))
	default:
		l.say(l.changeService(ctx, rng, n))
	}
	l.changes.Add(1)
}

func (l *load) say(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

var phases = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// take keeps other hands off a pod; false: one is at it.
func (l *load) take(name string, off bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off && l.killed[name] {
		return false
	}
	l.killed[name] = off
	return true
}

func (l *load) changePod(ctx context.Context, rng *rand.Rand, n int64) error {
	name := podName(rng.IntN(appPods))
	if !l.take(name, true) {
		return nil
	}
	defer l.take(name, false)
	status := pick(rng, []func(int64) corev1.PodStatus{running, crashing, creating, evicted})(n)
	return l.cluster.SetPodStatus(ctx, devcluster.AppNamespace, name, func(s *corev1.PodStatus) { *s = status })
}

func (l *load) replacePod(ctx context.Context, rng *rand.Rand, n int64) error {
	i := rng.IntN(appPods)
	if !l.take(podName(i), true) {
		return nil
	}
	defer l.take(podName(i), false)
	at := int64(0)
	err := l.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).Delete(ctx, podName(i), metav1.DeleteOptions{GracePeriodSeconds: &at})
	if err != nil {
		return err
	}
	return l.cluster.CreatePod(ctx, devcluster.AppNamespace, podName(i), l.cluster.Nodes[i%3].Name, running(n))
}

var conditions = []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable}

func (l *load) changeNode(ctx context.Context, rng *rand.Rand) error {
	name := edge(rng.IntN(edges))
	if rng.IntN(4) == 0 {
		return l.patch(l.cluster.Client().CoreV1().Nodes().Patch(ctx, name, k8stypes.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, rng.IntN(2) == 0), metav1.PatchOptions{}))
	}
	states := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}
	return l.cluster.SetNodeConditions(ctx, name, ready(pick(rng, states)), condition(pick(rng, conditions), pick(rng, states)))
}

func (l *load) patch(_ any, err error) error { return err }

// changeVolume changes one source of what is told of a volume: what comes from two
// may be told of two moments.
func (l *load) changeVolume(ctx context.Context, rng *rand.Rand, n int64) error {
	i := rng.IntN(volumes)
	name := volume(i)
	switch {
	case i%2 == 1 && rng.IntN(2) == 0:
		return l.cluster.ResizeSnapshot(ctx, name+"-snap", n)
	case i%2 == 1:
		return l.cluster.SetRobustness(ctx, name, pick(rng, []string{"healthy", "degraded", "faulted", "unknown"}))
	case rng.IntN(2) == 0:
		return l.cluster.FillVolume(ctx, name, n)
	}
	return l.cluster.SetReplicaMode(ctx, name, fmt.Sprintf("%s-r-%d", name, rng.IntN(3)+1), pick(rng, []string{"RW", "WO", "WO", "ERR"}), int(n%100))
}

func (l *load) changeMachine(ctx context.Context, rng *rand.Rand) error {
	text, err := json.Marshal(map[string]any{"status": machineStatus(
		pick(rng, []string{"Pending", "Scheduling", "Running", "Succeeded", "Failed", "Unknown"}), l.cluster.Nodes[rng.IntN(3)].Name)})
	if err != nil {
		return err
	}
	return l.patch(l.cluster.Custom("vmi").Namespace(devcluster.AppNamespace).Patch(
		ctx, machine(rng.IntN(machines)), k8stypes.MergePatchType, text, metav1.PatchOptions{}))
}

func (l *load) changeService(ctx context.Context, rng *rand.Rand, n int64) error {
	i := rng.IntN(userPorts)
	if rng.IntN(2) == 0 {
		port := firstPort + int64(i) + userPorts*(1+n%100)
		return l.patch(l.cluster.Client().CoreV1().Services(crowd).Patch(ctx, fmt.Sprintf("service-%d", i), k8stypes.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"replace","path":"/spec/ports/0/nodePort","value":%d}]`, port), metav1.PatchOptions{}))
	}
	return l.patch(l.cluster.Client().NetworkingV1().Ingresses(crowd).Patch(ctx, fmt.Sprintf("ingress-%d", i), k8stypes.JSONPatchType,
		fmt.Appendf(nil, `[{"op":"replace","path":"/spec/rules/0/http/paths/0/backend/service/port/number","value":%d}]`, n%60000+1), metav1.PatchOptions{}))
}
