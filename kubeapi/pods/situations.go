package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Situations returns, from fresh lists, why pods of node do not move, in the
// order given; pods that are gone are left out. It costs five lists, however
// many pods there are, and decides nothing: what one list does not tell is left
// out, and the error says which. A pod of which nothing is known comes back as
// it was given.
func (c *Client) Situations(ctx context.Context, node string, pods []types.Pod) ([]types.PodSituation, error) {
	if len(pods) == 0 {
		return nil, nil
	}
	var found []types.PodSituation
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		s := newClusterSnapshot(conn, node, pods)
		looks := []func(context.Context) error{s.seePods, s.seeNodes, s.seeBudgets, s.seeVolumes, s.seeMachines}
		errs := make([]error, len(looks))
		var work sync.WaitGroup
		for i, look := range looks {
			// Side by side, for one that hangs must not take the others' time.
			work.Go(func() { errs[i] = look(ctx) })
		}
		work.Wait()
		for _, pod := range pods {
			if situation, ok := s.of(pod); ok {
				found = append(found, situation)
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		err = fmt.Errorf("examine the pods on node %s: %w", node, err)
	}
	return found, err
}

// of is the situation of one of the pods that were asked for; false if it is
// gone.
func (s *clusterSnapshot) of(pod types.Pod) (types.PodSituation, bool) {
	p := s.asked[pod.Key()]
	if p == nil && s.podsWhole {
		return types.PodSituation{}, false
	}
	situation := types.PodSituation{Pod: pod}
	if p != nil {
		situation.Pod = PodOf(p)
		situation.Finalizers = p.Finalizers
		situation.Grace = graceOf(p)
		situation.Pinned = pinned(p.ManagedFields)
		situation.Tolerates = toleratesCordon(p)
		situation.Budgets = s.covering(p)
		situation.Fits, situation.Lacks = s.fit(p, situation.Pinned)
	}
	if m, ok := s.machines[pod.Namespace+"/"+pod.VMI]; ok && pod.VMI != "" {
		situation.Immovable, situation.Strategy = m.immovable, m.strategy
	}
	return situation, true
}

// graceOf is the time the pod is given to end: of its deletion, where it is
// being deleted. A kubelet makes that 0 once it has ended all of the pod.
func graceOf(p *corev1.Pod) time.Duration {
	seconds := ptr.Deref(p.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, seconds)) * time.Second
}

// pinned reports that the creator of the pod wrote spec.nodeName. A scheduler
// does not write it but creates a Binding, and the API server records no
// manager for what that changes.
func pinned(managers []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool {
		_, ok := access.FieldsOf(m).Spec["f:nodeName"]
		return ok && m.Subresource == ""
	})
}

// toleratesCordon reports that a scheduler may put the pod on a cordoned node.
func toleratesCordon(p *corev1.Pod) bool {
	cordoned := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	_, repelled := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, cordoned, p.Spec.Tolerations, repels, true)
	return !repelled
}

// covering are the budgets whose selector takes the pod, by the rule of the
// eviction itself: an empty selector takes every pod, a missing one none.
func (s *clusterSnapshot) covering(p *corev1.Pod) []types.PodBudget {
	var covering []types.PodBudget
	for _, b := range s.budgets {
		if b.namespace == p.Namespace && b.selector.Matches(labels.Set(p.Labels)) {
			covering = append(covering, b.PodBudget)
		}
	}
	return covering
}

// clusterSnapshot is what Situations has seen of the cluster. Each list is seen by a
// goroutine of its own, which alone writes what stands under its name.
type clusterSnapshot struct {
	conn       *access.Connection
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

func newClusterSnapshot(conn *access.Connection, node string, pods []types.Pod) *clusterSnapshot {
	s := &clusterSnapshot{
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

func (s *clusterSnapshot) seePods(ctx context.Context) error {
	err := access.Each(ctx, "pods", access.PodsPage, s.conn.Kube.CoreV1().Pods("").List, func(p *corev1.Pod) error {
		key := access.NamespacedName(p)
		if key == "" {
			return access.ErrNoName
		}
		if uid, ok := s.uids[key]; ok && (uid == "" || uid == string(p.UID)) {
			s.asked[key] = p.DeepCopy() // else it would keep the whole page
		}
		s.take(p)
		return nil
	})
	s.podsWhole = err == nil
	return err
}

func (s *clusterSnapshot) seeNodes(ctx context.Context) error {
	err := access.Each(ctx, "nodes", access.PodsPage, s.conn.Kube.CoreV1().Nodes().List, func(n *corev1.Node) error {
		if n.Name != s.node && !access.IsEdge(n) {
			s.nodes = append(s.nodes, slimNode(n))
		}
		return nil
	})
	s.nodesWhole = err == nil
	return err
}

func (s *clusterSnapshot) seeBudgets(ctx context.Context) error {
	var found []budget
	list := s.conn.Kube.PolicyV1().PodDisruptionBudgets("").List
	err := access.Each(ctx, "pod disruption budgets", access.PodsPage, list, func(b *policyv1.PodDisruptionBudget) error {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && s.namespaces[b.Namespace] { // on an error the eviction fails, too, and says so
			found = append(found, budget{budgetOf(b), b.Namespace, selector})
		}
		return nil
	})
	if err == nil {
		s.budgets = found
	}
	return err
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
			row.Trouble = cmp.Or(c.Message, c.Reason)
		}
	}
	return row
}

// seeVolumes reads the claims from the volumes bound to them, which saves a
// list.
func (s *clusterSnapshot) seeVolumes(ctx context.Context) error {
	err := access.Pages(ctx, access.PodsPage, s.conn.Kube.CoreV1().PersistentVolumes().List, func(page *corev1.PersistentVolumeList) error {
		for _, v := range page.Items {
			claim := v.Spec.ClaimRef
			if claim != nil && v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
				s.volumes[claim.Namespace+"/"+claim.Name] = localVolume{v.Name, v.Spec.NodeAffinity.Required}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list persistent volumes: %w", err)
	}
	return nil
}

// machine is what KubeVirt says about moving a virtual machine.
type machine struct{ immovable, strategy string }

func (s *clusterSnapshot) seeMachines(ctx context.Context) error {
	if !s.virtual {
		return nil
	}
	found := map[string]machine{}
	list := s.conn.Virt.VirtualMachineInstances("").List
	err := access.Each(ctx, "virtual machine instances", access.PodsPage, list, func(vmi *kubevirtv1.VirtualMachineInstance) error {
		m := machine{strategy: string(ptr.Deref(vmi.Spec.EvictionStrategy, ""))}
		for _, c := range vmi.Status.Conditions {
			if c.Type == kubevirtv1.VirtualMachineInstanceIsMigratable && c.Status == corev1.ConditionFalse {
				m.immovable = join(c.Reason, c.Message)
			}
		}
		found[vmi.Namespace+"/"+vmi.Name] = m
		return nil
	})
	switch {
	case apierrors.IsNotFound(err): // a cluster without KubeVirt
		return nil
	case err != nil:
		return err
	}
	s.machines = found
	return nil
}

// join is reason and message as one text, whichever there is.
func join(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "KubeVirt gives no reason"
	case reason == "" || message == "":
		return reason + message
	}
	return reason + ": " + message
}
