// Package kubeconfigs has the verbs on kubeconfigs that are issued to people: each is a
// ServiceAccount with a token and a ClusterRoleBinding (docs/wire.md, "Issued
// kubeconfigs").
package kubeconfigs
