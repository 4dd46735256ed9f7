package kubeapi

import (
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

var (
	errNoVersion = errors.New("the answer has no resource version, so it is no list of what was asked for")
	errNoName    = errors.New("the answer holds an object without a name")
)

// rowStore is what a view writes into.
type rowStore interface {
	cache.ReflectorStore
	cache.TransformingStore
	example() any
	onReplaced(func(version string)) // called after each whole list
}

// rows writes the objects that a Reflector sees into a table.
type rows[O, T any] struct {
	table Writer[T]
	row   func(O) T
	key   func(T) string // "" if the row is of no use as it has no name
	slim  func(O) O
	seen  func(O)      // called with what a watch brings; nil for nobody
	drops func(O) bool // what has no row; nil for nothing

	replaced func(version string)
}

func nodeRows(table Writer[types.Node], clocks *clocks, stamps *stamps) rowStore {
	return &rows[*corev1.Node, types.Node]{
		table: clocked{Writer: stamped{Writer: table, stamps: stamps}, clocks: clocks}, row: nodeOf, slim: slimNode, seen: clocks.sees, drops: isEdge,
		key: func(n types.Node) string { return n.Name },
	}
}

func podRows(table Writer[types.Pod]) rowStore {
	return &rows[*corev1.Pod, types.Pod]{table: table, row: podOf, slim: slimPod, key: podKey}
}

func appPodRows(table Writer[types.Pod]) rowStore {
	return &rows[*corev1.Pod, types.Pod]{table: table, row: appPodOf, slim: slimAppPod, key: podKey}
}

func podKey(p types.Pod) string {
	if p.Namespace == "" || p.Name == "" {
		return ""
	}
	return p.Key()
}

func leaseRows(table Writer[types.Lease]) rowStore {
	return &rows[*coordinationv1.Lease, types.Lease]{
		table: table, row: leaseOf, slim: slimLease,
		key: func(l types.Lease) string { return l.Name },
	}
}

func (r *rows[O, T]) example() any { var o O; return o }

func (r *rows[O, T]) onReplaced(done func(string)) { r.replaced = done }

// of returns the row of an object and its key.
func (r *rows[O, T]) of(obj any) (row T, key string, err error) {
	o, ok := obj.(O)
	if !ok {
		return row, "", fmt.Errorf("store object: unexpected %T", obj)
	}
	row = r.row(o)
	if key = r.key(row); key == "" {
		return row, "", errNoName
	}
	return row, key, nil
}

// Add implements cache.ReflectorStore.
func (r *rows[O, T]) Add(obj any) error { return r.Update(obj) }

// Update implements cache.ReflectorStore.
func (r *rows[O, T]) Update(obj any) error {
	row, key, err := r.of(obj)
	if err != nil {
		return err
	}
	if r.dropped(obj) {
		return r.table.Unpublish(key)
	}
	if o, ok := obj.(O); ok && r.seen != nil {
		r.seen(o)
	}
	return r.table.Publish(key, row)
}

func (r *rows[O, T]) dropped(obj any) bool {
	o, ok := obj.(O)
	return ok && r.drops != nil && r.drops(o)
}

// Delete implements cache.ReflectorStore.
func (r *rows[O, T]) Delete(obj any) error {
	_, key, err := r.of(obj)
	if err != nil {
		return err
	}
	return r.table.Unpublish(key)
}

// Replace implements cache.ReflectorStore: it takes over a whole list, nothing
// of one that is not what it should be, at once where the table can. Client-go decodes an answer of another kind to an empty list, but
// one without a version.
func (r *rows[O, T]) Replace(list []any, version string) error {
	if version == "" {
		return errNoVersion
	}
	listed := make(map[string]T, len(list))
	for _, obj := range list {
		row, key, err := r.of(obj)
		if err != nil {
			return err
		}
		if !r.dropped(obj) {
			listed[key] = row
		}
	}
	if err := replace(r.table, listed); err != nil {
		return err
	}
	if r.replaced != nil {
		r.replaced(version)
	}
	return nil
}

// atOnce is a table that takes over a whole list in one step. Where the watch of a
// table that counts as whole could not be taken up again, its readers would else
// see rows of two times side by side.
type atOnce[T any] interface {
	Replace(rows map[string]T) error
}

// replace makes listed the rows of table.
func replace[T any](table Writer[T], listed map[string]T) error {
	if t, ok := table.(atOnce[T]); ok {
		return t.Replace(listed)
	}
	var errs []error
	for key, row := range listed {
		errs = append(errs, table.Publish(key, row))
	}
	return errors.Join(append(errs, retain(table, listed))...)
}

// retain drops the rows whose keys are not among those to keep.
func retain[T any](table Writer[T], keep map[string]T) error {
	var errs []error
	for key := range table.All() {
		if _, ok := keep[key]; !ok {
			errs = append(errs, table.Unpublish(key))
		}
	}
	return errors.Join(errs...)
}

// Resync implements cache.ReflectorStore.
func (r *rows[O, T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a list on its way in is held
// in slim form.
func (r *rows[O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(O); ok {
			return r.slim(o), nil
		}
		return obj, nil
	}
}
