//go:build linux

package devcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

const (
	kubevirtGroup = "kubevirt.io"
	kubevirtAPI   = kubevirtGroup + "/v1"
	// vmiFinalizer keeps a machine's object until its node has stopped it.
	vmiFinalizer = "foregroundDeleteVirtualMachine"
)

// CreateVM creates a virtual machine as KubeVirt has it, and returns the name of
// its launcher pod: a VirtualMachineInstanceReplicaSet, unless the application
// has one, an instance and the pod, each owned by the one before. The instance
// goes through its phases to Running as the pod gets its node and becomes
// ready. A deleted instance stops, if the kubelet of its node lives, and takes
// the pod along; a deleted replica set takes both.
//
// Nothing is ever made anew, and nothing looks after what a lost launcher pod
// leaves: its instance stays as it was. The replica set does not act on its
// replicas. For that it takes the real virt-controller.
func (c *Cluster) CreateVM(ctx context.Context, app App) (string, error) {
	if c.virt != "" && app.Domain == "" {
		app.Domain = app.Name // KubeVirt wants something to select by
	}
	set, err := c.machineSet(ctx, app)
	if err != nil {
		return "", fmt.Errorf("create the replica set of virtual machine %s: %w", app.Name, err)
	}
	if c.virt != "" {
		return c.launched(ctx, set)
	}
	name := app.Name + rand.String(5)
	pod := app.launcher(name)
	vmi, err := app.machine(name, pod, owned(set))
	if err != nil {
		return "", err
	}
	vmi, err = c.Custom("vmi").Namespace(AppNamespace).Create(ctx, vmi, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create virtual machine %s: %w", name, err)
	}
	pod.OwnerReferences = owned(vmi)
	if _, err := c.client.CoreV1().Pods(AppNamespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create the launcher of virtual machine %s: %w", name, err)
	}
	return pod.Name, nil
}

// machineSet returns the replica set of an application, made if need be.
func (c *Cluster) machineSet(ctx context.Context, app App) (*unstructured.Unstructured, error) {
	sets := c.Custom("vmirs").Namespace(AppNamespace)
	template, err := app.machine("", app.launcher(""), nil)
	if err != nil {
		return nil, err
	}
	labels := map[string]any{}
	for name, value := range template.GetLabels() {
		labels[name] = value
	}
	annotations := map[string]any{"descheduler.alpha.kubernetes.io/evict": "true"}
	for name, value := range app.waits() {
		annotations[name] = value
	}
	set := object(kubevirtAPI, "VirtualMachineInstanceReplicaSet", app.meta(app.Name, template.GetLabels()), map[string]any{
		"spec": map[string]any{
			"replicas": int64(1),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{
					"labels":      labels,
					"annotations": annotations,
				},
				"spec": template.Object["spec"],
			},
		},
	})
	made, err := sets.Create(ctx, set, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return sets.Get(ctx, app.Name, metav1.GetOptions{})
	}
	return made, err
}

// machine is the instance whose launcher pod is given.
func (a App) machine(name string, pod *corev1.Pod, owners []metav1.OwnerReference) (*unstructured.Unstructured, error) {
	meta := a.meta(name, map[string]string{labelDomain: a.Domain})
	meta.OwnerReferences = owners
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodSpec{
		Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations, Volumes: a.volumes(),
	})
	if err != nil {
		return nil, fmt.Errorf("describe virtual machine %s: %w", a.Name, err)
	}
	delete(spec, "containers")
	disks := []any{}
	for _, v := range a.volumes() {
		disks = append(disks, map[string]any{"name": v.Name, "disk": map[string]any{"bus": "virtio"}})
	}
	spec["domain"] = map[string]any{"devices": map[string]any{"disks": disks}, "memory": map[string]any{"guest": "512Mi"}}
	// Without a status subresource, what makes an object may say its status.
	return object(kubevirtAPI, "VirtualMachineInstance", meta, map[string]any{
		"spec": spec, "status": map[string]any{"phase": "Pending"},
	}), nil
}

// launcher is the pod that runs the instance of that name.
func (a App) launcher(vmi string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: a.meta("virt-launcher-"+vmi+"-"+rand.String(5), map[string]string{
			labelDomain:           a.Domain,
			"kubevirt.io":         "virt-launcher",
			"vm.kubevirt.io/name": vmi,
		}),
		Spec: a.podSpec("compute", "guest-console-log"),
	}
	pod.Annotations = a.waits()
	return pod
}

func owned(by *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())}
}
