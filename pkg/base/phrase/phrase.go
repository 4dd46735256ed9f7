// Package phrase puts numbers, lists and texts from outside into sentences.
package phrase

import (
	"fmt"
	"strings"
)

// Cut is text, or the first most bytes of it, whole characters, and "..." where it
// is longer.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Few names the first most of a list, and counts the others: a, b and 3 more.
func Few(list []string, most int) string {
	text := strings.Join(list[:min(most, len(list))], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Counted is n with the noun in its number.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
