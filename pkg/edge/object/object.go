// Package object names objects of the API server, as JSON has them, without Kubernetes' libraries.
package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of objects.
type Kind struct {
	Group, Version, Name string
	Resource             string // as it is in paths
}

// The kinds that zedkube-edge knows.
var (
	Namespace          = Kind{"", "v1", "Namespace", "namespaces"}
	Node               = Kind{"", "v1", "Node", "nodes"}
	Pod                = Kind{"", "v1", "Pod", "pods"}
	ConfigMap          = Kind{"", "v1", "ConfigMap", "configmaps"}
	Secret             = Kind{"", "v1", "Secret", "secrets"}
	Service            = Kind{"", "v1", "Service", "services"}
	ServiceAccount     = Kind{"", "v1", "ServiceAccount", "serviceaccounts"}
	Deployment         = Kind{"apps", "v1", "Deployment", "deployments"}
	DaemonSet          = Kind{"apps", "v1", "DaemonSet", "daemonsets"}
	Budget             = Kind{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"}
	ClusterRole        = Kind{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"}
	ClusterRoleBinding = Kind{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"}
	Role               = Kind{"rbac.authorization.k8s.io", "v1", "Role", "roles"}
	RoleBinding        = Kind{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"}
	CRD                = Kind{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"}
	Lease              = Kind{"coordination.k8s.io", "v1", "Lease", "leases"}
	ObjectSync         = Kind{"reliablesyncs.kubeedge.io", "v1alpha1", "ObjectSync", "objectsyncs"}
	Policy             = Kind{"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"}
	PolicyBinding      = Kind{"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"}
	Request            = Kind{"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"}
)

// Ref names one object. It can be compared.
type Ref struct {
	Kind            Kind
	Namespace, Name string // Namespace is "" for what belongs to none
}

// String is as in "Service kubeedge/cloudcore".
func (r Ref) String() string {
	if r.Namespace != "" {
		return r.Kind.Name + " " + r.Namespace + "/" + r.Name
	}
	return r.Kind.Name + " " + r.Name
}

// Object is an object as JSON.
type Object map[string]any

// Map is a part of one.
type Map = map[string]any

// New is an object without content.
func New(r Ref) Object {
	meta := Map{"name": r.Name}
	if r.Namespace != "" {
		meta["namespace"] = r.Namespace
	}
	return Object{"apiVersion": strings.TrimPrefix(r.Kind.Group+"/"+r.Kind.Version, "/"), "kind": r.Kind.Name, "metadata": meta}
}

// With is the object with this content in addition.
func (o Object) With(content Map) Object {
	maps.Copy(o, content)
	return o
}

// At is what stands at a path of fields; nil for nothing.
func (o Object) At(path ...string) any {
	var here any = Map(o)
	for _, field := range path {
		m, _ := here.(Map)
		here = m[field]
	}
	return here
}

// Text is the text at a path; "" for none.
func (o Object) Text(path ...string) string {
	text, _ := o.At(path...).(string)
	return text
}

// Number is the number at a path; 0 for none.
func (o Object) Number(path ...string) int {
	switch n := o.At(path...).(type) {
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// List are the objects in the list at a path.
func (o Object) List(path ...string) (list []Object) {
	items, _ := o.At(path...).([]any)
	for _, item := range items {
		if m, is := item.(Map); is {
			list = append(list, m)
		}
	}
	return list
}

// Name is the name of the object.
func (o Object) Name() string { return o.Text("metadata", "name") }

// Version is its resourceVersion.
func (o Object) Version() string { return o.Text("metadata", "resourceVersion") }

// UID is its UID.
func (o Object) UID() string { return o.Text("metadata", "uid") }

// Annotation is the value of one annotation.
func (o Object) Annotation(name string) string { return o.Text("metadata", "annotations", name) }

// HasLabel reports that it has a label of that name.
func (o Object) HasLabel(name string) bool {
	labels, _ := o.At("metadata", "labels").(Map)
	_, has := labels[name]
	return has
}

// Condition is the status of a condition; "" for none.
func (o Object) Condition(kind string) string {
	for _, c := range o.List("status", "conditions") {
		if c.Text("type") == kind {
			return c.Text("status")
		}
	}
	return ""
}

// Ref names it, as an object of that kind.
func (o Object) Ref(k Kind) Ref { return Ref{k, o.Text("metadata", "namespace"), o.Name()} }

// Plain is a value as JSON has it, for objects that are written out in Go.
func Plain(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	return plain, nil
}

// Same reports that both are the same as JSON.
func Same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}
