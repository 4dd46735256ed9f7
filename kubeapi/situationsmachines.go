package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// machine is what KubeVirt says about moving a virtual machine.
type machine struct{ immovable, strategy string }

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
