// Package kubevirt has the verbs on KubeVirt's virtual machine instances and on
// the replica sets of applications, which are KubeVirt's or Kubernetes' own, and
// the rows of their tables.
package kubevirt
