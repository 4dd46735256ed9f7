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

// LonghornNamespace is where the objects of Longhorn are. A cluster has it from
// InstallLonghorn on.
const LonghornNamespace = "longhorn-system"

const (
	longhornAPI  = "longhorn.io/v1beta2"
	longhornDisk = "default-disk"
	volumeBytes  = "10737418240" // Longhorn writes sizes as strings
)

// InstallLonghorn makes what Longhorn has when it is idle: its namespace, a
// Longhorn node with one disk for every node, and the drain policy at its
// default. There are no pods. It may be called again.
func (c *Cluster) InstallLonghorn(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: LonghornNamespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", LonghornNamespace, err)
	}
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, c.createLonghorn(ctx, "lhn", "Node", n.Name, nil, map[string]any{"spec": map[string]any{
			"name": n.Name, "allowScheduling": true, "evictionRequested": false,
			"disks": map[string]any{longhornDisk: map[string]any{
				"type": "filesystem", "path": "/persist/vault/volumes", "allowScheduling": true,
				"evictionRequested": false, "storageReserved": int64(0),
			}},
		}}))
	}
	return errors.Join(append(errs, c.createLonghorn(ctx, "lhs", "Setting", "node-drain-policy", nil, map[string]any{
		"value": "block-if-contains-last-replica",
	}))...)
}

// CreateVolume creates a Longhorn volume of that name with an engine <name>-e-0
// and replicas <name>-r-1, -r-2 and so on, one on each node of replicasOn, and
// says that the claim <name>-pvc-0 of the applications' namespace is bound to
// it. It is attached to node and healthy some moments later; "" leaves it
// detached, as one that was healthy before. The volume follows its spec.nodeID and the others their
// spec.desireState, each as long as the kubelet of its node lives; they do not
// follow each other, and what else a test writes into a status stays.
func (c *Cluster) CreateVolume(ctx context.Context, name, node string, replicasOn ...string) error {
	if len(replicasOn) == 0 {
		return fmt.Errorf("create volume %s: no replicas", name)
	}
	owner, desired := node, "running"
	if node == "" {
		owner, desired = replicasOn[0], "stopped"
	}
	instance := func(on string) map[string]any {
		return map[string]any{
			"volumeName": name, "volumeSize": volumeBytes, "nodeID": on, "desireState": desired,
			"image": "longhornio/longhorn-engine:v1.9.1", "dataEngine": "v1", "active": true,
		}
	}
	volume := map[string]any{"spec": map[string]any{
		"size": volumeBytes, "numberOfReplicas": int64(len(replicasOn)), "nodeID": node, "frontend": "blockdev",
		"dataEngine": "v1", "accessMode": "rwo", "backupTargetName": "default",
	}}
	if err := c.createLonghorn(ctx, "lhv", "Volume", name, map[string]string{"longhornvolume": name}, volume); err != nil {
		return err
	}
	addresses := map[string]any{}
	for i, on := range replicasOn {
		replica := fmt.Sprintf("%s-r-%d", name, i+1)
		addresses[replica] = c.nodeIP(on) + ":10000"
		spec := instance(on)
		spec["engineName"], spec["diskID"], spec["failedAt"] = name+"-e-0", longhornDisk, ""
		spec["healthyAt"] = time.Now().UTC().Format(time.RFC3339)
		labels := map[string]string{"longhornvolume": name, "longhornnode": on}
		if err := c.createLonghorn(ctx, "lhr", "Replica", replica, labels, map[string]any{"spec": spec}); err != nil {
			return err
		}
	}
	spec := instance(node)
	spec["nodeID"], spec["replicaAddressMap"], spec["frontend"] = owner, addresses, "blockdev"
	labels := map[string]string{"longhornvolume": name, "longhornnode": owner}
	if err := c.createLonghorn(ctx, "lhe", "Engine", name+"-e-0", labels, map[string]any{"spec": spec}); err != nil {
		return err
	}
	return c.bindVolume(ctx, name, owner)
}

// bindVolume writes what the stages do not know: who looks after the volume
// until it is attached, and its claim.
func (c *Cluster) bindVolume(ctx context.Context, name, owner string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"ownerID": owner, "actualSize": 1 << 30,
		"kubernetesStatus": map[string]any{
			"namespace": AppNamespace, "pvName": name, "pvcName": name + "-pvc-0", "pvStatus": "Bound",
		},
	}})
	if err != nil {
		return fmt.Errorf("encode the status of volume %s: %w", name, err)
	}
	_, err = c.Custom("lhv").Namespace(LonghornNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("bind volume %s: %w", name, err)
	}
	return nil
}

// createLonghorn creates an object, unless it is there.
func (c *Cluster) createLonghorn(ctx context.Context, short, kind, name string, labels map[string]string, content map[string]any) error {
	o := object(longhornAPI, kind, metav1.ObjectMeta{Name: name, Namespace: LonghornNamespace, Labels: labels}, content)
	_, err := c.Custom(short).Namespace(LonghornNamespace).Create(ctx, o, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s of Longhorn: %w", kind, name, err)
	}
	return nil
}

// nodeIP returns the address of a node, "" if there is none of that name.
func (c *Cluster) nodeIP(name string) string {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n.IP
		}
	}
	return ""
}
