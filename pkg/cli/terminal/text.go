package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// longestText bounds one text of a record on the screen, in runes.
const longestText = 600

// Clean makes a text that others wrote fit for a terminal: one line, without
// control characters, of bounded length.
func Clean(s string) string {
	if len(s) > 4*longestText {
		s = s[:4*longestText]
	}
	runes := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))))
	if len(runes) > longestText {
		return string(runes[:longestText-3]) + "..."
	}
	return string(runes)
}

// Cells is how many columns a clean text takes, rather too many than too few.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x1100 && (r < 0x2580 || r > 0x259f) { // where the wide scripts begin, but for the blocks of sparklines
			n++
		}
	}
	return n
}

// wrapped breaks a text between words, and inside a word where it must, into
// lines of at most width columns.
func wrapped(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for Cells(word) > width {
			head, tail := Cut(word, width)
			if line != "" {
				lines = append(lines, line)
			}
			line, word = head, tail
		}
		switch {
		case word == "":
		case line == "":
			line = word
		case Cells(line)+1+Cells(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Cut splits a word after width columns, after one rune at least.
func Cut(word string, width int) (head, tail string) {
	end := 0
	for i, r := range word {
		next := i + len(string(r))
		if end > 0 && Cells(word[:next]) > width {
			break
		}
		end = next
	}
	return word[:end], word[end:]
}

// Years10 is beyond every age that means something on a screen.
const Years10 = 10 * 365 * 24 * time.Hour

// Span is a duration for people, two units at most.
func Span(d time.Duration) string {
	d = d.Abs().Round(time.Second)
	days := d / (24 * time.Hour)
	switch {
	case d >= Years10:
		return "over 10 years"
	case days >= 2:
		return fmt.Sprintf("%dd%dh", days, d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// timestamps are how times are written: in UTC.
const timestamps = "2006-01-02 15:04:05Z"

// Timestamp is a time for people.
func Timestamp(at time.Time) string { return at.UTC().Format(timestamps) }

// Stamp is a time for people, with its age.
func Stamp(at, now time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	at, now = at.UTC(), now.UTC()
	layout := timestamps
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		layout = "15:04:05Z"
	}
	return at.Format(layout) + " (" + Age(at, now) + ")"
}

// Age is how long ago a time was, or how far ahead it is.
func Age(at, now time.Time) string {
	switch d := now.Sub(at); {
	case at.IsZero():
		return "for an unknown time"
	case d < 0:
		return "in " + Span(d)
	default:
		return Span(d) + " ago"
	}
}

// Bar draws a part of a whole, whatever the numbers.
func Bar(part, whole, width int) string {
	width = max(width, 4)
	full := 0
	if whole > 0 {
		part = min(max(part, 0), whole)
		full = int(float64(part) / float64(whole) * float64(width))
	}
	full = min(max(full, 0), width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// WriteJSON prints v with nothing in it that a terminal would obey: encoding/json
// lets some control characters through.
func WriteJSON(out io.Writer, v any, indent string) error {
	text, err := marshal(v)
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	if indent == "" {
		raw.Write(text)
	} else if err := json.Indent(&raw, text, "", indent); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	raw.WriteByte('\n')
	_, err = io.WriteString(out, escape(raw.String(), func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}))
	return err
}

// escape writes the characters of JSON that a terminal would obey as numbers, those beyond
// 16 bits by wide. Outside of strings JSON is ASCII.
func escape(text string, wide func(rune) string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(wide(r))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// OrNone is a text, or the sign that there is none.
func OrNone(text string) string { return cmp.Or(text, Unknown) }

// Unknown is what nobody knows, which is not 0.
const Unknown = "-"

// Number is v, or 0 for unknown.
func Number(v *uint64) float64 {
	if v == nil {
		return 0
	}
	return float64(*v)
}

// CoresText is nanocores in at most five columns: thousandths of a core below
// ten, then cores.
func CoresText(v *uint64) string {
	if v == nil {
		return Unknown
	}
	switch cores := float64(*v) / 1e9; {
	case cores < 9.9995:
		return strconv.FormatInt(int64(cores*1e3+0.5), 10) + "m"
	case cores < 99.95:
		return strconv.FormatFloat(cores, 'f', 1, 64)
	case cores < 99999:
		return strconv.FormatFloat(cores, 'f', 0, 64)
	}
	return ">99k"
}

// BytesText is bytes in at most six columns.
func BytesText(v *uint64) string {
	if v == nil {
		return Unknown
	}
	n := float64(*v)
	for _, unit := range []string{"B", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		switch {
		case unit != "B" && n < 9.95:
			return strconv.FormatFloat(n, 'f', 1, 64) + unit
		case n < 1023.5 || unit == "Ei":
			return strconv.FormatFloat(n, 'f', 0, 64) + unit
		}
		n /= 1024
	}
	return Unknown
}

// Percent is a part of a whole in at most four columns.
func Percent(part *uint64, whole float64) string {
	if part == nil || whole <= 0 {
		return Unknown
	}
	return fmt.Sprintf("%.0f%%", min(float64(*part)/whole*100, 999))
}

// short is a duration in at most four columns: 5s, 12m, 3h, 2d, 999d.
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dy", min(d/(365*24*time.Hour), 999))
}

// ShortAge is how old something is; - for a time that is not known.
func ShortAge(at, now time.Time) string {
	if at.IsZero() {
		return Unknown
	}
	return short(now.Sub(at))
}
