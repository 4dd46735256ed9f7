package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

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
	return c.patchSet(ctx, "scale", act, set, func(context.Context, setAPI) (values, error) {
		return values{"spec": values{"replicas": replicas}}, nil
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
	return c.patchSet(ctx, "note repair", act, set, func(context.Context, setAPI) (values, error) { return patch, nil })
}

// notePatch removes a zero note.
func notePatch(note types.RepairNote) (values, error) {
	if note == (types.RepairNote{}) {
		return annotationsPatch(values{repairAnnotation: nil}), nil
	}
	text, err := annotation(note)
	if err != nil {
		return nil, err
	}
	return annotationsPatch(values{repairAnnotation: text}), nil
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
	return c.patchSet(ctx, "set affinity", act, set, func(ctx context.Context, api setAPI) (values, error) {
		now, affinity, err := api.get(ctx, set.Name)
		switch {
		case absent(err):
			return nil, fmt.Errorf("%w: it is gone", types.ErrConflict)
		case err != nil:
			return nil, err
		case now.GetName() != set.Name:
			return nil, errOther
		case string(now.GetUID()) != set.UID || now.GetResourceVersion() != set.Version:
			return nil, types.ErrConflict
		}
		var old *corev1.NodeAffinity
		if affinity != nil {
			old = affinity.NodeAffinity
		}
		is := withHost(old, node, required)
		if equality.Semantic.DeepEqual(old, is) {
			return nil, nil
		}
		patch["spec"] = affinitySpec(is)
		return patch, nil
	})
}

// affinitySpec names both parts of the node affinity, or a merge would leave the
// one that is to go.
func affinitySpec(a *corev1.NodeAffinity) values {
	affinity := values{"requiredDuringSchedulingIgnoredDuringExecution": nil, "preferredDuringSchedulingIgnoredDuringExecution": nil}
	if a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		affinity["requiredDuringSchedulingIgnoredDuringExecution"] = a.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		affinity["preferredDuringSchedulingIgnoredDuringExecution"] = a.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return values{"template": values{"spec": values{"affinity": values{"nodeAffinity": affinity}}}}
}

// patchSet sends what change says, nothing if that is nil, for the version and
// the UID that the caller saw.
func (c *Client) patchSet(ctx context.Context, op, act string, set types.AppSet, change func(context.Context, setAPI) (values, error)) error {
	if set.UID == "" || set.Version == "" {
		return fmt.Errorf("%s: %w", act, errNoUID)
	}
	return c.write(ctx, deed{op, strings.ToLower(set.Kind) + "/" + Namespace + "/" + set.Name}, act, func(ctx context.Context, conn *connection) error {
		api, err := conn.sets(set.Kind)
		if err != nil {
			return err
		}
		patch, err := change(ctx, api)
		if patch == nil || err != nil {
			return err
		}
		forVersion(set.Version, patch)["metadata"].(values)["uid"] = set.UID
		data, err := patchFor(set.Version, patch)
		if err != nil {
			return err
		}
		now, err := api.patch(ctx, set.Name, data)
		switch {
		case absent(err):
			return fmt.Errorf("%w: it is gone", types.ErrConflict)
		case ofAnother(err):
			return fmt.Errorf("%w: %w", types.ErrConflict, err)
		case err == nil && now.GetName() != set.Name:
			return errOther
		}
		return err
	})
}

// setAPI is what the verbs need of the API of one kind of replica set.
type setAPI struct {
	get   func(ctx context.Context, name string) (metav1.Object, *corev1.Affinity, error) // the set, and the affinity of its template
	patch func(ctx context.Context, name string, merge []byte) (metav1.Object, error)
}

func (conn *connection) sets(kind string) (setAPI, error) {
	options := metav1.PatchOptions{FieldManager: appsManager}
	switch kind {
	case types.KindReplicaSet:
		api := conn.kube.AppsV1().ReplicaSets(Namespace)
		return setAPI{
			get: func(ctx context.Context, name string) (metav1.Object, *corev1.Affinity, error) {
				s, err := api.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return nil, nil, err
				}
				return s, s.Spec.Template.Spec.Affinity, nil
			},
			patch: func(ctx context.Context, name string, merge []byte) (metav1.Object, error) {
				return api.Patch(ctx, name, ktypes.MergePatchType, merge, options)
			},
		}, nil
	case types.KindVMIReplicaSet:
		api := conn.virt.VirtualMachineInstanceReplicaSets(Namespace)
		return setAPI{
			get: func(ctx context.Context, name string) (metav1.Object, *corev1.Affinity, error) {
				s, err := api.Get(ctx, name, metav1.GetOptions{})
				if err != nil || s.Spec.Template == nil {
					return s, nil, err
				}
				return s, s.Spec.Template.Spec.Affinity, nil
			},
			patch: func(ctx context.Context, name string, merge []byte) (metav1.Object, error) {
				return api.Patch(ctx, name, ktypes.MergePatchType, merge, options)
			},
		}, nil
	}
	return setAPI{}, errNoKind
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
