package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// RepairAnnotation is in docs/wire.md, "App objects".
const RepairAnnotation = "zedkube.github.io/repair"

var (
	errNoReplicas = errors.New("nothing is scaled to 0")
	errNoHost     = errors.New("an affinity to no node")
	errNoKind     = errors.New("no such kind of replica set")
)

// SetWanted sets how many replicas this very set wants, at least 1. It returns
// an error that wraps types.ErrConflict when the set is not of set.Version any
// more, or gone.
func (c *Client) SetWanted(ctx context.Context, set types.AppSet, replicas int32) error {
	act := fmt.Sprintf("set replicas of %s %s to %d", set.Kind, set.Name, replicas)
	if replicas < 1 {
		return fmt.Errorf("%s: %w", act, errNoReplicas)
	}
	return c.patchSet(ctx, "scale", act, set, func(context.Context, setAPI) (access.Values, error) {
		return access.Values{"spec": access.Values{"replicas": replicas}}, nil
	})
}

// NoteRepair writes the note on this very set; a zero one is removed. It returns
// an error that wraps types.ErrConflict when the set is not of set.Version any
// more, or gone.
func (c *Client) NoteRepair(ctx context.Context, set types.AppSet, note types.RepairNote) error {
	act := fmt.Sprintf("note repair on %s %s", set.Kind, set.Name)
	patch, err := notePatch(note)
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.patchSet(ctx, "note repair", act, set, func(context.Context, setAPI) (access.Values, error) { return patch, nil })
}

// notePatch removes a zero note.
func notePatch(note types.RepairNote) (access.Values, error) {
	if note == (types.RepairNote{}) {
		return access.AnnotationsPatch(access.Values{RepairAnnotation: nil}), nil
	}
	text, err := access.Annotation(note)
	if err != nil {
		return nil, err
	}
	return access.AnnotationsPatch(access.Values{RepairAnnotation: text}), nil
}

// SetAffinity has the template of this very set ask for the node by host name:
// as a requirement, or as one preference of weight 100. Whatever else its
// affinity says stays. The note is written with it. It returns an error that
// wraps types.ErrConflict when the set is not of set.Version any more, or gone.
func (c *Client) SetAffinity(ctx context.Context, set types.AppSet, node string, required bool, note types.RepairNote) error {
	act := fmt.Sprintf("set affinity of %s %s to node %s", set.Kind, set.Name, node)
	if node == "" {
		return fmt.Errorf("%s: %w", act, errNoHost)
	}
	patch, err := notePatch(note)
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.patchSet(ctx, "set affinity", act, set, func(ctx context.Context, api setAPI) (access.Values, error) {
		now, affinity, err := api.get(ctx, set.Name)
		switch {
		case access.NotFound(err):
			return nil, fmt.Errorf("%w: it is gone", types.ErrConflict)
		case err != nil:
			return nil, err
		case now.GetName() != set.Name:
			return nil, access.ErrOther
		case string(now.GetUID()) != set.UID || now.GetResourceVersion() != set.Version:
			return nil, types.ErrConflict
		}
		var old *corev1.NodeAffinity
		if affinity != nil {
			old = affinity.NodeAffinity
		}
		is := WithHost(old, node, required)
		if equality.Semantic.DeepEqual(old, is) {
			return nil, nil
		}
		patch["spec"] = affinitySpec(is)
		return patch, nil
	})
}

// affinitySpec names both parts of the node affinity, or a merge would leave the
// one that is to go.
func affinitySpec(a *corev1.NodeAffinity) access.Values {
	affinity := access.Values{ // of which nil is null
		"requiredDuringSchedulingIgnoredDuringExecution":  a.RequiredDuringSchedulingIgnoredDuringExecution,
		"preferredDuringSchedulingIgnoredDuringExecution": a.PreferredDuringSchedulingIgnoredDuringExecution,
	}
	return access.Values{"template": access.Values{"spec": access.Values{"affinity": access.Values{"nodeAffinity": affinity}}}}
}

// patchSet sends what change says, nothing if that is nil, for the version and
// the UID that the caller saw.
func (c *Client) patchSet(ctx context.Context, op, act string, set types.AppSet, change func(context.Context, setAPI) (access.Values, error)) error {
	if set.UID == "" || set.Version == "" {
		return fmt.Errorf("%s: %w", act, access.ErrNoUID)
	}
	operation := access.Operation{Op: op, Target: strings.ToLower(set.Kind) + "/" + access.Namespace + "/" + set.Name}
	return c.Write(ctx, operation, act, func(ctx context.Context, conn *access.Connection) error {
		api, err := setsOf(conn, set.Kind)
		if err != nil {
			return err
		}
		patch, err := change(ctx, api)
		if patch == nil || err != nil {
			return err
		}
		access.ForVersion(set.Version, patch)["metadata"].(access.Values)["uid"] = set.UID
		now, err := api.patch(ctx, set.Name, patch)
		switch {
		case access.NotFound(err):
			return fmt.Errorf("%w: it is gone", types.ErrConflict)
		case ofAnother(err):
			return fmt.Errorf("%w: %w", types.ErrConflict, err)
		case err == nil && now.GetName() != set.Name:
			return access.ErrOther
		}
		return err
	})
}

