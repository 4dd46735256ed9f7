package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// checked is a client whose lists of pods are lists of the pods on one node, or
// errors. Client-go decodes an answer of another kind to an empty list, and a
// node without pods is one that has been drained.
type checked struct {
	kubernetes.Interface
	node string
}

// CoreV1 implements kubernetes.Interface.
func (c checked) CoreV1() typedcore.CoreV1Interface {
	return checkedCore{CoreV1Interface: c.Interface.CoreV1(), node: c.node}
}

type checkedCore struct {
	typedcore.CoreV1Interface
	node string
}

// Pods implements typedcore.PodsGetter.
func (c checkedCore) Pods(namespace string) typedcore.PodInterface {
	return checkedPods{PodInterface: c.CoreV1Interface.Pods(namespace), node: c.node}
}

type checkedPods struct {
	typedcore.PodInterface
	node string
}

// List implements typedcore.PodInterface.
func (c checkedPods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	list, err := c.PodInterface.List(ctx, o)
	if err != nil {
		return nil, err
	}
	if list.ResourceVersion == "" {
		return nil, errNoVersion
	}
	for _, p := range list.Items {
		switch {
		case p.Name == "" || p.Namespace == "":
			return nil, errNoName
		case p.Spec.NodeName != c.node:
			return nil, fmt.Errorf("the answer lists pod %s/%s of node %q", p.Namespace, p.Name, p.Spec.NodeName)
		}
	}
	return list, nil
}
