// Package printable makes text that anybody may have written fit to be shown: by a
// terminal, a browser or a log, none of which may take a part of it for a command.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape shows the bytes that are no text, and the characters that are there to
// move, hide or turn others (control characters, C1, DEL, bidi), as escapes of
// Go: \x9b, \u001b. A tab stays.
func Escape(s string) string {
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !odd(r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// odd tells what is not plain text.
func odd(r rune) bool { return r == utf8.RuneError || r != '\t' && !unicode.IsPrint(r) }
