package listwatch

import (
	"context"
	"fmt"

	"github.com/zedkube/zedkube/kubeapi/access"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Rows writes the objects that a Reflector sees into a table.
type Rows[O, T any] struct {
	Table access.Writer[T]
	Row   func(O) T
	Key   func(T) string // "" if the row is of no use as it has no name
	Slim  func(O) O
	Seen  func(O)      // called with what a watch brings; nil for nobody
	Drops func(O) bool // what has no row; nil for nothing

	replaced func(version string)
}

func (r *Rows[O, T]) Example() any { var o O; return o }

func (r *Rows[O, T]) OnReplaced(done func(string)) { r.replaced = done }

// of returns the row of an object and its key.
func (r *Rows[O, T]) of(obj any) (row T, key string, err error) {
	o, ok := obj.(O)
	if !ok {
		return row, "", fmt.Errorf("store object: unexpected %T", obj)
	}
	row = r.Row(o)
	if key = r.Key(row); key == "" {
		return row, "", access.ErrNoName
	}
	return row, key, nil
}

// Add implements cache.ReflectorStore.
func (r *Rows[O, T]) Add(obj any) error { return r.Update(obj) }

// Update implements cache.ReflectorStore.
func (r *Rows[O, T]) Update(obj any) error {
	row, key, err := r.of(obj)
	if err != nil {
		return err
	}
	if r.dropped(obj) {
		return r.Table.Unpublish(key)
	}
	if o, ok := obj.(O); ok && r.Seen != nil {
		r.Seen(o)
	}
	return r.Table.Publish(key, row)
}

func (r *Rows[O, T]) dropped(obj any) bool {
	o, ok := obj.(O)
	return ok && r.Drops != nil && r.Drops(o)
}

// Delete implements cache.ReflectorStore.
func (r *Rows[O, T]) Delete(obj any) error {
	_, key, err := r.of(obj)
	if err != nil {
		return err
	}
	return r.Table.Unpublish(key)
}

// Replace implements cache.ReflectorStore: it takes over a whole list, nothing
// of one that is not what it should be, at once where the table can. Client-go decodes an answer of another kind to an empty list, but
// one without a version.
func (r *Rows[O, T]) Replace(list []any, version string) error {
	if version == "" {
		return access.ErrNoVersion
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
	if err := access.Replace(r.Table, listed); err != nil {
		return err
	}
	if r.replaced != nil {
		r.replaced(version)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *Rows[O, T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a list on its way in is held
// in slim form.
func (r *Rows[O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(O); ok {
			return r.Slim(o), nil
		}
		return obj, nil
	}
}

// Lister is a client for one kind of object.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ListWatch is all that api has, or what the field selector on chooses of it.
func ListWatch[L runtime.Object](api Lister[L], on string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = on
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = on
			return api.Watch(ctx, o)
		},
	}
}
