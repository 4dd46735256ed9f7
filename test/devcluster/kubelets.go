//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetBootID changes the boot id node i reports, as its reboot would. Where there
// is no such Node, it is what the kubelet registers with. A real kubelet reads it
// as it starts, and soon says again what it read if it runs.
func (c *Cluster) SetBootID(ctx context.Context, i int, id string) error {
	if err := c.noteBootID(i, id); err != nil {
		return fmt.Errorf("set the boot id of node %s: %w", c.Nodes[i].Name, err)
	}
	if err := c.report(ctx, i, "bootID", id); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// SetKubeletVersion changes the version that node i reports, as a change of its k3s does.
// A real kubelet reports its own.
func (c *Cluster) SetKubeletVersion(ctx context.Context, i int, version string) error {
	return c.report(ctx, i, "kubeletVersion", version)
}

// report sets a field of what the kubelet says of its node.
func (c *Cluster) report(ctx context.Context, i int, field, value string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"nodeInfo": map[string]any{field: value}}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", field, err)
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, c.Nodes[i].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("set %s of node %s: %w", field, c.Nodes[i].Name, err)
	}
	return nil
}

// KubeletVersion is what the nodes report at their start.
const KubeletVersion = kubeVersion + "+k3s1"

// StartKubelet starts the kubelet of node i, unless it runs. It registers its
// Node where that was deleted. The node is ready a second or two later. A real
// node is switched on, if it is not.
func (c *Cluster) StartKubelet(i int) error {
	if c.real != "" {
		c.hosts[i].power.Lock()
		defer c.hosts[i].power.Unlock()
		if err := c.switchOn(i); err != nil {
			return err
		}
	}
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	if c.kubelets[i] != nil {
		return nil
	}
	return c.runKubelet(i)
}

// runKubelet registers node i and runs its kubelet. kubeletsMu is held.
func (c *Cluster) runKubelet(i int) error {
	if err := c.register(i); err != nil {
		return err
	}
	p := &process{name: "kubelet-" + c.Nodes[i].Name}
	p.failed = func(err error) { c.againKubelet(i, p, err) }
	program, args := c.bin.path("kwok"), c.kubeletArgs(i)
	if c.hosts != nil {
		p.in = c.hosts[i].space
	}
	if c.real != "" {
		p.in, p.apart = c.hosts[i].real, true
		program, args = c.nodePrograms.path("devnode"), c.realKubeletArgs(i)
	}
	if err := c.crew.launch(p, program, args...); err != nil {
		return err
	}
	c.kubelets[i] = p
	return c.startAnswering(i)
}

// StopKubelet kills the kubelet of node i, if it runs. The controller manager
// notices after 16 s; until then nothing on the node changes any more. On a real
// node the containers go on.
func (c *Cluster) StopKubelet(i int) {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	if c.kubelets[i] != nil {
		c.crew.kill(c.kubelets[i])
		c.kubelets[i] = nil
	}
	c.stopAnswering(i)
}

// register makes the Node, unless it is there, and deletes the lease of a
// kubelet that died: a real one goes on with its own, ours would wait for its
// end.
func (c *Cluster) register(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := c.Nodes[i]
	n.BootID = c.bootIDs[i]
	_, err := c.client.CoreV1().Nodes().Create(ctx, c.nodeObject(n), metav1.CreateOptions{})
	switch {
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create node %s: %w", n.Name, err)
	case c.real != "":
		return nil
	case err != nil:
		if err := c.report(ctx, i, "bootID", n.BootID); err != nil {
			return err
		}
	}
	err = c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the lease of node %s: %w", n.Name, err)
	}
	return nil
}

// LoseNode makes node i not ready at once, as the controller manager does some
// time after the death of a kubelet. A living kubelet makes it ready again.
func (c *Cluster) LoseNode(ctx context.Context, i int) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
		Message: "Kubelet stopped posting node status.", LastTransitionTime: now, LastHeartbeatTime: now,
	}}}})
	if err != nil {
		return fmt.Errorf("encode a node condition: %w", err)
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, c.Nodes[i].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("lose node %s: %w", c.Nodes[i].Name, err)
	}
	return nil
}

// CutNode cuts node i off: its agent is refused and its kubelet is dead. A host
// loses its cable, and all goes on there.
func (c *Cluster) CutNode(i int) error {
	if c.hosts != nil {
		return c.unplug(i)
	}
	c.StopKubelet(i)
	return c.SetNodeFault(i, Refused)
}

// HealNode undoes CutNode.
func (c *Cluster) HealNode(i int) error {
	if c.hosts != nil {
		return c.plugIn(i)
	}
	return errors.Join(c.SetNodeFault(i, None), c.StartKubelet(i))
}
