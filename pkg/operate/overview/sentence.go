package overview

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// nameLetters are those of plainName. Its length is not in it: counted, it makes
// of this the largest expression of the program.
var nameLetters = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// noNode is how a repair begins to say that the scheduler finds no node.
const noNode = "The scheduler finds no node"

// plainName reports whether Kubernetes takes name for a node: only such a one is
// put into a command that somebody may paste.
func plainName(name string) bool { return len(name) <= 253 && nameLetters.MatchString(name) }

// sentence joins a statement and why it is so.
func sentence(what, why string) string {
	why = strings.TrimRight(strings.TrimSpace(why), ".")
	if why == "" {
		return what + "."
	}
	return what + ": " + why + "."
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func count(n int) string { return strconv.Itoa(n) }

// counted is a number with the words for one and for several.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one + "."
	}
	return count(n) + " " + several + "."
}

// bytesText is bytes for people.
func bytesText(n uint64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatUint(n, 10) + " B"
	}
	f := float64(n)
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f /= unit; f < unit || u == "TiB" {
			return fmt.Sprintf("%.1f %s", f, u)
		}
	}
	return ""
}
