package pubsub

import "maps"

// Joined is a topic and a table of this process, of that name, as one table. They share
// no key.
type Joined[T any] struct {
	Source[T]
	Here Reader[T]
	Name string
}

// Get implements Reader.
func (j Joined[T]) Get(key string) (T, bool) {
	if v, ok := j.Here.Get(key); ok {
		return v, true
	}
	return j.Source.Get(key)
}

// All implements Reader.
func (j Joined[T]) All() map[string]T {
	all := map[string]T{}
	maps.Copy(all, j.Source.All()) // an empty table is nil
	maps.Copy(all, j.Here.All())
	return all
}

// Notify implements Reader.
func (j Joined[T]) Notify(bell chan<- struct{}) {
	j.Source.Notify(bell)
	j.Here.Notify(bell)
}

// String names both.
func (j Joined[T]) String() string {
	if topic, ok := j.Source.(interface{ String() string }); ok {
		return topic.String() + ", " + j.Name
	}
	return j.Name
}
