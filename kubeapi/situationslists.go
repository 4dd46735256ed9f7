package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

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

type machine struct{ immovable, strategy string }

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
			switch n.Name {
			case "":
				return errNoName
			case s.node:
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

// machineList is the part of a list of KubeVirt's VirtualMachineInstances that
// says whether they can move.
type machineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct{ EvictionStrategy string }
		Status   struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
}

// seeMachines asks with the client at hand: a typed one of KubeVirt's would be
// a large module for three fields.
func (s *scene) seeMachines(ctx context.Context) error {
	if !s.virtual {
		return nil
	}
	found := map[string]machine{}
	err := eachPage(ctx, s.listMachines, func(page *machineList) error {
		for _, vmi := range page.Items {
			if vmi.Metadata.Name == "" {
				return errNoName
			}
			m := machine{strategy: vmi.Spec.EvictionStrategy}
			for _, c := range vmi.Status.Conditions {
				if c.Type == "LiveMigratable" && c.Status == string(corev1.ConditionFalse) {
					m.immovable = join(c.Reason, c.Message)
				}
			}
			found[vmi.Metadata.Namespace+"/"+vmi.Metadata.Name] = m
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err): // a cluster without KubeVirt
		return nil
	case err != nil:
		return fmt.Errorf("list virtual machine instances: %w", err)
	}
	s.machines = found
	return nil
}

func (s *scene) listMachines(ctx context.Context, o metav1.ListOptions) (*machineList, error) {
	text, err := s.conn.kube.Discovery().RESTClient().Get().
		AbsPath("/apis/kubevirt.io/v1/virtualmachineinstances").
		SetHeader("Accept", runtime.ContentTypeJSON).
		Param("limit", fmt.Sprint(o.Limit)).Param("continue", o.Continue).
		MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var page machineList
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, err
	}
	if page.Kind != "VirtualMachineInstanceList" {
		return nil, errors.New("the answer is no list of them")
	}
	return &page, nil
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
