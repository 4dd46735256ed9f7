// Package printable makes text that anyone may have written fit to be shown: by a
// terminal, a browser or a log, none of which may take a part of it for a command.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape shows the bytes that are no text, and the characters that are there to
// move, hide or turn others (control characters, C1, DEL, bidi), as escapes of
// Go: \x9b, \u001b. A tab stays, and so do spaces of any width and what joins
// letters or emojis.
func Escape(s string) string {
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	b := make([]byte, 0, 2*len(s))
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		b = AppendRune(b, r, s[:size])
		s = s[size:]
	}
	return string(b)
}

// AppendRune appends one character as Escape shows it: r, which was decoded from
// the bytes in from. It begins with a backslash where it is an escape, or a
// backslash itself.
func AppendRune[T string | []byte](dst []byte, r rune, from T) []byte {
	switch {
	case !odd(r):
		return append(dst, from...)
	case r == utf8.RuneError && len(from) == 1:
		return appendHex(dst, `\x`, rune(from[0]), 2)
	case r > 0xffff:
		return appendHex(dst, `\U`, r, 8)
	}
	return appendHex(dst, `\u`, r, 4)
}

func appendHex(dst []byte, front string, r rune, digits int) []byte {
	dst = append(dst, front...)
	for digits--; digits >= 0; digits-- {
		dst = append(dst, "0123456789abcdef"[r>>(4*digits)&15])
	}
	return dst
}

// joiners are between letters (Persian, Hindi) and emojis that are drawn as one,
// or as two.
const joiners = "\u200c\u200d"

// odd tells what is not plain text.
func odd(r rune) bool {
	return r == utf8.RuneError || r != '\t' && !strconv.IsGraphic(r) && !strings.ContainsRune(joiners, r)
}
