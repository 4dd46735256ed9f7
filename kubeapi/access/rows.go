package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

// Namespace is where EVE keeps the applications and the election's Lease.
const Namespace = types.NamespaceApps

// Reader is a table to look at, which rings when it changes.
type Reader[T any] interface {
	Get(key string) (T, bool)
	All() map[string]T
	Notify(bell chan<- struct{})
}

// Writer is a table to fill. Publishing an unchanged row does nothing. Replace takes one
// step: where the watch of a table that counts as whole could not be taken up again, its
// readers would else see rows of two times side by side.
type Writer[T any] interface {
	Reader[T]
	Sink[T]
}

// Store is what a view writes into.
type Store interface {
	cache.ReflectorStore
	cache.TransformingStore
	Example() any
	OnReplaced(func(version string)) // called after each whole list
}

// Sink takes rows in.
type Sink[T any] interface {
	Publish(key string, v T) error
	Unpublish(key string) error
	Replace(rows map[string]T) error // takes over a whole list
}

// Rows writes what becomes of the objects that a Reflector sees. It is a Store.
type Rows[O metav1.Object, T any] struct {
	To    Sink[T]
	Row   func(O) T
	Key   func(O) string // "" if the object is of no use as it has no name
	Seen  func(O)        // called with what a watch brings; nil for nobody
	Drops func(O) bool   // what has no row; nil for nothing
	Aside Sink[T]        // has the rows of what Drops drops; nil for nobody

	replaced func(version string)
}

// RowsOf fills a table.
func RowsOf[O metav1.Object, T any](table Writer[T], row func(O) T, key func(O) string) *Rows[O, T] {
	return &Rows[O, T]{To: table, Row: row, Key: key}
}

// Name is the key of an object of a kind that is listed in one namespace.
func Name[O metav1.Object](o O) string { return o.GetName() }

