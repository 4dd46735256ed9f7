//go:build linux

package kubeapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// plight is a cluster whose third node has a taint.
type plight struct {
	*devcluster.Cluster
	agent *agent
	node  string // the first, where the pods are
}

func TestPodsInTheWayAgainstARealAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Nodes: 3, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	taint := `{"spec":{"taints":[{"key":"gpu","value":"true","effect":"NoSchedule"}]}}`
	if _, err := c.Client().CoreV1().Nodes().Patch(ctx, c.Nodes[2].Name, ktypes.MergePatchType, []byte(taint), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p := &plight{Cluster: c, agent: newAgent(t, c, 0), node: c.Nodes[0].Name}
	t.Run("stories", func(t *testing.T) {
		for name, story := range map[string]func(*testing.T){
			"room elsewhere":                       p.room,
			"a pinned pod, a bound one":            p.pinned,
			"a finalizer":                          p.finalizer,
			"a budget with its numbers":            p.budget,
			"two budgets on one pod":               p.twoBudgets,
			"a virtual machine that cannot move":   p.machine,
			"a budget that cannot count its pods":  p.trouble,
			"a planned eviction leaves the pod be": p.planned,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); story(t) })
		}
	})
	everywhere(t, c)
	pods, err := p.agent.PodsToEvict(ctx, p.node)
	if err != nil || slices.ContainsFunc(pods, func(pod types.Pod) bool { return strings.HasPrefix(pod.Name, "everywhere") }) {
		t.Errorf("a drain would evict the pod of a daemon set: %v, %v", pods, err)
	}
	p.usesVolume(t)
	needed(t, c, "list poddisruptionbudgets.policy", "list persistentvolumes", "list daemonsets.apps", "get persistentvolumeclaims")
}

// usesVolume asks who uses which volume on the first node.
func (p *plight) usesVolume(t *testing.T) {
	claim, err := p.CreateClaim(t.Context(), "vol-used")
	if err != nil {
		t.Fatal(err)
	}
	p.make(t, "user", func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	})
	users, err := p.agent.VolumeUsers(t.Context(), p.node)
	if err != nil || len(users["vol-used"]) != 1 || users["vol-used"][0].Name != "user" {
		t.Errorf("volumes are used by %+v, %v", users, err)
	}
}

// everywhere has a daemon set run on the nodes without a taint.
func everywhere(t *testing.T, c *devcluster.Cluster) {
	labels := map[string]string{"app": "everywhere"}
	_, err := c.Client().AppsV1().DaemonSets(devcluster.AppNamespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/app:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitRunning(t.Context(), "app=everywhere", len(c.Nodes)-1); err != nil {
		t.Fatal(err)
	}
}

// make creates a pod on the first node and returns it once it is there.
func (p *plight) make(t *testing.T, name string, change func(*corev1.Pod)) types.Pod {
	t.Helper()
	pods := p.Client().CoreV1().Pods(kubeapi.Namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"who": name}},
		Spec: corev1.PodSpec{
			NodeName:   p.node,
			Containers: []corev1.Container{{Name: "c", Image: "example.org/app:1"}},
		},
	}
	change(pod)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var row types.Pod
	eventually(t, "pod "+name+" runs", 20*time.Second, func() bool {
		var ok bool
		row, ok = p.agent.own.Get(kubeapi.Namespace + "/" + name)
		return ok && row.Phase == types.PodRunning
	})
	return row
}

func (p *plight) situation(t *testing.T, pod types.Pod) types.PodSituation {
	t.Helper()
	got, err := p.agent.Situations(t.Context(), p.node, []types.Pod{pod})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %+v", err, got)
	}
	return got[0]
}

func (p *plight) cover(t *testing.T, budget, who string, spec policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	if who != "" {
		spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"who": who}}
	}
	budgets := p.Client().PolicyV1().PodDisruptionBudgets(kubeapi.Namespace)
	if _, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: budget}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "budget "+budget+" is counted", 20*time.Second, func() bool {
		b, err := budgets.Get(t.Context(), budget, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration >= b.Generation && len(b.Status.Conditions) > 0
	})
}

func atLeast(n int) policyv1.PodDisruptionBudgetSpec {
	least := intstr.FromInt(n)
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}
}

// unbound leaves the node to the scheduler, which may choose the first only.
func (p *plight) unbound(change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = ""
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node}}},
			}}},
		}}
		change(pod)
	}
}

// room is of pods that the scheduler has put on the first node: the second is
// nearly full, the third has a taint.
func (p *plight) room(t *testing.T) {
	asks := func(name corev1.ResourceName, much string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(much)}
		}
	}
	p.crowd(t, asks(corev1.ResourceCPU, "200"))
	second, third := p.Nodes[1].Name, p.Nodes[2].Name
	tainted := fmt.Sprintf("%s: has the taint gpu=true:NoSchedule", third)
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		fits   int
		lacks  string
	}{
		"room-one": {asks(corev1.ResourceCPU, "1"), 1, ""},
		"room-tolerant": {func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}, 2, ""},
		"room-cpu":    {asks(corev1.ResourceCPU, "100"), 0, second + ": has 56 of cpu left, it requests 100; " + tainted},
		"room-memory": {asks(corev1.ResourceMemory, "1000Gi"), 1, ""},
		"room-here":   {func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.node} }, 0, second + ": does not match its node selector or node affinity; " + tainted},
	} {
		s := p.situation(t, p.make(t, name, p.unbound(row.change)))
		lacks := row.lacks
		if lacks != "" {
			lacks = "0 of 2 other nodes can run it (" + lacks + ")"
		}
		if s.Pod.NodeName != p.node || s.Pinned || s.Fits != row.fits || s.Lacks != lacks {
			t.Errorf("%s on %s: %d, %q, pinned %v; want %d, %q", name, s.Pod.NodeName, s.Fits, s.Lacks, s.Pinned, row.fits, lacks)
		}
	}
}

// crowd puts a pod on the second node.
func (p *plight) crowd(t *testing.T, change func(*corev1.Pod)) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "crowd"}, Spec: corev1.PodSpec{
		NodeName: p.Nodes[1].Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/app:1"}},
	}}
	change(pod)
	if _, err := p.Client().CoreV1().Pods(kubeapi.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *plight) pinned(t *testing.T) {
	if s := p.situation(t, p.make(t, "nailed", func(*corev1.Pod) {})); !s.Pinned || s.Fits != 0 || s.Lacks != "its spec.nodeName is "+p.node || s.Grace != 30*time.Second {
		t.Errorf("a pod made for its node: %+v", s)
	}
	here := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.node} }
	if s := p.situation(t, p.make(t, "led", p.unbound(here))); s.Pinned || s.Fits != 0 {
		t.Errorf("a pod that selects its node: %+v", s)
	}
}

func (p *plight) finalizer(t *testing.T) {
	pod := p.make(t, "claimed", func(pod *corev1.Pod) {
		second := int64(1)
		pod.Finalizers, pod.Spec.TerminationGracePeriodSeconds = []string{"example.org/backup"}, &second
	})
	if err := p.agent.Evict(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	s := p.situation(t, pod)
	if !slices.Equal(s.Finalizers, []string{"example.org/backup"}) || s.Grace > time.Second || !s.Pod.Terminating() {
		t.Errorf("situation is %+v", s)
	}
	if _, err := p.Client().CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, ktypes.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod that is gone has no situation", 20*time.Second, func() bool {
		got, err := p.agent.Situations(t.Context(), p.node, []types.Pod{pod})
		return err == nil && len(got) == 0
	})
}