// setAPI is what the verbs need of the API of one kind of replica set.
type setAPI struct {
	get   func(ctx context.Context, name string) (metav1.Object, *corev1.Affinity, error) // the set, and the affinity of its template
	patch func(ctx context.Context, name string, merge access.Values) (metav1.Object, error)
}

func setsOf(conn *access.Connection, kind string) (setAPI, error) {
	switch kind {
	case types.KindReplicaSet:
		api := conn.Kube.AppsV1().ReplicaSets(access.Namespace)
		return setAPIOf(api, func(s *appsv1.ReplicaSet) *corev1.Affinity { return s.Spec.Template.Spec.Affinity }), nil
	case types.KindVMIReplicaSet:
		api := conn.Virt.VirtualMachineInstanceReplicaSets(access.Namespace)
		return setAPIOf(api, func(s *kubevirtv1.VirtualMachineInstanceReplicaSet) *corev1.Affinity {
			if s.Spec.Template == nil {
				return nil
			}
			return s.Spec.Template.Spec.Affinity
		}), nil
	}
	return setAPI{}, errNoKind
}

func setAPIOf[T metav1.Object](api interface {
	access.Objects[T]
	access.Patcher[T]
}, affinity func(T) *corev1.Affinity,
) setAPI {
	return setAPI{
		get: func(ctx context.Context, name string) (metav1.Object, *corev1.Affinity, error) {
			s, err := api.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, nil, err
			}
			return s, affinity(s), nil
		},
		patch: func(ctx context.Context, name string, merge access.Values) (metav1.Object, error) {
			return access.Merge(ctx, api, name, access.AppsManager, merge)
		},
	}
}

// ofAnother reports that the object of that name and version has another UID: a
// restored etcd counts from an earlier version on.
func ofAnother(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// Client has the verbs on virtual machine instances and replica sets.
type Client struct{ *access.Session }

// DeleteVMI deletes this very instance, not a namesake, and returns nil when it
// is gone or goes as soon as KubeVirt has ended it. Its replica set makes
// another one.
func (c *Client) DeleteVMI(ctx context.Context, vmi types.VMI) error {
	op := access.Operation{Op: "delete vmi", Target: "vmi/" + access.Namespace + "/" + vmi.Name}
	return access.DeleteExactly(ctx, c.Session, op, "delete virtual machine instance "+vmi.Name, vmi.Name, vmi.UID, nil, instances)
}

func instances(conn *access.Connection) access.Objects[*kubevirtv1.VirtualMachineInstance] {
	return conn.Virt.VirtualMachineInstances(access.Namespace)
}

// ForgetVMI deletes this very instance with grace 0 and without its finalizers,
// for which a node that is gone does nothing any more. It returns nil when the
// instance is gone. It is deleted first: to what is being deleted nobody can add
// a finalizer, and a process that dies in between has left nothing that runs
// without them.
func (c *Client) ForgetVMI(ctx context.Context, vmi types.VMI) error {
	act := "forget virtual machine instance " + vmi.Name
	if vmi.UID == "" {
		return fmt.Errorf("%s: %w", act, access.ErrNoUID)
	}
	op := access.Operation{Op: "forget vmi", Target: "vmi/" + access.Namespace + "/" + vmi.Name}
	return c.Write(ctx, op, act, func(ctx context.Context, conn *access.Connection) error {
		if err := access.DeleteObject(ctx, instances(conn), vmi.Name, vmi.UID, new(int64)); err != nil {
			return err
		}
		return access.RetryOnConflict(func() error { return unfinalize(ctx, conn, vmi.Name, ktypes.UID(vmi.UID)) })
	})
}

// unfinalize empties the finalizers of the instance, if it is that one.
func unfinalize(ctx context.Context, conn *access.Connection, name string, uid ktypes.UID) error {
	api := conn.Virt.VirtualMachineInstances(access.Namespace)
	now, err := api.Get(ctx, name, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
		return nil
	case err != nil:
		return err
	case now.Name != name || now.UID == "" || now.ResourceVersion == "":
		return access.ErrOther
	case now.UID != uid:
		return nil
	case now.DeletionTimestamp == nil:
		return fmt.Errorf("%w: it is not being deleted", types.ErrConflict)
	case len(now.Finalizers) == 0:
		return nil
	}
	patch := access.ForVersion(now.ResourceVersion, access.Values{"metadata": access.Values{"finalizers": nil}})
	_, err = access.Merge(ctx, api, name, access.AppsManager, patch)
	return access.UnlessGone(err)
}
