package kubeapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func room(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
	}
}

func asksFor(list corev1.ResourceList) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		delete(list, corev1.ResourcePods)
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}
	}
}

func bound(values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: hostIn(values...)}}
	}
}

func hostIn(values ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: values},
	}}}}
}

func TestRoomElsewhereIsCountedAndWhatLacksIsNamed(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	unready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint} }
	soft := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	same := func(*corev1.Node) {}
	tiny := func(n *corev1.Node) { n.Status.Allocatable = room("4", "8Gi", "1") }
	claims := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	scratch := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	for name, row := range map[string]struct {
		pod    func(*corev1.Pod)
		n2, n3 func(*corev1.Node)
		fits   int
		lacks  string
	}{
		"both take it":     {asksFor(room("1", "1Gi", "0")), same, same, 2, ""},
		"one is not ready": {asksFor(room("1", "1Gi", "0")), unready, same, 1, ""},
		"neither may":      {asksFor(room("1", "1Gi", "0")), unready, cordoned, 0, "0 of 2 other nodes can run it (n2: not Ready; n3: cordoned)"},
		"a taint":          {asksFor(nil), tainted, tainted, 0, "0 of 2 other nodes can run it (n2, n3: has the taint gpu=true:NoSchedule)"},
		"a soft taint":     {asksFor(nil), soft, tainted, 1, ""},
		"a tolerated taint": {func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}, tainted, tainted, 2, ""},
		"a tolerated cordon":  {func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }, cordoned, unready, 1, ""},
		"affinity to here":    {bound("n1"), same, same, 0, "0 of 2 other nodes can run it (n2, n3: does not match its node selector or node affinity)"},
		"affinity to one":     {bound("n1", "n3"), same, same, 1, ""},
		"a selector for here": {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} }, same, same, 0, "0 of 2 other nodes can run it (n2, n3: does not match its node selector or node affinity)"},
		"no cpu": {asksFor(room("3500m", "1Gi", "0")), same, cordoned, 0, "0 of 2 other nodes can run it (" +
			"n2: has 3 of cpu left, it requests 3500m; n3: cordoned)"},
		"no memory, no cpu": {asksFor(room("5", "16Gi", "0")), same, cordoned, 0, "0 of 2 other nodes can run it (" +
			"n2: has 3 of cpu left, it requests 5 and has 7Gi of memory left, it requests 16Gi; n3: cordoned)"},
		"a device":                     {asksFor(corev1.ResourceList{"eve.network/vf1": resource.MustParse("1")}), same, cordoned, 0, "0 of 2 other nodes can run it (n2: has 0 of eve.network/vf1 left, it requests 1; n3: cordoned)"},
		"nothing of what is overdrawn": {asksFor(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}), func(n *corev1.Node) { n.Status.Allocatable = room("500m", "8Gi", "10") }, cordoned, 1, ""},
		"no pod slot":                  {asksFor(nil), tiny, cordoned, 0, "0 of 2 other nodes can run it (n2: already runs 1 pods, its maximum; n3: cordoned)"},
		"a volume":                     {claims, same, same, 0, "0 of 2 other nodes can run it (n2, n3: cannot use its volume pv-data)"},
		"an own volume":                {scratch, same, same, 1, ""},
		"it has ended":                 {func(p *corev1.Pod) { bound("n1")(p); p.Status.Phase = corev1.PodSucceeded }, same, same, 0, ""},
		"it is pinned": {func(p *corev1.Pod) {
			p.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)}}
		}, same, same, 0, "its spec.nodeName is n1"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := kubetest.TestPod("shop", "till", "n1")
			row.pod(&pod)
			// n2 has to bear 1 CPU and 1 GiB, in two parts; a pod that has ended weighs nothing.
			busy, ended, pending := kubetest.TestPod("shop", "busy", "n2"), kubetest.TestPod("shop", "ended", "n2"), kubetest.TestPod("shop", "pending", "")
			asksFor(room("500m", "512Mi", "0"))(&busy)
			asksFor(room("4", "8Gi", "0"))(&ended)
			asksFor(room("4", "8Gi", "0"))(&pending)
			ended.Status.Phase = corev1.PodFailed
			n2, n3 := ready("n2"), ready("n3")
			row.n2(&n2)
			row.n3(&n3)
			volume := func(claim string, nodes ...string) corev1.PersistentVolume {
				v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim}}
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
				v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: hostIn(nodes...)}
				return v
			}
			got, err := meets(t, lists{
				podsPath: podList(pod, busy, busy, ended, pending), nodesPath: nodeList(ready("n1"), n2, n3),
				volumesPath: volumeList(volume("data", "n1"), volume("till-v", "n1", "n3"), corev1.PersistentVolume{}), budgetsPath: budgetList(),
			}).Situations(t.Context(), "n1", []types.Pod{{Namespace: "shop", Name: "till"}})
			if err != nil || len(got) != 1 {
				t.Fatal(err)
			}
			if got[0].Fits != row.fits || got[0].Lacks != row.lacks {
				t.Errorf("got %d, %q, want %d, %q", got[0].Fits, got[0].Lacks, row.fits, row.lacks)
			}
		})
	}
}

func TestALoneNodeHasNoRoomElsewhereAndManyAreNotAllNamed(t *testing.T) {
	pod := kubetest.TestPod("shop", "till", "n1")
	bound("n1")(&pod)
	nodes := []corev1.Node{ready("n1")}
	for _, want := range []string{
		"there is no other node",
		"0 of 7 other nodes can run it (n2, n3, n4, n5, n6 and 2 more: does not match its node selector or node affinity)",
	} {
		got, err := meets(t, lists{podsPath: podList(pod), nodesPath: nodeList(nodes...), volumesPath: volumeList(), budgetsPath: budgetList()}).
			Situations(t.Context(), "n1", []types.Pod{{Namespace: "shop", Name: "till"}})
		if err != nil || len(got) != 1 || got[0].Lacks != want {
			t.Errorf("%v, %+v, want %q", err, got, want)
		}
		for _, name := range []string{"n8", "n7", "n6", "n5", "n4", "n3", "n2"} {
			nodes = append(nodes, ready(name))
		}
	}
}
