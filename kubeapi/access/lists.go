package access

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrPartial is returned for a list of which more is to be asked for.
var ErrPartial = errors.New("the answer is only a part of the list")

// Whole is a list and its error. It refuses pages, and answers of another kind, which
// are decoded to an empty list without a version.
func Whole[L metav1.ListInterface](list L, err error) (L, error) {
	switch {
	case err != nil:
	case list.GetResourceVersion() == "":
		err = ErrNoVersion
	case list.GetContinue() != "":
		err = ErrPartial
	}
	return list, err
}

// Finished says whether the pod has succeeded or failed: it runs no container any more.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ClaimOf is the name of the claim behind a volume of the pod, "" for none.
func ClaimOf(p *corev1.Pod, v corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

var (
	// ErrNoVersion is returned for an answer of another kind than a list.
	ErrNoVersion = errors.New("the answer has no resource version, so it is not a list of what was requested")
	// ErrNoName is returned for a list with an object that has no name.
	ErrNoName = errors.New("the answer contains an object without a name")
)

// How many objects are asked for and decoded at a time, of which little is kept.
const (
	PodsPage    = 500 // whole pods are 5 MB
	StoragePage = 250 // an Engine of Longhorn carries all its snapshots
)

// Pages gives each every page of one list, and returns an error unless it was
// whole, and all of one version.
func Pages[L metav1.ListInterface](
	ctx context.Context, size int64, list func(context.Context, metav1.ListOptions) (L, error), each func(L) error,
) error {
	o := metav1.ListOptions{Limit: size}
	version := ""
	for {
		page, err := list(ctx, o)
		if err != nil {
			return err
		}
		more, left := page.GetContinue(), page.GetRemainingItemCount()
		switch {
		case page.GetResourceVersion() == "": // an answer of another kind is decoded to an empty list
			return ErrNoVersion
		case version != "" && page.GetResourceVersion() != version:
			return errors.New("the pages are of different versions")
		case more == "" && left != nil && *left > 0:
			return fmt.Errorf("the list ends %d objects early", *left)
		case more != "" && more == o.Continue:
			return errors.New("the list does not continue")
		}
		if err := each(page); err != nil || more == "" {
			return err
		}
		version, o.Continue = page.GetResourceVersion(), more
	}
}

// List is a list of objects.
type List interface {
	runtime.Object
	metav1.ListInterface
}

// Each gives see every object of a fresh list, page by page. Its error names the list.
func Each[O metav1.Object, L List](
	ctx context.Context, what string, size int64, list func(context.Context, metav1.ListOptions) (L, error), see func(O) error,
) error {
	err := Pages(ctx, size, list, func(page L) error {
		return meta.EachListItem(page, func(item runtime.Object) error {
			o, ok := item.(O)
			if !ok || o.GetName() == "" {
				return ErrNoName
			}
			return see(o)
		})
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}

// ClaimUsers returns which claims, called namespace/name, pods of DaemonSets use
// on node, and which other pods do.
func ClaimUsers(ctx context.Context, conn *Connection, node string) (daemons, others map[string]bool, err error) {
	daemons, others = map[string]bool{}, map[string]bool{}
	err = PodsOn(ctx, conn, node, func(p *corev1.Pod) {
		users := others
		if o := metav1.GetControllerOf(p); o != nil && o.Kind == "DaemonSet" {
			users = daemons
		}
		for _, claim := range ClaimsOf(p) {
			users[claim] = true
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return daemons, others, nil
}

// OnNode selects the pods of a node.
func OnNode(node string) string { return fields.OneTermEqualSelector("spec.nodeName", node).String() }

// PodsOn calls see for each pod of node in a fresh list. Anything else in the
// answer is an error: client-go decodes an answer of another kind to an empty
// list, and a node without pods is one that has been drained.
func PodsOn(ctx context.Context, conn *Connection, node string, see func(*corev1.Pod)) error {
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		o.FieldSelector = OnNode(node)
		return conn.Kube.CoreV1().Pods("").List(ctx, o)
	}
	return Each(ctx, "pods of node "+node, StoragePage, list, func(p *corev1.Pod) error {
		switch {
		case p.Namespace == "":
			return ErrNoName
		case p.Spec.NodeName != node:
			return fmt.Errorf("the answer lists pod %s/%s of node %q", p.Namespace, p.Name, p.Spec.NodeName)
		}
		see(p)
		return nil
	})
}

// ClaimsOf returns the names of the claims that the pod uses; none once it has finished.
func ClaimsOf(p *corev1.Pod) (claims []string) {
	if Finished(p) {
		return nil
	}
	for _, v := range p.Spec.Volumes {
		if name := ClaimOf(p, v); name != "" {
			claims = append(claims, p.Namespace+"/"+name)
		}
	}
	return claims
}
