package kubeapi

import (
	"context"

	"github.com/zedkube/zedkube/types"
)

// KubeletStats asks a node's kubelet at the node's own address.
func (c *Client) KubeletStats(context.Context, types.Node) (types.KubeletStats, error) {
	return types.KubeletStats{}, types.ErrNoAPI
}

// KubeletContainers asks it for what KubeletStats leaves out of containers; of
// a pod it has the network.
func (c *Client) KubeletContainers(context.Context, types.Node) (map[types.ContainerID]types.ContainerSample, error) {
	return nil, types.ErrNoAPI
}

// NodeStats asks a node's kubelet through the API server, for CPU and memory
// only.
func (c *Client) NodeStats(context.Context, string) (types.KubeletStats, error) {
	return types.KubeletStats{}, types.ErrNoAPI
}
