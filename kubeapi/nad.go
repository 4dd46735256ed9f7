package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/types"
)

const (
	passthroughManager = "zedkube-passthrough"
	passthroughLabel   = "zedkube.github.io/passthrough"
	neededAnnotation   = "zedkube.github.io/needed-by"
)

var (
	errForeignNAD = errors.New("there is one with another configuration that is not zedkube's")
	errNADGoes    = errors.New("the former one is still being deleted")
	errNADGone    = errors.New("it was deleted meanwhile")
	errNoOwner    = errors.New("the Node of its owner is unknown")
)

// NADs lists the attachments of ports that carry zedkube's label. Its error
// wraps types.ErrNotInstalled where the server knows no such objects.
func (c *Client) NADs(ctx context.Context) ([]types.NAD, error) {
	var found []types.NAD
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		list := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			o.LabelSelector = passthroughLabel + "=true"
			return nadsOn(conn).List(ctx, o)
		}
		return knownNADs(pages(ctx, list, func(l *unstructured.UnstructuredList) error {
			if l.GetKind() != nadKind+"List" {
				return errOther
			}
			for i := range l.Items {
				// The label on an object of another name is somebody's own idea.
				if ifname, ok := types.NADInterface(l.Items[i].GetName()); ok {
					found = append(found, nadOf(&l.Items[i], ifname))
				}
			}
			return nil
		}))
	})
	if err != nil {
		return nil, fmt.Errorf("list network attachments: %w", err)
	}
	return found, nil
}

// EnsureNAD makes the attachment of the port for every node that has one of
// that name, or puts it right, and notes that the Node owner needs it. One
// without zedkube's label becomes zedkube's where it says the same, as that of
// EVE's own zedkube does; else it is left alone, and that is an error.
func (c *Client) EnsureNAD(ctx context.Context, ifname string, owner types.Node) error {
	name, err := types.NADName(ifname)
	act := "ensure network attachment " + name
	if err == nil && (owner.Name == "" || owner.UID == "") {
		err = errNoOwner
	}
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.changeNAD(ctx, "ensure nad", act, name, func(ctx context.Context, conn *connection, o *unstructured.Unstructured) error {
		if o == nil {
			return makeNAD(ctx, conn, name, ifname, owner)
		}
		same, ours := sameConfig(o, ifname), ourNAD(o)
		owners, _ := ownersOf(o)
		switch {
		case o.GetDeletionTimestamp() != nil:
			return errNADGoes
		case !ours && !same:
			return errForeignNAD
		case ours && same && owners[owner.Name] == owner.UID:
			return nil
		}
		owners[owner.Name] = owner.UID
		patch := values{"metadata": values{"labels": values{passthroughLabel: "true"}, "annotations": values{neededAnnotation: text(owners)}}}
		if !same {
			patch["spec"] = values{"config": nadConfig(ifname)}
		}
		return patchNAD(ctx, conn, o, patch)
	})
}

// ReleaseNAD takes owners off the attachment: names of nodes, with the UIDs
// that they have to be noted under, "" for any. One that is left without owners
// is deleted, unless it is to be kept. What does not carry zedkube's label, or
// does not say who needs it, is left alone.
func (c *Client) ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error {
	name, err := types.NADName(ifname)
	act := "release network attachment " + name
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.changeNAD(ctx, "release nad", act, name, func(ctx context.Context, conn *connection, o *unstructured.Unstructured) error {
		if o == nil || !ourNAD(o) {
			return nil
		}
		noted, known := ownersOf(o)
		left := maps.Clone(noted)
		maps.DeleteFunc(left, func(node, uid string) bool {
			which, goes := owners[node]
			return goes && (which == "" || which == uid)
		})
		switch {
		case !known:
			return nil
		case len(left) == 0 && !keep:
			return deleteNAD(ctx, conn, o)
		case len(left) == len(noted):
			return nil
		}
		return patchNAD(ctx, conn, o, annotationsPatch(values{neededAnnotation: text(left)}))
	})
}

// changeNAD has change work on the fresh object, nil for none, and anew for as
// long as another node is faster: every write is for the version that it saw.
func (c *Client) changeNAD(ctx context.Context, op, act, name string, change func(context.Context, *connection, *unstructured.Unstructured) error) error {
	raced := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errNADGone)
	}
	return c.write(ctx, deed{op, "nad/" + Namespace + "/" + name}, act, func(ctx context.Context, conn *connection) error {
		return knownNADs(retry.OnError(untilDone, raced, func() error {
			o, err := nadsOn(conn).Get(ctx, name, metav1.GetOptions{})
			switch {
			case absent(err):
				o = nil
			case err != nil:
				return err
			case !isNAD(o, name):
				return errOther
			}
			return change(ctx, conn, o)
		}))
	})
}

func makeNAD(ctx context.Context, conn *connection, name, ifname string, owner types.Node) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": nads.GroupVersion().String(), "kind": nadKind,
		"metadata": map[string]any{
			"name": name, "namespace": Namespace,
			"labels":      map[string]any{passthroughLabel: "true"},
			"annotations": map[string]any{neededAnnotation: text(map[string]string{owner.Name: owner.UID})},
		},
		"spec": map[string]any{"config": nadConfig(ifname)},
	}}
	o, err := nadsOn(conn).Create(ctx, o, metav1.CreateOptions{FieldManager: passthroughManager})
	return answeredNAD(o, name, err)
}

func patchNAD(ctx context.Context, conn *connection, o *unstructured.Unstructured, patch values) error {
	data, err := json.Marshal(forVersion(o.GetResourceVersion(), patch))
	if err != nil {
		return err
	}
	name := o.GetName()
	o, err = nadsOn(conn).Patch(ctx, name, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: passthroughManager})
	if absent(err) {
		return errNADGone
	}
	return answeredNAD(o, name, err)
}

// deleteNAD deletes this very version: another node may need it since.
func deleteNAD(ctx context.Context, conn *connection, o *unstructured.Unstructured) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := nadsOn(conn).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if absent(err) {
		return nil
	}
	return err
}
