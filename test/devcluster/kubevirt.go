//go:build linux

package devcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// KubeVirtNamespace is where KubeVirt is, with Options.KubeVirt.
const KubeVirtNamespace = "kubevirt"

// What virt-handler says about its node: whether it takes machines, and when it
// was last heard of.
const (
	schedulable = "kubevirt.io/schedulable"
	heartbeat   = "kubevirt.io/heartbeat"
)

// kubevirtObjects is the file of what is installed, which kubevirt/objects.go
// prints.
const kubevirtObjects = "kubevirt.json"

// installKubeVirt does what virt-operator does, but for the two programs, where
// they are asked for.
func (c *Cluster) installKubeVirt(ctx context.Context) error {
	if c.virt == "" {
		return nil
	}
	if err := c.writeKubeVirtCredentials(); err != nil {
		return fmt.Errorf("install KubeVirt: %w", err)
	}
	objects, err := c.readKubeVirt()
	if err != nil {
		return fmt.Errorf("install KubeVirt: %w", err)
	}
	for _, o := range objects {
		if err := c.install(ctx, o); err != nil {
			return fmt.Errorf("install KubeVirt: create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	deployed := []byte(`{"status":{"phase":"Deployed","defaultArchitecture":"amd64"}}`)
	_, err = c.Custom("kv").Namespace(KubeVirtNamespace).Patch(ctx, "kubevirt", types.MergePatchType, deployed, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("say that KubeVirt is deployed: %w", err)
	}
	return nil
}

// readKubeVirt reads the objects and makes them this cluster's own.
func (c *Cluster) readKubeVirt() ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(c.virt.path(kubevirtObjects))
	if err != nil {
		return nil, err
	}
	ca := c.read("ca.crt")
	quoted, err := json.Marshal(string(ca))
	if err != nil {
		return nil, err
	}
	const authority = "OWN-AUTHORITY"
	own := strings.NewReplacer(
		`"`+authority+`"`, string(quoted),
		base64.StdEncoding.EncodeToString([]byte(authority)), base64.StdEncoding.EncodeToString(ca),
		"own-address", c.virtAPIHost(),
	).Replace(string(text))
	var objects []*unstructured.Unstructured
	for decoder := json.NewDecoder(strings.NewReader(own)); ; {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read the objects: %w", err)
		}
		objects = append(objects, o)
	}
}

// install creates an object. One of a kind that was defined a moment ago waits
// until it is served.
func (c *Cluster) install(ctx context.Context, o *unstructured.Unstructured) error {
	delete(o.Object, "status")
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	var failed error
	err := poll(ctx, "its kind", func() bool {
		_, failed = c.dynamic.Resource(plural).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		return !apierrors.IsNotFound(failed)
	})
	return errors.Join(failed, err)
}

// virtAPIHost is where every API server finds virt-api: with hosts, each has its
// own.
func (c *Cluster) virtAPIHost() string {
	if c.hosts != nil {
		return "127.0.0.1"
	}
	return c.block.control().String()
}

// nodeObject is what the kubelet of a node registers. Virt-handler has looked
// what the machine can do.
func (c *Cluster) nodeObject(n Node) *corev1.Node {
	node := n.object()
	if c.virt == "" {
		return node
	}
	node.Labels[schedulable] = "true"
	node.Labels["machine-type.node.kubevirt.io/q35"] = "true"
	for _, device := range []corev1.ResourceName{"kvm", "tun", "vhost-net"} {
		node.Status.Capacity["devices.kubevirt.io/"+device] = resource.MustParse("1k")
	}
	return node
}
