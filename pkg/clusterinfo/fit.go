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
	limit   int    // that sent was cut to
	without string // what the entries of sent go without
}

// left counts what does not fit.
func (l list[T]) left() int { return len(l.all) - len(l.sent) }

// renew takes over what there is now, at most limit bytes of it. reduce, nil for
// none, makes shorter entries that go without what it is told, which is tried
// before any entry is left out.
func (l list[T]) renew(all []T, limit int, now time.Time, without string, reduce func(T) T) list[T] {
	same := reflect.DeepEqual(l.all, all)
	if same && l.limit == limit && l.known {
		return l
	}
	next := list[T]{known: true, updated: l.updated, all: all, limit: limit}
	if !same || l.updated.IsZero() {
		next.updated = now.UTC()
	}
	next.sent, next.size = prefix(all, limit)
	if next.left() > 0 && reduce != nil {
		reduced := slices.Clone(all)
		for i := range reduced {
			reduced[i] = reduce(reduced[i])
		}
		next.without = without
		next.sent, next.size = prefix(reduced, limit)
	}
	return next
}

// recut is the same list in another room.
func (l list[T]) recut(limit int) list[T] {
	l.limit = limit
	l.sent, l.size = prefix(l.all, limit)
	return l
}

// prefix returns as many first entries of list as fit into limit bytes of
// JSON, and the size of those. One that is larger than any should be, or has
// no form in JSON as its time is out of range, keeps none out that comes after it.
func prefix[T any](list []T, limit int) (kept []T, size int) {
	kept = list
	for i, entry := range list {
		data, err := json.Marshal(entry)
		n := len(data) + 1 // the comma
		whole := len(kept) == len(list)
		switch {
		case err != nil || n > maxEntry:
			if whole {
				kept = slices.Clone(list[:i])
			}
			continue
		case size+n > limit && whole:
			return list[:i:i], size
		case size+n > limit:
			return kept, size
		case !whole:
			kept = append(kept, entry)
		}
		size += n
	}
	return kept, size
}

// bare is a node without its conditions: those go first where nodes do not fit,
// because no agent of EVE reads them.
func bare(n types.KubeNodeInfo) types.KubeNodeInfo {
	n.Conditions = nil
	return n
}
