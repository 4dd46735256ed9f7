package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const (
	passthroughManager = "zedkube-passthrough" //nolint:gosec // a name
	// PassthroughLabel marks the attachments that zedkube made.
	PassthroughLabel = "zedkube.github.io/passthrough" //nolint:gosec // a name
	// NeededAnnotation names the nodes whose applications need the attachment.
	NeededAnnotation = "zedkube.github.io/needed-by"
)

var (
	// ErrNADGoes is returned until the former attachment of that name is deleted.
	ErrNADGoes = errors.New("the previous one is still being deleted")
	errNADGone = errors.New("it was deleted meanwhile")
	// ErrNoOwner is returned where the UID of the owning Node is not known.
	ErrNoOwner = errors.New("the Node of its owner is unknown")
)

// NADs lists the attachments of ports that carry zedkube's label. Its error
// wraps types.ErrNotInstalled where the server knows no such objects.
func (c *Client) NADs(ctx context.Context) ([]types.NAD, error) {
	return access.Read(ctx, c.Session, "list network attachments", func(ctx context.Context, conn *access.Connection) (found []types.NAD, err error) {
		err = eachNAD(ctx, conn, PassthroughLabel+"=true", func(o *unstructured.Unstructured) {
			// The label on an object of another name is somebody's own idea.
			if ifname, ok := types.NADInterface(o.GetName()); ok {
				found = append(found, nadOf(o, ifname))
			}
		})
		return found, err
	})
}

// EnsureNAD makes the attachment of the port for every node that has one of
// that name, or puts it right, and notes that the Node owner needs it. One
// without zedkube's label becomes zedkube's where it says the same, as that of
// EVE's own zedkube does; else it is left alone, and that is an error.
func (c *Client) EnsureNAD(ctx context.Context, ifname string, owner types.Node) error {
	name, err := types.NADName(ifname)
	act := "ensure network attachment " + name
	if err == nil && (owner.Name == "" || owner.UID == "") {
		err = ErrNoOwner
	}
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return c.changeNAD(ctx, "ensure nad", act, name, func(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured) error {
		if o == nil {
			return makeNAD(ctx, conn, name, passthroughManager, NadConfig(ifname), map[string]any{
				"labels":      map[string]any{PassthroughLabel: "true"},
				"annotations": map[string]any{NeededAnnotation: text(map[string]string{owner.Name: owner.UID})},
			})
		}
		same, ours := sameConfig(o, NadConfig(ifname)), ourNAD(o)
		owners, _ := ownersOf(o)
		switch {
		case o.GetDeletionTimestamp() != nil:
			return ErrNADGoes
		case !ours && !same:
			return types.ErrForeignNAD
		case ours && same && owners[owner.Name] == owner.UID:
			return nil
		}
		owners[owner.Name] = owner.UID
		patch := access.AnnotationsPatch(access.Values{NeededAnnotation: text(owners)})
		patch["metadata"].(access.Values)["labels"] = access.Values{PassthroughLabel: "true"}
		if !same {
			patch["spec"] = access.Values{"config": NadConfig(ifname)}
		}
		return patchNAD(ctx, conn, o, passthroughManager, patch)
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
	return c.changeNAD(ctx, "release nad", act, name, func(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured) error {
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
		return patchNAD(ctx, conn, o, passthroughManager, access.AnnotationsPatch(access.Values{NeededAnnotation: text(left)}))
	})
}

// changeNAD has change work on the fresh object, nil for none, and again for as
// long as another node is faster: every write is for the version that it saw.
func (c *Client) changeNAD(ctx context.Context, op, act, name string, change func(context.Context, *access.Connection, *unstructured.Unstructured) error) error {
	raced := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errNADGone)
	}
	operation := access.Operation{Op: op, Target: "nad/" + access.Namespace + "/" + name}
	return c.Write(ctx, operation, act, func(ctx context.Context, conn *access.Connection) error {
		return knownNADs(retry.OnError(access.UntilDone, raced, func() error {
			o, err := NadsOn(conn).Get(ctx, name, metav1.GetOptions{})
			switch {
			case access.NotFound(err):
				o = nil
			case err != nil:
				return err
			case !isNAD(o, name):
				return access.ErrOther
			}
			return change(ctx, conn, o)
		}))
	})
}

// makeNAD makes an attachment with that configuration, and with metadata besides its name.
func makeNAD(ctx context.Context, conn *access.Connection, name, manager, config string, metadata map[string]any) error {
	metadata["name"], metadata["namespace"] = name, access.Namespace
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": nads.GroupVersion().String(), "kind": NadKind,
		"metadata": metadata,
		"spec":     map[string]any{"config": config},
	}}
	o, err := NadsOn(conn).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	return answeredNAD(o, name, err)
}

