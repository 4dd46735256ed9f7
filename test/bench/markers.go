package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// markedPods is how many pods are bound to the node at once.
	markedPods = 300
	// binders is how many requests for pods are under way at a time.
	binders = 10
	// markerNetwork is the network instance that every third pod attaches to.
	markerNetwork = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
)

// markers measures from the answer of the API server by which a pod is bound to a
// node, which the kubelet then hears of too, to the marker that the CNI plug-in reads.
func (b *bench) markers(ctx context.Context) error {
	m := b.fleet.Members[0]
	if err := m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.EnableNativeK8SOrchestration = true }); err != nil {
		return err
	}
	instance := types.NetworkInstanceStatus{DisplayName: "Line_1", Type: types.NetworkInstanceLocal, ClusterWide: true}
	if err := m.SetNetwork(markerNetwork, &instance); err != nil {
		return err
	}
	if err := until(ctx, "a marker", 100*time.Millisecond, func() bool { return len(marked(m)) > 0 }); err != nil {
		return err
	}
	began, spent, round := time.Now(), cpuSeconds(m.PID()), 0
	took, err := b.runs(func() ([]time.Duration, error) {
		round++
		return b.bind(ctx, m, fmt.Sprintf("marked-%d-", round))
	})
	if err != nil {
		return err
	}
	cpu := (cpuSeconds(m.PID()) - spent) / time.Since(began).Seconds()
	b.add(fmt.Sprintf("pod bound → marker on disk, %d pods at once, a third of which attach to a network instance", markedPods), "not measured",
		"p99 ≤ 50 ms", "%s", percentiles(took))
	b.add("CPU and RSS of the agent meanwhile", "not measured", "—", "%.1f %% of a CPU, %.0f MB", 100*cpu, residentMB(m.PID()))
	return nil
}

// marked is the names of the markers that are there.
func marked(m *player.Member) []string {
	entries, _ := os.ReadDir(filepath.Join(m.Root, "run/zedkube/kubeapp-net"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// bind creates pods on the first node, and takes them away again. It returns how
// long after its answer each had its marker.
func (b *bench) bind(ctx context.Context, m *player.Member, prefix string) ([]time.Duration, error) {
	api := b.cluster.Client().CoreV1().Pods(metav1.NamespaceDefault)
	var mu sync.Mutex
	bound, failed := map[string]time.Time{}, []error(nil)
	var binding sync.WaitGroup
	for w := range binders {
		binding.Go(func() {
			for i := w; i < markedPods; i += binders {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(prefix, i)},
					Spec: corev1.PodSpec{
						NodeName: b.cluster.Nodes[0].Name, AutomountServiceAccountToken: new(bool),
						Containers: []corev1.Container{{Name: "app", Image: "app"}},
					},
				}
				if i%3 == 0 {
					pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "eve-kube-app/ni-line-1"}
				}
				_, err := api.Create(ctx, pod, metav1.CreateOptions{})
				mu.Lock()
				bound[metav1.NamespaceDefault+"_"+pod.Name] = time.Now()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	seen := map[string]time.Time{}
	err := until(ctx, "every marker", time.Millisecond, func() bool {
		now := time.Now()
		for _, name := range marked(m) {
			if _, known := seen[name]; !known && strings.Contains(name, prefix) && !strings.HasPrefix(name, ".") {
				seen[name] = now
			}
		}
		return len(seen) == markedPods
	})
	binding.Wait()
	if err = errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	var took []time.Duration
	for name, at := range bound {
		took = append(took, max(0, seen[name].Sub(at)))
	}
	return took, b.unbind(ctx, prefix)
}

// unbind deletes the pods, and waits until they are gone.
func (b *bench) unbind(ctx context.Context, prefix string) error {
	api := b.cluster.Client().CoreV1().Pods(metav1.NamespaceDefault)
	if err := api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete the pods %s: %w", prefix, err)
	}
	return until(ctx, "the end of the pods "+prefix, time.Second, func() bool {
		list, err := api.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}
