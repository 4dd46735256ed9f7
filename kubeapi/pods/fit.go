package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	requests "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/zedkube/zedkube/kubeapi/access"
)

// namedNodes bounds how many nodes of one kind a sentence names.
const namedNodes = 5

// slimNode keeps what fit reads of a Node.
func slimNode(n *corev1.Node) *corev1.Node {
	slim := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: n.Status.Allocatable},
	}
	if ready := access.ConditionOf(n, corev1.NodeReady); ready != nil {
		slim.Status.Conditions = []corev1.NodeCondition{*ready}
	}
	if n.Spec.Unschedulable { // the taint comes a moment later
		slim.Spec.Taints = append(slim.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return slim
}

// take counts a pod on its node.
func (s *clusterSnapshot) take(p *corev1.Pod) {
	if p.Spec.NodeName == "" || access.Finished(p) {
		return
	}
	taken := s.taken[p.Spec.NodeName]
	if taken == nil {
		taken = corev1.ResourceList{}
		s.taken[p.Spec.NodeName] = taken
	}
	for name, quantity := range needs(p) {
		sum := taken[name]
		sum.Add(quantity)
		taken[name] = sum
	}
}

// needs is what a scheduler sets aside for a pod, its place among the pods of a
// node included.
func needs(p *corev1.Pod) corev1.ResourceList {
	list := requests.PodRequests(p, requests.PodResourcesOptions{UseStatusResources: true})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// fit counts the other nodes that would take the pod now, by the main
// rules of the scheduler: not those on other pods, such as affinity between
// pods, spread and host ports. lacks says why none would, "" where one would or
// where that is not known.
func (s *clusterSnapshot) fit(p *corev1.Pod, pinned bool) (fits int, lacks string) {
	switch {
	case access.Finished(p): // needs none
		return 0, ""
	case pinned:
		return 0, "its spec.nodeName is " + p.Spec.NodeName
	case !s.nodesWhole || !s.podsWhole:
		return 0, ""
	case len(s.nodes) == 0:
		return 0, "there is no other node"
	}
	reasons := map[string][]string{}
	for _, n := range s.nodes {
		if why := s.unfit(n, p); why != "" {
			reasons[why] = append(reasons[why], n.Name)
		} else {
			fits++
		}
	}
	if fits > 0 {
		return fits, ""
	}
	var parts []string
	for why, names := range reasons {
		parts = append(parts, listed(names)+": "+why)
	}
	slices.Sort(parts)
	return 0, fmt.Sprintf("0 of %d other nodes can run it (%s)", len(s.nodes), listed(parts, "; "))
}

// listed joins the first few, and says how many more there are.
func listed(names []string, by ...string) string {
	slices.Sort(names)
	more := ""
	if n := len(names) - namedNodes; n > 0 {
		names, more = names[:namedNodes], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, append(by, ", ")[0]) + more
}

// unfit is why a node would not take a pod, "" if it would.
func (s *clusterSnapshot) unfit(n *corev1.Node, p *corev1.Pod) string {
	if len(n.Status.Conditions) == 0 || n.Status.Conditions[0].Status != corev1.ConditionTrue {
		return "not Ready"
	}
	if taint, ok := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, repels, true); ok {
		if taint.Key == corev1.TaintNodeUnschedulable {
			return "cordoned"
		}
		return "has the taint " + taint.ToString()
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !ok {
		return "does not match its node selector or node affinity"
	}
	for _, v := range p.Spec.Volumes {
		local, ok := s.volumes[p.Namespace+"/"+access.ClaimOf(p, v)]
		if !ok {
			continue
		}
		if ok, err := scheduling.MatchNodeSelectorTerms(n, local.nodes); err != nil || !ok {
			return "cannot use its volume " + local.name
		}
	}
	return s.short(n, p)
}

func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// short says what a node has too little of for a pod, with numbers.
func (s *clusterSnapshot) short(n *corev1.Node, p *corev1.Pod) string {
	var parts []string
	for name, want := range needs(p) {
		free := n.Status.Allocatable[name].DeepCopy()
		free.Sub(s.taken[n.Name][name])
		if want.IsZero() || free.Cmp(want) >= 0 {
			continue
		}
		if free.Sign() < 0 {
			free = resource.Quantity{Format: free.Format}
		}
		if name == corev1.ResourcePods {
			all := n.Status.Allocatable[name]
			parts = append(parts, "already runs "+all.String()+" pods, its maximum")
		} else {
			parts = append(parts, fmt.Sprintf("has %s of %s left, it requests %s", free.String(), name, want.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " and ")
}
