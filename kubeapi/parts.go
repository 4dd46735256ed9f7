package kubeapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

const (
	kubevirtNamespace = "kubevirt"
	labelKubeVirt     = "kubevirt.io"
)

// systemPart is which part of the system a pod is, and of what version by the tag of
// its image. The pods on the own node are watched anyway.
func systemPart(p *corev1.Pod) (part, version string) {
	switch {
	case p.Namespace == kubevirtNamespace && p.Labels[labelKubeVirt] == "virt-handler":
		part = types.PartKubeVirt
	case p.Namespace == longhornNamespace && p.Labels[labelApp] == "longhorn-manager":
		part = types.PartLonghorn
	case p.Namespace == metav1.NamespaceSystem && p.Labels[labelApp] == "multus":
		part = types.PartMultus
	}
	if part == "" || len(p.Spec.Containers) == 0 {
		return "", ""
	}
	return part, tagOf(p.Spec.Containers[0].Image)
}

// tagOf is the tag of an image, "" where it has none or is longer than a version.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok || len(name) > versionLength {
		return ""
	}
	return name
}
