package clusterinfo

import (
	"reflect"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// maxEntry is far more than any entry needs, in bytes of JSON.
const maxEntry = 12_000

// list is one list of the report: what there is, and what of it fits. The first
// entries by name stay, so that the same ones are reported every time.
type list[T any] struct {
	known   bool // seen whole since this node leads
	updated time.Time
	all     []T
	sent    []T
	size    int    // of sent, bytes of JSON
	sizes   []int  // of all, as far as they are known; 0 for not
	limit   int    // that sent was cut to
	without string // what the entries of sent go without
}

// left counts what does not fit.
func (l list[T]) left() int { return len(l.all) - len(l.sent) }

// renew takes over what there is now, at most limit bytes of it; same compares
// entries. reduce, nil for none, makes shorter entries that go without what it is told, which is tried
// before any entry is left out.
func (l list[T]) renew(all []T, same func(a, b T) bool, limit int, now time.Time, without string, shorten func(T) T) list[T] {
	if len(all) == 0 {
		all = nil // null in JSON, as in EVE
	}
	unchanged := slices.EqualFunc(l.all, all, same)
	if unchanged && l.limit == limit && l.known {
		return l
	}
	next := list[T]{known: true, updated: l.updated, all: all, sizes: make([]int, len(all)), limit: limit}
	if !unchanged || l.updated.IsZero() {
		next.updated = now.UTC()
	}
	next.sent, next.size = pubsub.Fit(all, limit, maxEntry, func(i int) int {
		// Most entries of a large cluster are as they were: that is seen faster.
		if i < len(l.sizes) && l.sizes[i] != 0 && same(l.all[i], all[i]) {
			next.sizes[i] = l.sizes[i]
		} else {
			next.sizes[i] = pubsub.EntrySize(all[i])
		}
		return next.sizes[i]
	})
	if next.left() > 0 && shorten != nil {
		reduced := slices.Clone(all)
		for i := range reduced {
			reduced[i] = shorten(reduced[i])
		}
		next.without = without
		next.sent, next.size = pubsub.Fit(reduced, limit, maxEntry, func(i int) int { return pubsub.EntrySize(reduced[i]) })
	}
	return next
}

// equal compares entries; of those that hold no lists it costs a tenth of alike.
func equal[T comparable](a, b T) bool    { return a == b }
func sameExceptTimes[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// refit is the same list in another room.
func (l list[T]) refit(limit int) list[T] {
	l.limit = limit
	l.sent, l.size = pubsub.Fit(l.all, limit, maxEntry, func(i int) int { return pubsub.EntrySize(l.all[i]) })
	return l
}

// bare is a node without its conditions: those go first where nodes do not fit,
// because no agent of EVE reads them.
func bare(n types.KubeNodeInfo) types.KubeNodeInfo {
	n.Conditions = nil
	return n
}
