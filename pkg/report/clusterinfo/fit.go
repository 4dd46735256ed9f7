package clusterinfo

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// maxMessage bounds the JSON of Nodes and PodNsInfo together. They travel
	// in one packet of less than 65535 bytes, in base64, which leaves 49 KB of
	// JSON; a kilobyte of it is for the names of the fields and the references
	// to the parts that travel by file (docs/wire.md, "Large fields").
	maxMessage = 48_000
	// maxLarge bounds the JSON of a part that travels by file, of less than
	// 1 MiB.
	maxLarge = 1_040_000
	// maxEntry is far more than any entry needs, in bytes of JSON.
	maxEntry = 12_000
)

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
	next.sent, next.size = prefix(all, limit, func(i int) int {
		// Most entries of a large cluster are as they were: that is seen faster.
		if i < len(l.sizes) && l.sizes[i] != 0 && same(l.all[i], all[i]) {
			next.sizes[i] = l.sizes[i]
		} else {
			next.sizes[i] = sizeOf(all[i])
		}
		return next.sizes[i]
	})
	if next.left() > 0 && shorten != nil {
		reduced := slices.Clone(all)
		for i := range reduced {
			reduced[i] = shorten(reduced[i])
		}
		next.without = without
		next.sent, next.size = prefix(reduced, limit, func(i int) int { return sizeOf(reduced[i]) })
	}
	return next
}

// equal compares entries; of those that hold no lists it costs a tenth of alike.
func equal[T comparable](a, b T) bool    { return a == b }
func sameExceptTimes[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// refit is the same list in another room.
func (l list[T]) refit(limit int) list[T] {
	l.limit = limit
	l.sent, l.size = prefix(l.all, limit, func(i int) int { return sizeOf(l.all[i]) })
	return l
}

// prefix returns as many first entries of list as fit into limit bytes of
// JSON, and the size of those; size tells that of one. One that is larger than
// any should be keeps none out that comes after it.
func prefix[T any](list []T, limit int, size func(i int) int) (kept []T, total int) {
	kept = list
	for i, entry := range list {
		n := size(i)
		whole := len(kept) == len(list)
		switch {
		case n > maxEntry:
			if whole {
				kept = slices.Clone(list[:i])
			}
			continue
		case total+n > limit && whole:
			return list[:i:i], total
		case total+n > limit:
			return kept, total
		case !whole:
			kept = append(kept, entry)
		}
		total += n
	}
	return kept, total
}

// sizeOf is how many bytes an entry takes in a list in JSON. One without a form
// in JSON, as its time is out of range, is larger than any should be.
func sizeOf[T any](entry T) int {
	data, err := json.Marshal(entry)
	if err != nil {
		return maxEntry + 1
	}
	return len(data) + 1 // the comma
}

// bare is a node without its conditions: those go first where nodes do not fit,
// because no agent of EVE reads them.
func bare(n types.KubeNodeInfo) types.KubeNodeInfo {
	n.Conditions = nil
	return n
}
