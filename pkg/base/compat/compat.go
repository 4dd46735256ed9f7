// Package compat is which release of KubeVirt, Longhorn and CDI is made for which
// minor version of Kubernetes, as their projects say. It is pure.
package compat

import (
	"fmt"

	"github.com/zedkube/zedkube/types"
)

// Verdict is what a project says of one of its releases on a Kubernetes.
type Verdict string

// The verdicts.
const (
	Supported    Verdict = "Supported"
	NotSupported Verdict = "NotSupported"
	Unknown      Verdict = "Unknown" // it says nothing, or this table does not know
)

// minors are those of Kubernetes 1 that a release supports; last is 0 where the
// project names only the first.
type minors struct{ first, last int }

// The releases, by their minor version; all have major version 1.
//
// KubeVirt: releases/k8s-support-matrix.md of kubevirt/sig-release, three minors for
// each release. 1.6 on Kubernetes 1.34 does not start virtual machines:
// kubevirt/kubevirt#15586.
//
// Longhorn: "Ensure that your cluster is running Kubernetes v1.NN or later" of its
// release notes. It names no last version.
//
// CDI publishes neither.
var releases = map[types.KubeComp]map[int]minors{
	types.KubeCompKubevirt: {0: {25, 27}, 1: {26, 28}, 2: {27, 29}, 3: {28, 30}, 4: {29, 31}, 5: {30, 32}, 6: {31, 33}, 7: {32, 34}},
	types.KubeCompLonghorn: {6: {21, 0}, 8: {25, 0}, 9: {25, 0}, 10: {25, 0}, 11: {25, 0}, 12: {25, 0}, 13: {34, 0}},
}

// longhornRaised is the patch of Longhorn 1.11 from which on its Rancher chart wants
// Kubernetes 1.34; its release notes say 1.25. The higher one counts.
const longhornRaised = 3

// Part is a component of the cluster.
type Part struct {
	Component types.KubeComp
	Version   string // "" where it is not known
}

// Parts are the components that Check knows, with the versions that a node sees.
func Parts(is types.KubeNodeConditions) []Part {
	return []Part{{types.KubeCompKubevirt, is.KubeVirt}, {types.KubeCompLonghorn, is.Longhorn}}
}

// Check says whether a component of that version supports Kubernetes 1.minor, and why
// not in part of a sentence.
func Check(component types.KubeComp, version string, minor int) (Verdict, string) {
	v, err := types.ParseK3sVersion(version)
	if version == "" || err != nil {
		return Unknown, fmt.Sprintf("the version of %s is not known", component)
	}
	supports, ok := releases[component][v.Minor]
	if component == types.KubeCompLonghorn && v.Minor == 11 && v.Patch >= longhornRaised {
		supports, ok = minors{34, 0}, true
	}
	switch {
	case !ok || v.Major != 1:
		return Unknown, fmt.Sprintf("which versions of Kubernetes %s %s supports is not known", component, version)
	case minor < supports.first:
		return NotSupported, fmt.Sprintf("%s %s needs Kubernetes 1.%d or later", component, version, supports.first)
	case supports.last != 0 && minor > supports.last:
		return NotSupported, fmt.Sprintf("%s %s supports Kubernetes up to 1.%d", component, version, supports.last)
	}
	return Supported, ""
}
