package kubevirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// What disables workloads (docs/wire.md, "Disabled workloads").
const (
	DisabledAnnotation = "zedkube.github.io/disabled"
	DisabledName       = "zedkube-disabled-workloads" // of the ConfigMap
	disabledLabel      = "zedkube.github.io/workloads"
	disabledKey        = "disabled.json"

	// Bytes that are taken of what anybody may have written into it: a cordon carries them.
	mostBy     = 253
	mostReason = 400
)

var errNotOurs = errors.New("it has no label " + disabledLabel + "=disabled, so it is not zedkube's")

// DisabledOf is the row of the ConfigMap. One without the label says nothing.
func DisabledOf(m *corev1.ConfigMap) types.DisabledWorkloads {
	var row types.DisabledWorkloads
	if m.Labels[disabledLabel] != "disabled" {
		return row
	}
	if json.Unmarshal([]byte(m.Data[disabledKey]), &row) != nil {
		row = types.DisabledWorkloads{} // that it is there counts
	}
	row.UID, row.By, row.Reason = string(m.UID), access.Cut(row.By, mostBy), access.Cut(row.Reason, mostReason)
	return row
}

// DisabledWorkloads reads it, past all caches; its UID is "" while workloads are enabled.
func (c *Client) DisabledWorkloads(ctx context.Context) (types.DisabledWorkloads, error) {
	return access.Read(ctx, c.Session, "read whether workloads are disabled", func(ctx context.Context, conn *access.Connection) (types.DisabledWorkloads, error) {
		m, err := conn.Kube.CoreV1().ConfigMaps(access.Namespace).Get(ctx, DisabledName, metav1.GetOptions{})
		switch {
		case access.NotFound(err):
			return types.DisabledWorkloads{}, nil
		case err == nil && m.Name != DisabledName:
			err = access.ErrOther
		}
		return DisabledOf(m), err
	})
}

// DisableWorkloads makes the object; one that is there stays as it is.
func (c *Client) DisableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	text, err := access.Annotation(d)
	if err != nil {
		return fmt.Errorf("disable workloads: %w", err)
	}
	op := access.Operation{Op: "disable workloads", Target: "configmap/" + access.Namespace + "/" + DisabledName}
	return c.Write(ctx, op, "disable workloads", func(ctx context.Context, conn *access.Connection) error {
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: DisabledName, Labels: map[string]string{disabledLabel: "disabled"}},
			Data:       map[string]string{disabledKey: text},
		}
		now, err := conn.Kube.CoreV1().ConfigMaps(access.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: access.AppsManager})
		if apierrors.IsAlreadyExists(err) {
			now, err = conn.Kube.CoreV1().ConfigMaps(access.Namespace).Get(ctx, DisabledName, metav1.GetOptions{})
		}
		if err == nil && DisabledOf(now).UID == "" {
			return errNotOurs
		}
		return err
	})
}

// EnableWorkloads deletes it, if it is that one.
func (c *Client) EnableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	op := access.Operation{Op: "enable workloads", Target: "configmap/" + access.Namespace + "/" + DisabledName}
	return access.DeleteExactly(ctx, c.Session, op, "enable workloads", DisabledName, d.UID, nil, func(conn *access.Connection) access.Objects[*corev1.ConfigMap] {
		return conn.Kube.CoreV1().ConfigMaps(access.Namespace)
	})
}

// ScaleSet makes this very set what to says, with the note of what it was in the same
// patch, so that there is never one without the other. Only for workloads that are disabled
// or enabled: a repair scales no set to 0. It returns an error that wraps types.ErrConflict
// when the set is not of set.Version any more, or gone.
func (c *Client) ScaleSet(ctx context.Context, set types.AppSet, to types.SetScale) error {
	op := "enable set"
	notes := access.Values{DisabledAnnotation: nil}
	if to.Former != nil {
		text, err := access.Annotation(to.Former)
		if err != nil {
			return fmt.Errorf("disable %s %s: %w", set.Kind, set.Name, err)
		}
		op, notes[DisabledAnnotation] = "disable set", text
	}
	spec := access.Values{"replicas": to.Replicas}
	if set.Kind == types.KindVMIReplicaSet {
		spec["paused"] = nullUnless(to.Paused)
	}
	act := fmt.Sprintf("%s %s %s: replicas %d", op, set.Kind, set.Name, to.Replicas)
	return c.patchSet(ctx, op, act, set, func(context.Context, setAPI) (access.Values, error) {
		patch := access.AnnotationsPatch(notes)
		patch["spec"] = spec
		return patch, nil
	})
}

func nullUnless(is bool) any {
	if is {
		return true
	}
	return nil
}

// MachineOf is the row of a VirtualMachine.
func MachineOf(m *kubevirtv1.VirtualMachine) types.VirtualMachine {
	row := types.VirtualMachine{
		Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), Version: m.ResourceVersion, Deleted: m.DeletionTimestamp != nil,
		Run: types.RunState{Running: m.Spec.Running, Strategy: string(ptr.Deref(m.Spec.RunStrategy, ""))}, Created: m.Status.Created,
		Stopped: m.Status.PrintableStatus == kubevirtv1.VirtualMachineStatusStopped,
	}
	if m.Spec.Template != nil {
		for _, v := range m.Spec.Template.Spec.Volumes {
			row.Claims = append(row.Claims, machineClaim(v.VolumeSource))
		}
		row.Claims = access.Sorted(row.Claims)
	}
	if was, ok := access.Annotated[types.FormerRun](m.Annotations, DisabledAnnotation); ok && was.UID == row.UID && !was.Halted() {
		row.Former = &was
	}
	return row
}

// RunMachine makes this very VirtualMachine run as to says, with the note of how it ran in
// the same patch, nil for none. It returns an error that wraps types.ErrConflict when it is
// not of m.Version any more, or gone.
func (c *Client) RunMachine(ctx context.Context, m types.VirtualMachine, to types.RunState, former *types.FormerRun) error {
	op, note := "enable machine", any(nil)
	if former != nil {
		text, err := access.Annotation(former)
		if err != nil {
			return fmt.Errorf("disable virtual machine %s: %w", m.Key(), err)
		}
		op, note = "disable machine", text
	}
	if m.UID == "" || m.Version == "" {
		return fmt.Errorf("%s %s: %w", op, m.Key(), access.ErrNoUID)
	}
	return c.Write(ctx, access.Operation{Op: op, Target: "virtualmachine/" + m.Key()}, op+" "+m.Key(), func(ctx context.Context, conn *access.Connection) error {
		spec := access.Values{"running": nil, "runStrategy": nil}
		if to.Running != nil {
			spec["running"] = *to.Running
		}
		if to.Strategy != "" {
			spec["runStrategy"] = to.Strategy
		}
		patch := access.ForVersion(m.Version, access.AnnotationsPatch(access.Values{DisabledAnnotation: note}))
		patch["spec"] = spec
		patch["metadata"].(access.Values)["uid"] = m.UID
		now, err := access.Merge(ctx, conn.Virt.VirtualMachines(m.Namespace), m.Name, access.AppsManager, patch)
		switch {
		case access.NotFound(err), ofAnother(err):
			return fmt.Errorf("%w: %w", types.ErrConflict, err)
		case err == nil && now.Name != m.Name:
			return access.ErrOther
		}
		return err
	})
}
