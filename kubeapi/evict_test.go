package kubeapi

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAnEvictionTellsRefusedFromGoneFromFailed(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	budget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	webhook := apierrors.NewTooManyRequests("admission webhook denied the request", 0)
	overload := apierrors.NewGenericServerResponse(429, "post", pods, "p", "too many", 1, true)
	namesake := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "new"}}
	same := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "old"}}
	conflict := apierrors.NewConflict(pods, "p", errors.New("precondition"))
	for name, test := range map[string]struct {
		answer  error
		now     *corev1.Pod
		nothing bool
		refused bool
	}{
		"accepted":                    {answer: nil, now: same, nothing: true},
		"gone":                        {answer: apierrors.NewNotFound(pods, "p"), nothing: true},
		"a namesake is in its place":  {answer: conflict, now: namesake, nothing: true},
		"gone after a conflict":       {answer: conflict, nothing: true},
		"changed by someone else":     {answer: conflict, now: same},
		"refused by a budget":         {answer: budget, now: same, refused: true},
		"refused by a webhook":        {answer: webhook, now: same, refused: true},
		"turned away in an overload":  {answer: overload, now: same},
		"under two budgets":           {answer: apierrors.NewInternalError(errors.New("more than one")), now: same},
		"the namespace is being gone": {answer: apierrors.NewForbidden(pods, "p", errors.New("terminating")), now: same},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if test.now != nil {
				objects = append(objects, test.now)
			}
			c, kube := withFake(t, objects...)
			kube.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
				e := a.(k8stesting.CreateAction).GetObject().(*policyv1.Eviction)
				if a.GetSubresource() != "eviction" || *e.DeleteOptions.Preconditions.UID != "old" || e.DeleteOptions.GracePeriodSeconds != nil {
					t.Errorf("sent %+v", e)
				}
				return true, nil, test.answer
			})
			err := c.Evict(t.Context(), types.Pod{Namespace: "n", Name: "p", UID: "old"})
			if (err == nil) != test.nothing || errors.Is(err, types.ErrDisruptionBudget) != test.refused {
				t.Errorf("error is %v", err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "evict pod n/p: ") || !strings.Contains(err.Error(), test.answer.Error())) {
				t.Errorf("error does not say what the server said: %v", err)
			}
		})
	}
}

func TestPodsToEvictAreThoseOfKubectlLessTheStoragePods(t *testing.T) {
	yes := true
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{}},
			Spec:       corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		change(p)
		return p
	}
	app := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = name } }
	c, _ := withFake(t,
		pod("app", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", Controller: &yes}}
		}),
		pod("alone", func(*corev1.Pod) {}),
		pod("finished", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("scratch", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}),
		pod("static", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod("orphan of a daemon set", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "gone", Controller: &yes}}
		}),
		pod("attacher", app("csi-attacher")), pod("provisioner", app("csi-provisioner")),
		pod("admission", app("longhorn-admission-webhook")), pod("conversion", app("longhorn-conversion-webhook")),
		pod("deployer", app("longhorn-driver-deployer")), pod("manager", app("longhorn-manager")),
	)
	got, err := c.PodsToEvict(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]types.Pod{}
	for _, p := range got {
		names[p.Name] = p
	}
	check(t, "pods", kubetest.Keys(names), []string{"alone", "app", "finished", "manager", "orphan of a daemon set", "scratch"})
}
