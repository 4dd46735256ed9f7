//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
)

// The labels of application objects.
const (
	labelDomain = "App-Domain-Name"
	labelApp    = "app"
)

// App is an application as EVE creates it in Kubernetes.
type App struct {
	Name     string   // kube name: display name, start of the UUID, purge counter
	Domain   string   // domain name: <UUID>.<version>.<number>
	Replicas int32    // 0 is 1; a virtual machine always has 1
	Node     string   // designated node; "" is none
	Required bool     // it runs on the designated node or not at all
	Prints   Prints   // what its containers do on a real node
	Init     Prints   // what its init container does there; the zero value is none
	Claims   []string // of the volumes that each of its pods mounts; where kubelets are played, they wait for LetStart
}

// CreateApp creates a container application: a ReplicaSet whose pods carry
// only app=<kube name>. The pods run some seconds later.
func (c *Cluster) CreateApp(ctx context.Context, app App) error {
	labels := map[string]string{labelApp: app.Name}
	replicas := max(1, app.Replicas)
	set := &appsv1.ReplicaSet{
		ObjectMeta: app.meta(app.Name, map[string]string{labelDomain: app.Domain}),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: app.waits()},
				Spec:       app.podSpec("app"),
			},
		},
	}
	if _, err := c.client.AppsV1().ReplicaSets(AppNamespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create application %s: %w", app.Name, err)
	}
	return nil
}

// SetBudget creates or changes the PodDisruptionBudget of an application made
// with CreateApp: at least minAvailable of its pods must stay ready. When it
// returns, the budget is in force: before, the API server sends every eviction
// away for ten seconds, which client-go waits for in silence.
func (c *Cluster) SetBudget(ctx context.Context, app string, minAvailable int) error {
	least := intstr.FromInt(minAvailable)
	budgets := c.client.PolicyV1().PodDisruptionBudgets(AppNamespace)
	budget := &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: AppNamespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: app}},
		},
	}
	var set *policyv1.PodDisruptionBudget
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the controller manager writes its status
		old, err := budgets.Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			set, err = budgets.Create(ctx, budget, metav1.CreateOptions{})
			return err
		}
		budget.ResourceVersion = old.ResourceVersion
		set, err = budgets.Update(ctx, budget, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("set the disruption budget of %s: %w", app, err)
	}
	return poll(ctx, "the disruption budget of "+app, func() bool {
		now, err := budgets.Get(ctx, app, metav1.GetOptions{})
		return err == nil && now.Status.ObservedGeneration >= set.Generation
	})
}

// DropBudget deletes the budget of an application. One that asks for nothing is
// not the same: an eviction that was broken off counts against it for two minutes.
func (c *Cluster) DropBudget(ctx context.Context, app string) error {
	err := c.client.PolicyV1().PodDisruptionBudgets(AppNamespace).Delete(ctx, app, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the disruption budget of %s: %w", app, err)
	}
	return nil
}

// WaitRunning returns the pods of the application namespace that match a label
// selector, as soon as there are exactly n, all of them ready and none of them
// stopping.
func (c *Cluster) WaitRunning(ctx context.Context, selector string, n int) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := poll(ctx, fmt.Sprintf("%d running pods %s", n, selector), func() bool {
		list, err := c.client.CoreV1().Pods(AppNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(list.Items) != n {
			return false
		}
		pods = list.Items
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil || !podReady(pod) {
				return false
			}
		}
		return true
	})
	return pods, err
}

// annotationHold keeps our kubelets from finishing a pod's deletion.
const annotationHold = "devcluster/hold-deletion"

// HoldDeletion keeps the kubelet from ever finishing the deletion of a pod, as
// one does whose container does not stop. Hold it before it is deleted; false
// lets it go. A deletion with grace period 0 does not ask the kubelet.
func (c *Cluster) HoldDeletion(ctx context.Context, pod corev1.Pod, hold bool) error {
	value := "null"
	if hold {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotationHold, value)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("hold the deletion of pod %s: %w", pod.Name, err)
	}
	return nil
}

// HoldDeletions does it to every pod that is on node i now.
func (c *Cluster) HoldDeletions(ctx context.Context, i int, hold bool) error {
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.Nodes[i].Name})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", c.Nodes[i].Name, err)
	}
	var errs []error
	for _, pod := range pods.Items {
		if err := c.HoldDeletion(ctx, pod, hold); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func podReady(pod corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (a App) meta(name string, labels map[string]string) metav1.ObjectMeta {
	if a.Domain == "" {
		delete(labels, labelDomain)
	}
	return metav1.ObjectMeta{Name: name, Namespace: AppNamespace, Labels: labels}
}

func (a App) podSpec(containers ...string) corev1.PodSpec {
	spec := corev1.PodSpec{Affinity: a.affinity()}
	for _, name := range containers {
		spec.Containers = append(spec.Containers, a.Prints.container(name))
	}
	if a.Init != (Prints{}) {
		spec.InitContainers = []corev1.Container{a.Init.container("init")}
	}
	if folder := a.Prints.folder(); folder != "" {
		made := corev1.HostPathDirectoryOrCreate
		spec.Volumes = []corev1.Volume{{Name: heartbeats, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &made},
		}}}
	}
	spec.Volumes = append(spec.Volumes, a.volumes()...)
	soon := int64(15)
	for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &soon,
		})
	}
	return spec
}

func (a App) affinity() *corev1.Affinity {
	if a.Node == "" {
		return nil
	}
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{a.Node},
	}}}
	if a.Required {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: term}},
	}}
}
