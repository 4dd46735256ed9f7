package types

import "strconv"

// enumName is the name of an enum's value, or kind and number of one without:
// a newer EVE may have added it.
func enumName[T ~int8 | ~uint8 | ~int32](kind string, names []string, v T) string {
	if v >= 0 && int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}
