package outlook

import (
	"fmt"
	"strings"
)

// Counted is n with the noun in its number.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Some names the first few, with the verb that fits their number, if any.
func Some(names []string, one, many string) string {
	const few = 5
	text := strings.Join(names[:min(few, len(names))], ", ")
	if more := len(names) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	verb := many
	if len(names) == 1 {
		verb = one
	}
	return strings.TrimSpace(text + " " + verb)
}