func patchNAD(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured, manager string, patch access.Values) error {
	name := o.GetName()
	o, err := access.Merge(ctx, NadsOn(conn), name, manager, access.ForVersion(o.GetResourceVersion(), patch))
	if access.NotFound(err) {
		return errNADGone
	}
	return answeredNAD(o, name, err)
}

// deleteNAD deletes this very version: another node may need it since.
func deleteNAD(ctx context.Context, conn *access.Connection, o *unstructured.Unstructured) error {
	return access.UnlessGone(NadsOn(conn).Delete(ctx, o.GetName(), access.Exactly(string(o.GetUID()), o.GetResourceVersion())))
}

// NadKind is the kind that Multus reads.
const NadKind = "NetworkAttachmentDefinition"

var nads = schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}

// NadsOn returns the attachments of zedkube's namespace, as asked for over a connection.
func NadsOn(conn *access.Connection) dynamic.ResourceInterface {
	return conn.Custom.Resource(nads).Namespace(access.Namespace)
}

// eachNAD calls see for each attachment that has those labels, "" for all.
func eachNAD(ctx context.Context, conn *access.Connection, labels string, see func(*unstructured.Unstructured)) error {
	list := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		o.LabelSelector = labels
		return NadsOn(conn).List(ctx, o)
	}
	return knownNADs(access.Pages(ctx, access.StoragePage, list, func(l *unstructured.UnstructuredList) error {
		if l.GetKind() != NadKind+"List" {
			return access.ErrOther
		}
		for i := range l.Items {
			see(&l.Items[i])
		}
		return nil
	}))
}

// nadOf is the row of an attachment for that interface.
func nadOf(o *unstructured.Unstructured, ifname string) types.NAD {
	owners, known := ownersOf(o)
	return types.NAD{
		Interface: ifname, Owners: owners, Unowned: !known,
		Altered: !sameConfig(o, NadConfig(ifname)) || o.GetDeletionTimestamp() != nil,
	}
}

func ourNAD(o *unstructured.Unstructured) bool { return o.GetLabels()[PassthroughLabel] == "true" }

// ownersOf are those noted on the attachment, never nil; false where that
// cannot be read.
func ownersOf(o *unstructured.Unstructured) (owners map[string]string, known bool) {
	note, ok := o.GetAnnotations()[NeededAnnotation]
	if err := json.Unmarshal([]byte(note), &owners); !ok || err != nil || owners == nil {
		return map[string]string{}, false
	}
	return owners, true
}

// NadConfig is what Multus hands to the CNI plug-in host-device.
func NadConfig(ifname string) string {
	type plugin struct {
		Type   string `json:"type"`
		Device string `json:"device"`
	}
	return text(struct {
		CNIVersion string   `json:"cniVersion"`
		Plugins    []plugin `json:"plugins"`
	}{"0.3.1", []plugin{{"host-device", ifname}}})
}

// sameConfig compares by value: EVE's own zedkube writes it in many lines.
func sameConfig(o *unstructured.Unstructured, wanted string) bool {
	config, _, err := unstructured.NestedString(o.Object, "spec", "config")
	var is, want any
	if err != nil || json.Unmarshal([]byte(config), &is) != nil || json.Unmarshal([]byte(wanted), &want) != nil {
		return false
	}
	return reflect.DeepEqual(is, want)
}

// text is v as JSON; v is made of strings.
func text(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// isNAD reports that o is the attachment of that name, and of some version.
func isNAD(o *unstructured.Unstructured, name string) bool {
	return o.GetKind() == NadKind && o.GetName() == name && o.GetNamespace() == access.Namespace && o.GetResourceVersion() != ""
}

// answeredNAD is the error of a write that was answered with o.
func answeredNAD(o *unstructured.Unstructured, name string, err error) error {
	if err == nil && !isNAD(o, name) {
		return access.ErrOther
	}
	return err
}

// knownNADs says what it means that there is nothing under the path of a kind.
func knownNADs(err error) error {
	if apierrors.IsNotFound(err) && !access.NotFound(err) {
		return fmt.Errorf("%s is %w, so Multus is not installed (yet): %w", NadKind, types.ErrNotInstalled, err)
	}
	return err
}

// Client has the verbs on network attachments and the SR-IOV device plug-in.
type Client struct{ *access.Session }
