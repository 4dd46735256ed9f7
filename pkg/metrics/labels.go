package metrics

import "slices"

// other stands for every value that is not known beforehand, so that no name
// from outside becomes a series of its own.
const other = "other"

// verbs are those that kubeapi tells apart.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// oneOf is value where it is known, else other.
func oneOf[T ~string](value T, known []T) string {
	if slices.Contains(known, value) {
		return string(value)
	}
	return other
}
