package pubsub

import (
	"encoding/json"
	"math"
	"slices"
)

// What a value may have, in bytes of JSON. A publisher cuts its lists to it by
// Fit: a value that is larger is refused as a whole.
const (
	// MaxMessage bounds what travels by message. That is one packet of less than
	// 65535 bytes, in base64, which leaves 49 KB of JSON; a kilobyte of it is for
	// the names of the fields and the references to the parts that travel by file
	// (docs/wire.md, "Large fields").
	MaxMessage = 48_000
	// MaxLarge bounds a part that travels by file, of less than 1 MiB.
	MaxLarge = 1_040_000
)

// Fit returns as many first entries of list as fit into limit bytes of JSON, and
// the size of those; size tells that of one. One that is larger than largest keeps
// none out that comes after it.
func Fit[T any](list []T, limit, largest int, size func(i int) int) (kept []T, total int) {
	kept = list
	for i, entry := range list {
		n := size(i)
		whole := len(kept) == len(list)
		switch {
		case n > largest:
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

// FitLarge is Fit for a list that travels by file as a part of its own; it returns
// how many entries are left out.
func FitLarge[T any](list []T) (kept []T, omitted int) {
	kept, _ = Fit(list, MaxLarge, MaxLarge, func(i int) int { return EntrySize(list[i]) })
	return kept, len(list) - len(kept)
}

// EntrySize is how many bytes an entry takes in a list in JSON. One without a form
// in JSON, as its time is out of range, is larger than any may be.
func EntrySize(entry any) int {
	data, err := json.Marshal(entry)
	if err != nil {
		return math.MaxInt
	}
	return len(data) + 1 // the comma
}
