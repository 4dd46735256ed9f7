package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const (
	namespace = "kubevirt"
	version   = "v1.6.0" // of go.mod
	registry  = "quay.io/kubevirt"
)

// What devcluster puts its own in place of.
const (
	authority = "OWN-AUTHORITY" // in PEM
	address   = "own-address"   // of virt-api, for every API server
)

// port is that of virt-api, virtAPIPort there.
const port int32 = 16470

// printObjects writes what virt-operator installs, but for the pods of virt-api
// and virt-controller, as JSON, one object after the other, in the order to
// create them.
func printObjects(w io.Writer) error {
	list, err := definitions()
	if err != nil {
		return err
	}
	list = append(list, &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"kubevirt.io": ""}},
	})
	list = slices.Concat(list, roles(), installation(), hooks())
	out := json.NewEncoder(w)
	for _, o := range list {
		if err := out.Encode(o); err != nil {
			return fmt.Errorf("print an object: %w", err)
		}
	}
	return nil
}

// definitions are those of all kinds: virt-controller wants to watch each.
func definitions() ([]any, error) {
	var list []any
	for _, define := range []func() (*extv1.CustomResourceDefinition, error){
		components.NewVirtualMachineInstanceCrd, components.NewReplicaSetCrd, components.NewKubeVirtCrd,
		components.NewVirtualMachineCrd, components.NewPresetCrd, components.NewVirtualMachineInstanceMigrationCrd,
		components.NewVirtualMachinePoolCrd, components.NewVirtualMachineSnapshotCrd,
		components.NewVirtualMachineSnapshotContentCrd, components.NewVirtualMachineRestoreCrd,
		components.NewVirtualMachineExportCrd, components.NewVirtualMachineInstancetypeCrd,
		components.NewVirtualMachineClusterInstancetypeCrd, components.NewVirtualMachinePreferenceCrd,
		components.NewVirtualMachineClusterPreferenceCrd, components.NewMigrationPolicyCrd,
		components.NewVirtualMachineCloneCrd,
	} {
		crd, err := define()
		if err != nil {
			return nil, fmt.Errorf("define a kind: %w", err)
		}
		list = append(list, crd)
	}
	return list, nil
}

func roles() []any {
	var list []any
	for _, o := range rbac.GetAllCluster() {
		list = append(list, o)
	}
	for _, o := range slices.Concat(rbac.GetAllApiServer(namespace), rbac.GetAllController(namespace), rbac.GetAllHandler(namespace)) {
		list = append(list, o)
	}
	return list
}

func installation() []any {
	priority := components.NewKubeVirtPriorityClassCR()
	priority.TypeMeta = metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}
	list := []any{priority, &virtv1.KubeVirt{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "KubeVirt"},
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt", Namespace: namespace},
		Spec: virtv1.KubeVirtSpec{Configuration: virtv1.KubeVirtConfiguration{
			DeveloperConfiguration: &virtv1.DeveloperConfiguration{FeatureGates: []string{"HostDevices", "GPU"}},
		}},
	}}
	for _, bundle := range components.NewCAConfigMaps(namespace) {
		bundle.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		bundle.Data = map[string]string{"ca-bundle": authority}
		list = append(list, bundle)
	}
	return append(list, entrance(), handler())
}

// entrance is the service of virt-api: an address for each API server to take as
// it is, for without a proxy nothing leads from a service to endpoints.
func entrance() any {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: components.VirtApiServiceName, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: address},
	}
}

// handler is virt-handler: virt-controller looks whether a node has its pod.
func handler() any {
	return components.NewHandlerDaemonSet(namespace, registry, "", version, version, version, version,
		"", "", "", "", "", "", "", corev1.PullIfNotPresent, nil, nil, "2", nil, false)
}

// hooks make the API servers ask virt-api.
func hooks() []any {
	ca, port := []byte(authority), port
	validating := components.NewVirtAPIValidatingWebhookConfiguration(namespace)
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = ca
		validating.Webhooks[i].ClientConfig.Service.Port = &port
	}
	mutating := components.NewVirtAPIMutatingWebhookConfiguration(namespace)
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = ca
		mutating.Webhooks[i].ClientConfig.Service.Port = &port
	}
	list := []any{validating, mutating}
	for _, s := range components.NewVirtAPIAPIServices(namespace) {
		s.Spec.CABundle = ca
		s.Spec.Service.Port = &port
		list = append(list, s)
	}
	return list
}
