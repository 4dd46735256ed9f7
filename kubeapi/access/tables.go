package access

import (
	"errors"

	"github.com/zedkube/zedkube/types"
	"k8s.io/client-go/tools/cache"
)

// Namespace is where EVE keeps the applications and the election's Lease.
const Namespace = types.NamespaceApps

// Reader is a table to look at, which rings when it changes.
type Reader[T any] interface {
	Get(key string) (T, bool)
	All() map[string]T
	Notify(bell chan<- struct{})
}

// Writer is a table to fill. Publishing an unchanged row does nothing.
type Writer[T any] interface {
	Reader[T]
	Publish(key string, v T) error
	Unpublish(key string) error
}

// Store is what a view writes into.
type Store interface {
	cache.ReflectorStore
	cache.TransformingStore
	Example() any
	OnReplaced(func(version string)) // called after each whole list
}

// atOnce is a table that takes over a whole list in one step. Where the watch of a
// table that counts as whole could not be taken up again, its readers would else
// see rows of two times side by side.
type atOnce[T any] interface {
	Replace(rows map[string]T) error
}

// Replace makes listed the rows of table.
func Replace[T any](table Writer[T], listed map[string]T) error {
	if t, ok := table.(atOnce[T]); ok {
		return t.Replace(listed)
	}
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
