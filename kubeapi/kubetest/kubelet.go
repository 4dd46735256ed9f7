package kubetest

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

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

// NodeStats (nodestats) asks a node's kubelet through the API server.
func (c *Cluster) NodeStats(ctx context.Context, node string) (types.KubeletStats, error) {
	if err := c.enter(ctx, "nodestats", node); err != nil {
		return types.KubeletStats{}, err
	}
	k, err := c.kubelet(node)
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
