//go:build linux

package devcluster

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// custom is a kind of object that Kubernetes does not know by itself.
type custom struct {
	group, version, kind, plural string
	short                        string // comma-separated
	status, scale                bool   // has the subresource
}

// definitionsOf is where kinds are defined.
var definitionsOf = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// customs are what KubeVirt, Longhorn and Multus bring, as far as anything here
// meets it. The objects are not checked: any field passes.
var customs = []custom{
	{kubevirtGroup, "v1", "VirtualMachineInstance", "virtualmachineinstances", "vmi,vmis", false, false},
	{kubevirtGroup, "v1", "VirtualMachineInstanceReplicaSet", "virtualmachineinstancereplicasets", "vmirs,vmirss", true, true},
	{kubevirtGroup, "v1", "VirtualMachine", "virtualmachines", "vm,vms", true, false},
	{kubevirtGroup, "v1", "KubeVirt", "kubevirts", "kv,kvs", true, false},
	{"longhorn.io", "v1beta2", "Node", "nodes", "lhn", true, false},
	{"longhorn.io", "v1beta2", "Volume", "volumes", "lhv", true, false},
	{"longhorn.io", "v1beta2", "Replica", "replicas", "lhr", true, false},
	{"longhorn.io", "v1beta2", "Engine", "engines", "lhe", true, false},
	{"longhorn.io", "v1beta2", "Setting", "settings", "lhs", true, false},
	{"longhorn.io", "v1beta2", "RecurringJob", "recurringjobs", "lhrj", true, false},
	{"longhorn.io", "v1beta2", "Snapshot", "snapshots", "lhsnap", true, false},
	{"k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "net-attach-def", false, false},
}

// Custom returns an administrator's client for a kind of KubeVirt, Longhorn or
// Multus by its short name: vmi, vmirs, vm, kv, lhn, lhv, lhr, lhe, lhs, lhrj,
// lhsnap, net-attach-def. It panics for any other.
func (c *Cluster) Custom(short string) dynamic.NamespaceableResourceInterface {
	for _, k := range customs {
		if name, _, _ := strings.Cut(k.short, ","); name == short {
			return c.dynamic.Resource(schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural})
		}
	}
	panic("devcluster: no custom kind " + short)
}

// defineCustoms makes the API server serve them. The controller manager starts
// after that: its garbage collector looks for kinds only now and then.
func (c *Cluster) defineCustoms(ctx context.Context) error {
	crds := c.dynamic.Resource(definitionsOf)
	for _, k := range customs {
		if c.virt != "" && k.group == kubevirtGroup {
			continue // with its own definition
		}
		if _, err := crds.Create(ctx, k.definition(), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("define %s of %s: %w", k.kind, k.group, err)
		}
	}
	if err := c.installKubeVirt(ctx); err != nil {
		return err
	}
	for _, k := range customs {
		if err := poll(ctx, k.plural, func() bool { return c.serves(ctx, k) }); err != nil {
			return err
		}
	}
	return nil
}

// serves says whether the API server's list of kinds has one.
func (c *Cluster) serves(ctx context.Context, k custom) bool {
	list, err := c.client.Discovery().RESTClient().Get().AbsPath("/apis", k.group, k.version).Do(ctx).Raw()
	return err == nil && strings.Contains(string(list), `"name":"`+k.plural+`"`)
}

// describeCustoms returns when the description that read gets of an API server has them,
// which comes later than the list, and without which kwok does not start.
func describeCustoms(ctx context.Context, read func(path string) string) error {
	for _, k := range customs {
		what := "/apis/" + k.group + "/" + k.version + "/namespaces/{namespace}/" + k.plural + "/{name}"
		if err := poll(ctx, what, func() bool { return strings.Contains(read("/openapi/v3/apis/"+k.group+"/"+k.version), `"`+what+`"`) }); err != nil {
			return err
		}
	}
	return nil
}

func (k custom) definition() *unstructured.Unstructured {
	subresources := map[string]any{}
	if k.status {
		subresources["status"] = map[string]any{}
	}
	if k.scale {
		subresources["scale"] = map[string]any{
			"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.labelSelector",
		}
	}
	names := map[string]any{"kind": k.kind, "plural": k.plural, "singular": strings.ToLower(k.kind)}
	var short []any
	for name := range strings.SplitSeq(k.short, ",") {
		short = append(short, name)
	}
	names["shortNames"] = short
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", metav1.ObjectMeta{Name: k.plural + "." + k.group}, map[string]any{
		"spec": map[string]any{
			"group": k.group, "scope": "Namespaced", "names": names,
			"versions": []any{map[string]any{
				"name": k.version, "served": true, "storage": true, "subresources": subresources,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	})
}

// object puts a custom object together; content becomes part of it.
func object(apiVersion, kind string, meta metav1.ObjectMeta, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(meta.Name)
	o.SetNamespace(meta.Namespace)
	o.SetLabels(meta.Labels)
	o.SetAnnotations(meta.Annotations)
	o.SetOwnerReferences(meta.OwnerReferences)
	return o
}
