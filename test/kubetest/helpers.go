package kubetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// At is a minute of one fixed hour.
func At(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

// TestPod is a pod on a node.
func TestPod(namespace, name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// KubeconfigText is a kubeconfig for a server and the line of its authority.
func KubeconfigText(server, ca string) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster: {%s server: %q}
  name: default
contexts:
- context: {cluster: default, user: default}
  name: default
current-context: default
kind: Config
users:
- name: default
  user: {token: secret-token}
`, ca, server)
}

// WriteFile writes a file that its owner alone may read.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WaitFor waits for what takes up to quiet on a quiet machine; other tests may
// have both processors.
func WaitFor(t *testing.T, what string, quiet time.Duration, ok func() bool) {
	t.Helper()
	limit := 4 * quiet
	for end := time.Now().Add(limit); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// Heap is what is in use after the garbage is gone.
func Heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Keys returns the keys of m in order.
func Keys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Quiet is a log that is discarded.
func Quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// kubelet is what one measures.
type kubelet struct {
	stats      types.KubeletStats
	containers map[types.ContainerID]types.ContainerSample
}

// Measure makes the kubelet of a node answer from now on. One that nobody made
// answer refuses connections.
func (c *Cluster) Measure(node string, stats types.KubeletStats, containers map[types.ContainerID]types.ContainerSample) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.kubelets == nil {
		c.held.kubelets = map[string]kubelet{}
	}
	c.held.kubelets[node] = kubelet{stats, containers}
}

// LoseKubelet makes the kubelet of a node refuse connections.
func (c *Cluster) LoseKubelet(node string) {
	c.world.Lock()
	defer c.world.Unlock()
	delete(c.held.kubelets, node)
}

// KubeletStats (kubeletstats) asks a node's kubelet, whatever the API server does.
func (c *Cluster) KubeletStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	k, err := c.askKubelet(ctx, "kubeletstats", node.Name)
	return k.stats, err
}

// KubeletContainers (kubeletcontainers) asks a node's kubelet, whatever the API
// server does.
func (c *Cluster) KubeletContainers(ctx context.Context, node types.Node) (map[types.ContainerID]types.ContainerSample, error) {
	k, err := c.askKubelet(ctx, "kubeletcontainers", node.Name)
	return k.containers, err
}

// NodeStats (nodestats) asks another node's kubelet, whatever the API server does.
func (c *Cluster) NodeStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	k, err := c.askKubelet(ctx, "nodestats", node.Name)
	return k.stats, err
}

func (c *Cluster) askKubelet(ctx context.Context, verb, node string) (kubelet, error) {
	c.mu.Lock()
	c.calls = append(c.calls, Call{At: time.Now(), Verb: verb, Object: node})
	latency, fail := c.latency, c.fails[verb]
	c.mu.Unlock()
	if err := pass(ctx, latency); err != nil {
		return kubelet{}, err
	}
	if fail != nil {
		return kubelet{}, fail
	}
	return c.kubelet(node)
}

func (c *Cluster) kubelet(node string) (kubelet, error) {
	c.world.Lock()
	defer c.world.Unlock()
	k, ok := c.held.kubelets[node]
	if !ok {
		return kubelet{}, fmt.Errorf("ask the kubelet of node %s: connection refused", node)
	}
	return k, nil
}
