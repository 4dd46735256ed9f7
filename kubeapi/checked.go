package kubeapi

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// checked is a client whose lists of pods are lists of the pods on one node, or
// errors. Client-go decodes an answer of another kind to an empty list, and a
// node without pods is one that has been drained.
//
// It lists the daemon sets once instead of asking for one for each of their
// pods, of which every node has a dozen. It serves one look, in one goroutine.
type checked struct {
	kubernetes.Interface
	node string
	sets *appsv1.DaemonSetList // nil before the first is asked for
}

// CoreV1 implements kubernetes.Interface.
func (c *checked) CoreV1() typedcore.CoreV1Interface {
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

// AppsV1 implements kubernetes.Interface.
func (c *checked) AppsV1() typedapps.AppsV1Interface {
	return checkedApps{AppsV1Interface: c.Interface.AppsV1(), of: c}
}

type checkedApps struct {
	typedapps.AppsV1Interface
	of *checked
}

// DaemonSets implements typedapps.DaemonSetsGetter.
func (c checkedApps) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	return checkedSets{DaemonSetInterface: c.AppsV1Interface.DaemonSets(namespace), of: c.of, namespace: namespace}
}

type checkedSets struct {
	typedapps.DaemonSetInterface
	of        *checked
	namespace string
}

// Get implements typedapps.DaemonSetInterface.
func (c checkedSets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	if c.of.sets == nil {
		list, err := c.of.Interface.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
		if err == nil {
			err = isWhole(list.ListMeta)
		}
		if err != nil {
			return nil, fmt.Errorf("list daemon sets: %w", err)
		}
		c.of.sets = list
	}
	i := slices.IndexFunc(c.of.sets.Items, func(s appsv1.DaemonSet) bool { return s.Namespace == c.namespace && s.Name == name })
	if i < 0 {
		return nil, apierrors.NewNotFound(appsv1.Resource("daemonsets"), name)
	}
	return &c.of.sets.Items[i], nil
}
