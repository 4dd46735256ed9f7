package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

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
	conn, done, err := c.use()
	if err != nil {
		return nil, fmt.Errorf("look at the situation of pods on node %s: %w", node, err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	s := newScene(conn, node, pods)
	looks := []func(context.Context) error{s.seePods, s.seeNodes, s.seeBudgets, s.seeVolumes, s.seeMachines}
	errs := make([]error, len(looks))
	var work sync.WaitGroup
	for i, look := range looks {
		// Side by side, for one that hangs must not take the others' time.
		work.Go(func() { errs[i] = look(ctx) })
	}
	work.Wait()
	var found []types.PodSituation
	for _, pod := range pods {
		if situation, ok := s.of(pod); ok {
			found = append(found, situation)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return found, fmt.Errorf("look at the situation of pods on node %s: %w", node, err)
	}
	return found, nil
}

// of is the situation of one of the pods that were asked for; false if it is
// gone.
func (s *scene) of(pod types.Pod) (types.PodSituation, bool) {
	p := s.asked[pod.Key()]
	if p == nil && s.podsWhole {
		return types.PodSituation{}, false
	}
	situation := types.PodSituation{Pod: pod}
	if p != nil {
		situation.Pod = podOf(p)
		situation.Finalizers = p.Finalizers
		situation.Grace = graceOf(p)
		situation.Pinned = pinned(p.ManagedFields)
		situation.Tolerates = toleratesCordon(p)
		situation.Budgets = s.covering(p)
		situation.Fits, situation.Lacks = s.roomFor(p, situation.Pinned)
	}
	if m, ok := s.machines[pod.Namespace+"/"+pod.VMI]; ok && pod.VMI != "" {
		situation.Immovable, situation.Strategy = m.immovable, m.strategy
	}
	return situation, true
}

// graceOf is the time the pod is given to end: of its deletion, where it is
// being deleted. A kubelet makes that 0 once it has ended all of the pod.
func graceOf(p *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if p.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	if p.DeletionGracePeriodSeconds != nil {
		seconds = *p.DeletionGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// pinned reports that whoever made the pod wrote spec.nodeName. A scheduler
// does not write it but creates a Binding, and the API server records no
// manager for what that changes.
func pinned(managers []metav1.ManagedFieldsEntry) bool {
	for _, m := range managers {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if m.Subresource != "" || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:nodeName"]; ok {
			return true
		}
	}
	return false
}

// toleratesCordon reports that a scheduler may put the pod on a cordoned node.
func toleratesCordon(p *corev1.Pod) bool {
	cordoned := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	_, repelled := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, cordoned, p.Spec.Tolerations, repels, true)
	return !repelled
}

// covering are the budgets whose selector takes the pod, by the rule of the
// eviction itself: an empty selector takes every pod, a missing one none.
func (s *scene) covering(p *corev1.Pod) []types.PodBudget {
	var covering []types.PodBudget
	for _, b := range s.budgets {
		if b.namespace == p.Namespace && b.selector.Matches(labels.Set(p.Labels)) {
			covering = append(covering, b.PodBudget)
		}
	}
	return covering
}
