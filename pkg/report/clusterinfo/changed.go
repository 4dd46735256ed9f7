package clusterinfo

import (
	"maps"
	"slices"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
)

// changedSections tells which sections have news, so that the others are not made again:
// a large cluster changes in one place at a time.
type changedSections map[string]chan struct{}

func newChangedSections(sections map[string][]loop.Input) changedSections {
	r := changedSections{}
	for name, inputs := range sections {
		r[name] = make(chan struct{}, 1)
		for _, in := range inputs {
			in.Notify(r[name])
		}
	}
	return r
}

// all rings all of them.
func (r changedSections) all() {
	for _, bell := range r {
		pubsub.Ring(bell)
	}
}

// take returns those that have rung since the last time.
func (r changedSections) take() map[string]bool {
	news := map[string]bool{}
	for name, bell := range r {
		select {
		case <-bell:
			news[name] = true
		default:
		}
	}
	return news
}

func values[T any](table map[string]T) []T { return slices.Collect(maps.Values(table)) }