// NamespacedName is the key of an object of a kind that is listed in all namespaces.
func NamespacedName[O metav1.Object](o O) string {
	if o.GetNamespace() == "" || o.GetName() == "" {
		return ""
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// found is a row with its key. Of a list on its way in, which may have thousands of
// objects, nothing else is held.
type found[T any] struct {
	key     string
	row     T
	dropped bool
}

// Example is an object of the kind that is listed and watched.
func (r *Rows[O, T]) Example() any { var o O; return o }

// OnReplaced sets what is called with the resource version after each whole list.
func (r *Rows[O, T]) OnReplaced(done func(string)) { r.replaced = done }

func (r *Rows[O, T]) of(obj any) (*found[T], error) {
	switch o := obj.(type) {
	case *found[T]:
		return o, nil
	case O:
		key := r.Key(o)
		if key == "" {
			return nil, ErrNoName
		}
		return &found[T]{key, r.Row(o), r.Drops != nil && r.Drops(o)}, nil
	}
	return nil, fmt.Errorf("store object: unexpected %T", obj)
}

// Add implements cache.ReflectorStore.
func (r *Rows[O, T]) Add(obj any) error { return r.Update(obj) }

// Update implements cache.ReflectorStore.
func (r *Rows[O, T]) Update(obj any) error {
	f, err := r.of(obj)
	if err != nil {
		return err
	}
	if f.dropped {
		return errors.Join(r.To.Unpublish(f.key), r.aside(f))
	}
	if o, ok := obj.(O); ok && r.Seen != nil {
		r.Seen(o)
	}
	return errors.Join(r.To.Publish(f.key, f.row), r.aside(f))
}

// aside keeps a row that is dropped, and no other.
func (r *Rows[O, T]) aside(f *found[T]) error {
	switch {
	case r.Aside == nil:
		return nil
	case f.dropped:
		return r.Aside.Publish(f.key, f.row)
	}
	return r.Aside.Unpublish(f.key)
}

// Delete implements cache.ReflectorStore.
func (r *Rows[O, T]) Delete(obj any) error {
	f, err := r.of(obj)
	if err != nil {
		return err
	}
	f.dropped = false // it is in neither table
	return errors.Join(r.To.Unpublish(f.key), r.aside(f))
}

// Replace implements cache.ReflectorStore: it takes over a whole list, nothing
// of one that is not what it should be. Client-go decodes an answer of another kind to
// an empty list, but one without a version.
func (r *Rows[O, T]) Replace(list []any, version string) error {
	if version == "" {
		return ErrNoVersion
	}
	listed, aside := make(map[string]T, len(list)), map[string]T{}
	for _, obj := range list {
		f, err := r.of(obj)
		if err != nil {
			return err
		}
		switch {
		case !f.dropped:
			listed[f.key] = f.row
		case r.Aside != nil:
			aside[f.key] = f.row
		}
	}
	if r.Aside != nil {
		if err := r.Aside.Replace(aside); err != nil {
			return err
		}
	}
	if err := r.To.Replace(listed); err != nil {
		return err
	}
	if r.replaced != nil {
		r.replaced(version)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *Rows[O, T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore. What has no row is found out when
// the list is whole.
func (r *Rows[O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if f, err := r.of(obj); err == nil {
			return f, nil
		}
		return obj, nil
	}
}

// ReplaceEach makes listed the rows of table, one after the other.
func ReplaceEach[T any](table Writer[T], listed map[string]T) error {
	var errs []error
	for key, row := range listed {
		errs = append(errs, table.Publish(key, row))
	}
	return errors.Join(append(errs, Retain(table, listed))...)
}

// Retain drops the rows whose keys are not among those to keep.
func Retain[T any](table Writer[T], keep map[string]T) error {
	var errs []error
	for key := range table.All() {
		if _, ok := keep[key]; !ok {
			errs = append(errs, table.Unpublish(key))
		}
	}
	return errors.Join(errs...)
}

// AnnotationText bounds each annotation of ours, read or written. A witness of a
// hundred nodes fits.
const AnnotationText = 16 << 10

// Annotated is what an annotation of ours says. One that is garbage, or too
// long, counts as none: anybody may have written it.
func Annotated[T any](annotations map[string]string, key string) (v T, ok bool) {
	text, ok := annotations[key]
	if !ok || len(text) > AnnotationText || json.Unmarshal([]byte(text), &v) != nil {
		var none T // what was read of it before the fault
		return none, false
	}
	return v, true
}

// Annotation is the text of one.
func Annotation(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if len(text) > AnnotationText {
		return "", fmt.Errorf("annotation of %d bytes: more than %d", len(text), AnnotationText)
	}
	return string(text), nil
}

// Sorted is names without the empty one, each once; nil for none.
func Sorted(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	if len(names) == 0 {
		return nil
	}
	return names
}

// ConditionOf is nil where the Node has no such condition.
func ConditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i, c := range n.Status.Conditions {
		if c.Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Owned is the part of an object that a field manager owns, as far as it matters.
type Owned struct {
	Metadata struct {
		Annotations map[string]json.RawMessage `json:"f:annotations"`
		Labels      map[string]json.RawMessage `json:"f:labels"`
	} `json:"f:metadata"`
	Spec map[string]json.RawMessage `json:"f:spec"`
}

// FieldsOf is what the manager of m owns, nothing where that cannot be read.
func FieldsOf(m metav1.ManagedFieldsEntry) Owned {
	var fields Owned
	if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
		return Owned{}
	}
	return fields
}

// Labels of docs/wire.md, "App objects".
const (
	LabelApp       = "app"
	LabelAppDomain = "App-Domain-Name"
	LabelVMI       = "vm.kubevirt.io/name"
)

// OwnerOf is zero where nothing controls o.
func OwnerOf(o metav1.Object) types.Owner {
	c := metav1.GetControllerOfNoCopy(o)
	if c == nil {
		return types.Owner{}
	}
	return types.Owner{Kind: c.Kind, Name: c.Name, UID: string(c.UID)}
}

// Labels of docs/wire.md, "Nodes".
const (
	LabelNodeUUID   = "node-uuid"
	LabelTieBreaker = "tie-breaker-node"
	LabelEdge       = "node-role.kubernetes.io/edge"
)

// kubeEdge is in the version of the kubelet that is part of edgecore: v1.30.7-kubeedge-v1.20.0.
const kubeEdge = "-kubeedge-"

// DrainManager is the field manager of all that a drain writes.
const DrainManager = "zedkube-drain"

// IsEdge reports that a Node is one of KubeEdge's: a device that runs pods of
// the cluster and belongs to no EVE device of it, and that may be out of reach for
// days. It is no member. It has a table of its own, and no other table and no list
// of Nodes has it, so no rule on members can count it (docs/wire.md, "Nodes").
//
// Its kubelet says so too, whether it has the label yet or not. Neither does alone: a
// person may put the label on any Node, who can write its status may write the version,
// and a member that is missing has to leave. What has a device's UUID or the role of a
// server is a member whatever else it has.
func IsEdge(n *corev1.Node) bool {
	has := func(label string) bool { _, ok := n.Labels[label]; return ok }
	edge := has(LabelEdge) || strings.Contains(n.Status.NodeInfo.KubeletVersion, kubeEdge)
	return edge && !has(LabelNodeUUID) && !has(types.LabelControlPlane) && !has(types.LabelMaster) && !has(types.LabelEtcd)
}

// Cut shortens text to at most max bytes, whole characters.
func Cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max-len("…")], "") + "…"
}

// AppsManager is the field manager of what is written for applications.
const AppsManager = "zedkube-apps"
