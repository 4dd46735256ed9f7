package outlook

import (
	"fmt"

	"github.com/zedkube/zedkube/pkg/base/phrase"
)

// Counted is n with the noun in its number.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Some names the first few, and counts the others.
func Some(names []string) string { return phrase.Few(names, 5) }
