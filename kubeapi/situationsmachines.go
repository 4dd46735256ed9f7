package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// machine is what KubeVirt says about moving a virtual machine.
type machine struct{ immovable, strategy string }

func (s *scene) seeMachines(ctx context.Context) error {
	if !s.virtual {
		return nil
	}
	found := map[string]machine{}
	err := eachPage(ctx, s.conn.virt.VirtualMachineInstances("").List, func(page *kubevirtv1.VirtualMachineInstanceList) error {
		for _, vmi := range page.Items {
			if vmi.Name == "" {
				return errNoName
			}
			var m machine
			if vmi.Spec.EvictionStrategy != nil {
				m.strategy = string(*vmi.Spec.EvictionStrategy)
			}
			for _, c := range vmi.Status.Conditions {
				if c.Type == kubevirtv1.VirtualMachineInstanceIsMigratable && c.Status == corev1.ConditionFalse {
					m.immovable = join(c.Reason, c.Message)
				}
			}
			found[vmi.Namespace+"/"+vmi.Name] = m
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
