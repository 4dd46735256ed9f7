package clusterinfo

import (
	"maps"
	"slices"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

// rung tells which sections have news, so that the others are not made anew:
// a large cluster changes in one place at a time.
type rung map[string]chan struct{}

func newRung(sections map[string][]loop.Input) rung {
	r := rung{}
	for name, inputs := range sections {
		r[name] = make(chan struct{}, 1)
		for _, in := range inputs {
			in.Notify(r[name])
		}
	}
	return r
}

// all rings all of them.
func (r rung) all() {
	for _, bell := range r {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// take returns those that have rung since the last time.
func (r rung) take() map[string]bool {
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
