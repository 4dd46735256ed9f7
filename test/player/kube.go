package player

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/zedkube/zedkube/test/devcluster"
)

// roleLabels are what k3s puts on the Node of a server once it runs.
var roleLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd"}

// ClusterNode is a device's node in a devcluster; it implements Kube.
type ClusterNode struct {
	Cluster *devcluster.Cluster
	Index   int
}

// Join implements Kube: the control plane of a host and the kubelet run, and k3s
// has labelled the node.
func (n ClusterNode) Join(ctx context.Context, bootID string) ([]byte, error) {
	if err := n.Cluster.StartControlPlane(ctx, n.Index); err != nil {
		return nil, err
	}
	if err := n.Cluster.SetBootID(ctx, n.Index, bootID); err != nil {
		return nil, err
	}
	if err := n.Cluster.StartKubelet(n.Index); err != nil {
		return nil, err
	}
	if err := n.label(ctx, true); err != nil {
		return nil, err
	}
	return n.Cluster.NodeKubeconfig(n.Index), nil
}

// AgentKubeconfig is that of the node's zedkube.
func (n ClusterNode) AgentKubeconfig() ([]byte, error) { return n.Cluster.AgentKubeconfig(n.Index) }

// answersWithin is how long an API server may be away, as while etcd is restored.
const answersWithin = time.Minute

// Leave implements Kube. A reboot takes longer than the controller manager
// needs to notice it: it is told at once, or once the API server answers.
func (n ClusterNode) Leave(ctx context.Context) error {
	if err := n.Cluster.StopNode(n.Index); err != nil {
		return err
	}
	var err error
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, answersWithin, true, func(ctx context.Context) (bool, error) {
		err = n.Cluster.LoseNode(ctx, n.Index)
		return err == nil || apierrors.IsNotFound(err), nil
	})
	if err != nil && !apierrors.IsNotFound(err) { // one that has left has no Node
		return err
	}
	n.Cluster.StopControlPlane(n.Index)
	return nil
}

// apiPort is where the API servers of the cluster's nodes listen.
func (n ClusterNode) apiPort() (int, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(n.Cluster.NodeKubeconfig(n.Index))
	if err != nil {
		return 0, fmt.Errorf("read the kubeconfig of a node: %w", err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return 0, fmt.Errorf("find the API server of a node: %w", err)
	}
	return strconv.Atoi(server.Port())
}

// Forget takes the node's roles away, as if k3s had never run on it. A spare
// host has no Node yet.
func (n ClusterNode) Forget(ctx context.Context) error {
	if err := n.label(ctx, false); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func (n ClusterNode) label(ctx context.Context, on bool) error {
	labels := map[string]any{}
	for _, l := range roleLabels {
		labels[l] = nil
		if on {
			labels[l] = "true"
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	name := n.Cluster.Nodes[n.Index].Name
	_, err = n.Cluster.Client().CoreV1().Nodes().Patch(ctx, name, k8stypes.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label node %s: %w", name, err)
	}
	return nil
}
