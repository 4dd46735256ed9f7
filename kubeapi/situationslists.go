package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/zedkube/zedkube/types"
)

// pageSize bounds what is held of a list at once: 500 whole pods are 5 MB.
const pageSize = 500

// scene is what Situations has seen of the cluster. Each list is seen by a
// goroutine of its own, which alone writes what stands under its name.
type scene struct {
	conn       *connection
	node       string
	uids       map[string]string // of the pods asked for, by namespace/name
	namespaces map[string]bool   // that they are in
	virtual    bool              // one of them is a virtual machine

	// of seePods
	asked     map[string]*corev1.Pod         // by namespace/name
	taken     map[string]corev1.ResourceList // what the pods on a node request, by its name
	podsWhole bool

	nodes      []*corev1.Node // the others, slim
	nodesWhole bool
	budgets    []budget
	volumes    map[string]localVolume // that not every node can use, by claim
	machines   map[string]machine     // by namespace/name
}

type budget struct {
	types.PodBudget
	namespace string
	selector  labels.Selector
}

// localVolume is a persistent volume that only some nodes can use.
type localVolume struct {
	name  string
	nodes *corev1.NodeSelector
}

func newScene(conn *connection, node string, pods []types.Pod) *scene {
	s := &scene{
		conn: conn, node: node, uids: map[string]string{}, namespaces: map[string]bool{},
		asked: map[string]*corev1.Pod{}, taken: map[string]corev1.ResourceList{},
		volumes: map[string]localVolume{}, machines: map[string]machine{},
	}
	for _, p := range pods {
		s.uids[p.Key()] = p.UID
		s.namespaces[p.Namespace] = true
		s.virtual = s.virtual || p.VMI != ""
	}
	return s
}

// eachPage walks a list page by page. An answer of another kind is decoded to
// an empty list without a version: that is an error.
func eachPage[L metav1.ListInterface](
	ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), see func(L) error,
) error {
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := list(ctx, o)
		if err != nil {
			return err
		}
		if page.GetResourceVersion() == "" {
			return errNoVersion
		}
		if err := see(page); err != nil {
			return err
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

func (s *scene) seePods(ctx context.Context) error {
	err := eachPage(ctx, s.conn.kube.CoreV1().Pods("").List, func(page *corev1.PodList) error {
		for i := range page.Items {
			p := &page.Items[i]
			if p.Name == "" || p.Namespace == "" {
				return errNoName
			}
			key := p.Namespace + "/" + p.Name
			if uid, ok := s.uids[key]; ok && (uid == "" || uid == string(p.UID)) {
				s.asked[key] = p.DeepCopy() // else it would keep the whole page
			}
			s.take(p)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	s.podsWhole = true
	return nil
}

func (s *scene) seeNodes(ctx context.Context) error {
	err := eachPage(ctx, s.conn.kube.CoreV1().Nodes().List, func(page *corev1.NodeList) error {
		for _, n := range page.Items {
			switch {
			case n.Name == "":
				return errNoName
			case n.Name == s.node, isEdge(&n):
			default:
				s.nodes = append(s.nodes, roomy(n))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	s.nodesWhole = true
	return nil
}

func (s *scene) seeBudgets(ctx context.Context) error {
	var found []budget
	err := eachPage(ctx, s.conn.kube.PolicyV1().PodDisruptionBudgets("").List, func(page *policyv1.PodDisruptionBudgetList) error {
		for _, b := range page.Items {
			if b.Name == "" {
				return errNoName
			}
			if !s.namespaces[b.Namespace] {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil { // the eviction fails on it, too, and says so
				continue
			}
			found = append(found, budget{budgetOf(&b), b.Namespace, selector})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list pod disruption budgets: %w", err)
	}
	s.budgets = found
	return nil
}

func budgetOf(b *policyv1.PodDisruptionBudget) types.PodBudget {
	row := types.PodBudget{
		Name:    b.Namespace + "/" + b.Name,
		Allowed: int(b.Status.DisruptionsAllowed),
		Healthy: int(b.Status.CurrentHealthy),
		Desired: int(b.Status.DesiredHealthy),
		Expects: int(b.Status.ExpectedPods),
	}
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			row.Trouble = c.Message
			if row.Trouble == "" {
				row.Trouble = c.Reason
			}
		}
	}
	return row
}

// seeVolumes reads the claims from the volumes bound to them, which saves a
// list.
func (s *scene) seeVolumes(ctx context.Context) error {
	err := eachPage(ctx, s.conn.kube.CoreV1().PersistentVolumes().List, func(page *corev1.PersistentVolumeList) error {
		for _, v := range page.Items {
			claim := v.Spec.ClaimRef
			if claim == nil || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
				continue
			}
			s.volumes[claim.Namespace+"/"+claim.Name] = localVolume{v.Name, v.Spec.NodeAffinity.Required}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list persistent volumes: %w", err)
	}
	return nil
}
