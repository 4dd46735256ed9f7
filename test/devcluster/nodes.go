//go:build linux

package devcluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseSeconds is how long a kubelet's lease holds; it is renewed four times in
// that time.
const leaseSeconds = 8

//go:embed stages.yaml
var ownStages string

// podStages are for pods that have no containers.
//
//go:embed podstages.yaml
var podStages string

// machineStages take the part of virt-handler, with KubeVirt or without.
var (
	//go:embed virthandler.yaml
	virtHandlerStages string
	//go:embed machines.yaml
	machineStages string
)

// Node is one node of the cluster.
type Node struct {
	Name       string // of the Kubernetes node: the device name, lower-case, with - for _
	DeviceName string // of the EVE device
	UUID       string // of the EVE device, and label node-uuid
	IP         string // InternalIP, on loopback; of a host, on the wire
	IPv6       string // of a host, on the wire; "" on loopback
	Management string // of a host: another IPv4 address, for what is not the cluster; "" on loopback
	BootID     string // at the start; SetBootID changes the cluster, not this
}

// makeNode names a node, by a number from 1 on. Nodes are the same in every
// instance, but for their addresses.
func makeNode(number int, ip string) Node {
	device := fmt.Sprintf("Node_%d", number)
	return Node{
		Name:       strings.ReplaceAll(strings.ToLower(device), "_", "-"),
		DeviceName: device,
		UUID:       uuid.NewSHA1(uuid.NameSpaceOID, []byte("device "+device)).String(),
		IP:         ip,
		BootID:     uuid.NewSHA1(uuid.NameSpaceOID, []byte("boot "+device)).String(),
	}
}

func (c *Cluster) startNodes(ctx context.Context) error {
	machines := machineStages
	if c.virt != "" {
		machines = virtHandlerStages
	}
	all := []string{ownStages, machines}
	if c.real == "" {
		all = append(all, podStages)
	}
	if c.answers != nil {
		all = append(all, containerIDStages)
	}
	for i, n := range c.Nodes {
		stages := strings.NewReplacer("OWN-NODE", n.Name, "OWN-IP", n.IP).Replace(strings.Join(all, "---\n"))
		if err := os.WriteFile(c.stagesPath(i), []byte(stages), 0o600); err != nil {
			return fmt.Errorf("write the stages of %s: %w", n.Name, err)
		}
	}
	begin := c.Nodes[:len(c.Nodes)-c.spare]
	var starting sync.WaitGroup
	errs := make([]error, len(begin))
	for i := range begin {
		starting.Go(func() { errs[i] = c.StartKubelet(i) })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := c.makeNamespace(ctx); err != nil {
		return err
	}
	for _, n := range begin {
		if err := poll(ctx, "node "+n.Name, func() bool { return c.takesPods(ctx, n.Name) }); err != nil {
			return err
		}
	}
	return nil
}

// takesPods says whether a node is ready and has lost the taints of one that
// is not.
func (c *Cluster) takesPods(ctx context.Context, name string) bool {
	node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) > 0 {
		return false
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// object is the node as a k3s server would register it.
func (n Node) object() *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			corev1.LabelHostname:                    n.Name,
			corev1.LabelOSStable:                    "linux",
			corev1.LabelArchStable:                  "amd64",
			"node-uuid":                             n.UUID,
			"node-role.kubernetes.io/control-plane": "true",
			"node-role.kubernetes.io/etcd":          "true",
		}, Annotations: map[string]string{
			"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		}},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: n.IP},
				{Type: corev1.NodeHostName, Address: n.Name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				BootID:                  n.BootID,
				MachineID:               strings.ReplaceAll(n.UUID, "-", ""),
				SystemUUID:              n.UUID,
				KubeletVersion:          KubeletVersion,
				ContainerRuntimeVersion: "containerd://2.1.5-k3s1",
				KernelVersion:           "6.12.0",
				OSImage:                 "EVE",
				OperatingSystem:         "linux",
				Architecture:            "amd64",
			},
		},
	}
}

func (c *Cluster) stagesPath(i int) string {
	return filepath.Join(c.Dir, "stages-"+c.Nodes[i].Name+".yaml")
}

func (c *Cluster) kubeletArgs(i int) []string {
	n, admin, port := c.Nodes[i], "admin", kubeletPort
	if c.answers != nil {
		port = answersPort
	}
	if c.hosts != nil {
		admin += c.hosts[i].seat.suffix
	}
	args := []string{
		"--kubeconfig=" + c.kubeconfigPath(admin),
		"--manage-all-nodes=false",
		"--manage-single-node=" + n.Name,
		"--node-ip=" + n.IP,
		fmt.Sprintf("--node-port=%d", port),
		fmt.Sprintf("--server-address=%s:%d", n.IP, kubeletPort),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		fmt.Sprintf("--cidr=10.42.%d.0/22", 4*i),
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
		"--config=" + c.stagesPath(i),
	}
	for _, name := range stageFiles {
		args = append(args, "--config="+c.bin.path(filepath.Base(name)))
	}
	return args
}
