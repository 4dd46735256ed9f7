package types

import "strconv"

// enumName is the name of an enum's value, or kind and number of one that a
// newer EVE may have added.
func enumName[T ~uint8 | ~int32](kind string, names []string, v T) string {
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}
