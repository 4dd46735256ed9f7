package kubeapi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/zedkube/zedkube/types"
)

// markDaemons marks the attachments of volumes that another node serves and that
// nobody but pods of DaemonSets uses on node. Pods are listed only where there
// is such a volume, which takes one that many nodes may write.
func markDaemons(ctx context.Context, conn *connection, node string, s *types.Storage) error {
	served := map[string]string{} // claim, by volume
	for _, v := range s.Volumes {
		if v.Running && v.Engine != "" && v.Engine != node && !slices.Contains(v.Also, node) && v.Claim != "" {
			served[v.Name] = v.Claim
		}
	}
	if !slices.ContainsFunc(s.Attachments, func(a types.Attachment) bool { return served[a.Volume] != "" }) {
		return nil
	}
	daemons, others, err := claimUsers(ctx, conn, node)
	if err != nil {
		return err
	}
	for i := range s.Attachments {
		a := &s.Attachments[i]
		claim := served[a.Volume]
		a.Daemons = claim != "" && daemons[claim] && !others[claim]
	}
	return nil
}

// claimUsers returns which claims, called namespace/name, pods of DaemonSets use
// on node, and which other pods do.
func claimUsers(ctx context.Context, conn *connection, node string) (daemons, others map[string]bool, err error) {
	daemons, others = map[string]bool{}, map[string]bool{}
	err = podsOn(ctx, conn, node, func(p *corev1.Pod) {
		users := others
		if o := metav1.GetControllerOf(p); o != nil && o.Kind == "DaemonSet" {
			users = daemons
		}
		for _, claim := range claimsOf(p) {
			users[claim] = true
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return daemons, others, nil
}

// podsOn calls see for each pod of node in a fresh list. Anything else in the
// answer is an error: client-go decodes an answer of another kind to an empty
// list, and a node without pods is one that has been drained.
func podsOn(ctx context.Context, conn *connection, node string, see func(*corev1.Pod)) error {
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		return conn.kube.CoreV1().Pods("").List(ctx, o)
	}
	err := pages(ctx, list, func(l *corev1.PodList) error {
		for i, p := range l.Items {
			switch {
			case p.Name == "" || p.Namespace == "":
				return errNoName
			case p.Spec.NodeName != node:
				return fmt.Errorf("the answer lists pod %s/%s of node %q", p.Namespace, p.Name, p.Spec.NodeName)
			}
			see(&l.Items[i])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}
	return nil
}

func claimsOf(p *corev1.Pod) (claims []string) {
	if finished(p) {
		return nil
	}
	for _, v := range p.Spec.Volumes {
		if name := claimOf(p, v); name != "" {
			claims = append(claims, p.Namespace+"/"+name)
		}
	}
	return claims
}
